// y = f(operands). Flat: every operand is as large as the result, or a single element. Strided: operands are read by
// their strides along the axes that remain after collapsing. Unit is vec4<f32> or f32; Wide says for each operand whether
// it is read by units along the innermost axis or one element for the whole unit.
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
@group(0) @binding({{$i}}) var<storage, read> x{{$i}}: array<{{if index $.Wide $i}}{{$.Unit}}{{else}}f32{{end}}>;
{{end -}}
@group(0) @binding({{len .Operands}}) var<storage, read_write> y: array<{{.Unit}}>;
@group(0) @binding({{add (len .Operands) 1}}) var<uniform> p: Params;

{{.Functions}}
fn f({{range $i, $name := .Operands}}{{if $i}}, {{end}}{{$name}}: f32{{end}}) -> f32 {
    return {{.Expr}};
}

@compute @workgroup_size({{.Workgroup}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let first = linear_id(workgroup, grid) * {{mul .Workgroup .PerThread}}u + lane;
{{- range $j := seq .PerThread}}
    {
        let i = first + {{mul $j $.Workgroup}}u;
        if i < p.units {
{{- if $.Rank}}
            var rest = i;
            var at = p.base.xyz;
{{- range $d := $.Axes}}
            let q{{$d}} = rest / p.axes[{{$d}}].x;
            at += (rest - q{{$d}} * p.axes[{{$d}}].x) * p.axes[{{$d}}].yzw;
            rest = q{{$d}};
{{- end}}
            at += rest * p.axes[0].yzw;
{{- end}}
{{- range $k, $name := $.Operands}}
            let {{$name}} = x{{$k}}[{{if $.Rank}}at[{{$k}}]{{else if index $.Wide $k}}i{{else}}0{{end}}];
{{- end}}
{{- if eq $.Unit "f32"}}
            y[i{{if $.Rank}} + p.base.w{{end}}] = f({{range $k, $name := $.Operands}}{{if $k}}, {{end}}{{$name}}{{end}});
{{- else}}
            y[i{{if $.Rank}} + p.base.w{{end}}] = vec4(
{{- range $c, $lane := $.Lanes}}{{if $c}}, {{end}}f({{range $k, $name := $.Operands}}{{if $k}}, {{end}}{{$name}}{{if index $.Wide $k}}.{{$lane}}{{end}}{{end}}){{end}});
{{- end}}
        }
    }
{{- end}}
}
