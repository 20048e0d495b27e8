// Results are an expression of the operands, four elements to a unit. Flat: every operand is as large as the results, or a single
// element. Strided: others are on walks, by their strides along the axes that remain after collapsing, whole units at a time where the
// innermost axis allows it, else (Gather) element by element.
struct Params {
    units: u32, // of the results, in this dispatch
    inf: u32,
{{- range $i := seq .Scalars}}
    s{{$i}}: f32,
{{- end}}
{{- if .Rank}}
    base: u32, // where this dispatch begins in the bound part of the results
{{- range $w := seq .Walks}}
    base{{$w}}: u32, // and on each walk
{{- end}}
{{- range $d := seq .Rank}}
    size{{$d}}: u32, // innermost axis last
{{- range $w := seq $.Walks}}
    stride{{$d}}_{{$w}}: u32,
{{- end}}
{{- end}}
{{- end}}
}

{{range $i, $x := .Operands -}}
@group(0) @binding({{$i}}) var<storage, read> x{{$i}}: array<{{$x.Type}}>;
{{end -}}
{{range $i, $y := .Results -}}
@group(0) @binding({{add (len $.Operands) $i}}) var<storage, read_write> y{{$i}}: array<vec4<f32>>;
{{end -}}
@group(0) @binding({{add (len .Operands) (len .Results)}}) var<uniform> p: Params;

{{.Functions}}
{{- if .Rank}}
struct Place { // on each walk
{{- range $w := seq .Walks}}
    at{{$w}}: u32,
{{- end}}
    left: u32, // steps that remain along the innermost axis
}

fn locate(i: u32) -> Place {
    var place = Place({{range $w := seq .Walks}}p.base{{$w}}, {{end}}1u);
    var rest = i;
{{- range $n, $d := .Axes}}
    let q{{$d}} = rest / p.size{{$d}};
    let r{{$d}} = rest - q{{$d}} * p.size{{$d}};
{{- range $w := seq $.Walks}}
    place.at{{$w}} += r{{$d}} * p.stride{{$d}}_{{$w}};
{{- end}}
    rest = q{{$d}};
{{- if eq $n 0}}
    place.left = p.size{{$d}} - r{{$d}};
{{- end}}
{{- end}}
    rest = min(rest, p.size0 - 1u); // the last unit may reach beyond the end
{{- range $w := seq .Walks}}
    place.at{{$w}} += rest * p.stride0_{{$w}};
{{- end}}
    return place;
}
{{end}}
@compute @workgroup_size({{.Workgroup}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let first = linear_id(workgroup, grid) * {{mul .Workgroup .PerThread}}u + lane;
    let s = p; // once: there are devices on which uniforms take longer than arithmetic
{{- range $j := seq .PerThread}}
    {
        let i = first + {{mul $j $.Workgroup}}u;
        if i < s.units {
            let at = i{{if $.Rank}} + p.base{{end}};
{{- if $.Gather}}
            var place = locate(4u * i);
{{- else if $.Rank}}
            let place = locate(i);
{{- end}}
{{- range $k, $x := $.Operands}}
{{- if $x.Value}}
            let x{{$k}} = {{$x.Value}};
{{- end}}
{{- end}}
{{- range $c, $lane := $.Lanes}}
{{- if and $.Gather $c}}
{{- range $w := seq $.Walks}}
            place.at{{$w}} += p.stride{{$.Last}}_{{$w}};
{{- end}}
            place.left -= 1u;
            if place.left == 0u {
                place = locate(4u * i + {{$c}}u);
            }
{{- end}}
            let r{{$c}} = evaluate({{range $k, $x := $.Operands}}{{if $k}}, {{end}}{{if $x.Value}}x{{$k}}.{{$lane}}{{else}}x{{$k}}[{{$x.At}}]{{end}}{{end}}, s);
{{- end}}
{{- range $n, $component := $.Results}}
            y{{$n}}[at] = vec4({{range $c := seq 4}}{{if $c}}, {{end}}r{{$c}}{{$component}}{{end}});
{{- end}}
        }
    }
{{- end}}
}
