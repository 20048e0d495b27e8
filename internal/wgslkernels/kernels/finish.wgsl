{{/* What becomes of the elements of a result before they are stored. */}}
{{define "finish_scalars"}}
{{- range $i := seq .Scalars}}
    s{{$i}}: f32,
{{- end}}
{{- end}}

{{define "finish"}}
{{- $f := .}}
{{- range $i, $x := .Extras}}
@group(0) @binding({{add $f.First $i}}) var<storage, read> extra{{$i}}: array<{{$x.Type}}>;
{{- end}}

{{.Functions}}
{{- .Function}}
fn finish(x: {{if .Vector}}vec4<f32>{{else}}f32{{end}}, row: u32, col: u32, at: u32) -> {{if .Vector}}vec4<f32>{{else}}f32{{end}} {
{{- range $i, $x := .Extras}}
    let e{{$i}} = {{$x.Load}};
{{- end}}
    return {{.Call}};
}
{{end}}
