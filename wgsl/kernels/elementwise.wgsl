// y = f(operands), four elements to a unit. Flat: every operand is as large as the result, or a single element. Strided: operands
// are read by their strides along the axes that remain after collapsing, whole units at a time where the innermost axis allows
// it, else (Gather) element by element. Wide says which operands are read by units.
struct Params {
    units: u32, // of the result, in this dispatch
    inf: u32,
    s0: f32,
    s1: f32,
{{- if .Rank}}
    base: vec4<u32>, // where this dispatch begins in the bound part of each operand and, last, of the result
    axes: array<vec4<u32>, {{.Rank}}>, // size, then the stride of each operand; innermost axis last
{{- end}}
}

{{range $i, $name := .Operands -}}
@group(0) @binding({{$i}}) var<storage, read> x{{$i}}: array<{{if index $.Wide $i}}vec4<f32>{{else}}f32{{end}}>;
{{end -}}
@group(0) @binding({{len .Operands}}) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding({{add (len .Operands) 1}}) var<uniform> p: Params;

{{.Functions}}
fn f({{range $i, $name := .Operands}}{{if $i}}, {{end}}{{$name}}: f32{{end}}) -> f32 {
    return {{.Expr}};
}
{{- if .Rank}}

struct Place {
    at: vec3<u32>, // index into each operand
    left: u32,     // steps that remain along the innermost axis
}

fn locate(i: u32) -> Place {
    var place = Place(p.base.xyz, 1u);
    var rest = i;
{{- range $n, $d := .Axes}}
    let q{{$d}} = rest / p.axes[{{$d}}].x;
    let r{{$d}} = rest - q{{$d}} * p.axes[{{$d}}].x;
    place.at += r{{$d}} * p.axes[{{$d}}].yzw;
    rest = q{{$d}};
{{- if eq $n 0}}
    place.left = p.axes[{{$d}}].x - r{{$d}};
{{- end}}
{{- end}}
    place.at += min(rest, p.axes[0].x - 1u) * p.axes[0].yzw; // the last unit may reach beyond the end
    return place;
}
{{- end}}

@compute @workgroup_size({{.Workgroup}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let first = linear_id(workgroup, grid) * {{mul .Workgroup .PerThread}}u + lane;
{{- range $j := seq .PerThread}}
    {
        let i = first + {{mul $j $.Workgroup}}u;
        if i < p.units {
{{- if $.Gather}}
            var place = locate(4u * i);
{{- else if $.Rank}}
            let place = locate(i);
{{- end}}
{{- range $k, $name := $.Operands}}
{{- if index $.Wide $k}}
            let {{$name}} = x{{$k}}[{{if $.Gather}}i + p.base[{{$k}}]{{else if $.Rank}}place.at[{{$k}}]{{else}}i{{end}}];
{{- else if not $.Gather}}
            let {{$name}} = vec4(x{{$k}}[{{if $.Rank}}place.at[{{$k}}]{{else}}0{{end}}]);
{{- end}}
{{- end}}
{{- if $.Gather}}
            var r: vec4<f32>;
{{- range $c, $lane := $.Lanes}}
{{- if $c}}
            place.at += p.axes[{{$.Last}}].yzw;
            place.left -= 1u;
            if place.left == 0u {
                place = locate(4u * i + {{$c}}u);
            }
{{- end}}
            r.{{$lane}} = f({{range $k, $name := $.Operands}}{{if $k}}, {{end}}{{if index $.Wide $k}}{{$name}}.{{$lane}}{{else}}x{{$k}}[place.at[{{$k}}]]{{end}}{{end}});
{{- end}}
            y[i + p.base.w] = r;
{{- else}}
            y[i{{if $.Rank}} + p.base.w{{end}}] = vec4(
{{- range $c, $lane := $.Lanes}}{{if $c}}, {{end}}f({{range $k, $name := $.Operands}}{{if $k}}, {{end}}{{$name}}.{{$lane}}{{end}}){{end}});
{{- end}}
        }
    }
{{- end}}
}
