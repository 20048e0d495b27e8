// Several results, each element from the operands at its place, four elements to a unit. Function f of the entry takes one element
// of each binding but the last ones, which only results are; what it returns are the results.
struct Params {
    first: u32, // unit of this dispatch in what is bound
    units: u32, // of this dispatch
    inf: u32,
{{- range .Uniforms}}
    {{.}}: f32,
{{- end}}
}

{{range $i, $b := .Bindings -}}
@group(0) @binding({{$i}}) var<storage, {{if $b.Written}}read_write{{else}}read{{end}}> {{$b.Name}}: array<vec4<f32>>;
{{end -}}
{{if .Step -}}
@group(0) @binding({{len .Bindings}}) var<storage, read> step_number: array<i32>;
@group(0) @binding({{add (len .Bindings) 1}}) var<uniform> p: Params;
{{- else -}}
@group(0) @binding({{len .Bindings}}) var<uniform> p: Params;
{{- end}}

{{.Functions}}
{{- .Text}}
@compute @workgroup_size({{.Workgroup}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let unit = linear_id(workgroup, grid) * {{.Workgroup}}u + lane;
    if unit < p.units {
        let i = p.first + unit;
{{- range .Reads}}
        let in_{{.}} = {{.}}[i];
{{- end}}
{{- range $c := .Components}}
        let r{{$c}} = f({{range $n, $r := $.Reads}}{{if $n}}, {{end}}in_{{$r}}.{{$c}}{{end}});
{{- end}}
{{- range $n, $w := .Writes}}
        {{$w}}[i] = vec4({{range $m, $c := $.Components}}{{if $m}}, {{end}}r{{$c}}[{{$n}}]{{end}});
{{- end}}
    }
}
