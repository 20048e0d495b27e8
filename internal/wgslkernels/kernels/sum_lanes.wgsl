{{- /* Adds up the vectors s0, s1 … of all lanes of a workgroup, or of each group of lanes. Element i of vector v is then total(4·v + i, span), in any
lane of the group; span is what it needs to know: how many lanes a subgroup has, or which is the group's first. */ -}}
{{define "sum_lanes_head"}}
{{- $fours := mul 4 .Vectors}}
{{- if .Subgroups}}
var<workgroup> sums: array<vec4<f32>, {{mul .Vectors .Lanes}}>;

fn total(o: u32, span: u32) -> f32 {
    var t = sums[(o >> 2u) * {{.Lanes}}u][o & 3u];
    for (var i = 1u; i < {{.Lanes}}u / span; i++) {
        t += sums[(o >> 2u) * {{.Lanes}}u + i][o & 3u];
    }
    return t;
}
{{- else}}
// An element in the length of a row keeps lanes that read several rows apart from each other.
var<workgroup> sums: array<vec4<f32>, {{mul .Vectors (add .Lanes 1)}}>;
    {{- if .Grouped}}

fn total(o: u32, span: u32) -> f32 {
    let at = (o >> 2u) * {{add .Lanes 1}}u + span;
    var t = sums[at][o & 3u];
    for (var i = 1u; i < {{.Group}}u; i++) {
        t += sums[at + i][o & 3u];
    }
    return t;
}
    {{- else}}
var<workgroup> parts: array<f32, {{.Lanes}}>;

fn total(o: u32, span: u32) -> f32 {
    var t = parts[o];
    for (var i = o + {{$fours}}u; i < {{.Lanes}}u; i += {{$fours}}u) {
        t += parts[i];
    }
    return t;
}
    {{- end}}
{{- end}}
{{end}}
{{define "sum_lanes"}}
{{- $p := .}}
{{- $fours := mul 4 .Vectors}}
{{- if .Subgroups}}
    let span = min(subgroup_size, {{.Lanes}}u);
{{- range $v := seq .Vectors}}
    s{{$v}} = subgroupAdd(s{{$v}});
{{- end}}
    if lane % span == 0u {
{{- range $v := seq .Vectors}}
        sums[{{mul $v $p.Lanes}}u + lane / span] = s{{$v}};
{{- end}}
    }
{{- else}}
    let span = lane - l;
{{- range $v := seq .Vectors}}
    sums[{{mul $v (add $p.Lanes 1)}}u + lane] = s{{$v}};
{{- end}}
    {{- if not .Grouped}}
    workgroupBarrier();
    // Lanes share out the sums of each element evenly: fewer barriers, and less work for those that idle, than a tree has.
    var part = 0.0;
    for (var i = 0u; i < {{$fours}}u; i++) {
        part += sums[lane % {{$fours}}u / 4u * {{add .Lanes 1}}u + lane / {{$fours}}u * {{$fours}}u + i][lane & 3u];
    }
    parts[lane] = part;
    {{- end}}
{{- end}}
    workgroupBarrier();
{{- end}}
