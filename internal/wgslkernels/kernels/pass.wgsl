// Gathers something of each row, and finishes the row or its elements by it. A row is cut into parts; a task is one part, worked
// on by Lanes threads, and a workgroup holds as many tasks as fit. Where a row is one part, stage "whole" does everything. Where
// it has several, stage "part" leaves what each gave, and stage "finish" joins what the parts of its row gave. Functions empty,
// take, merge and finish belong to the entry; each binding has its base, the element of the buffer at which it begins.
struct Params {
    first: u32, // task of this dispatch
    end: u32,   // one past its last task
    cols: u32,
    parts: u32, // tasks per row
    chunk: u32, // elements per part
    inf: u32,
    states: u32, // of a row, in the buffer of partial results
{{- range .Bindings}}
    {{.Name}}_base: u32,
{{- end}}
{{- range .Uniforms}}
    {{.}},
{{- end}}
}

{{range $i, $b := .Bindings -}}
@group(0) @binding({{$i}}) var<storage, {{if $b.Written}}read_write{{else}}read{{end}}> {{$b.Name}}: array<{{$b.Element}}>;
{{end -}}
@group(0) @binding({{len .Bindings}}) var<uniform> p: Params;

{{template "tree_head" .}}
{{.Functions}}
{{- .Text}}
@compute @workgroup_size({{.Workgroup}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) local: u32{{template "tree_inputs" .}}) {
    let lane = local % {{.Lanes}}u;
    let asked = p.first + linear_id(workgroup, grid) * {{div .Workgroup .Lanes}}u + local / {{.Lanes}}u;
    let task = min(asked, p.end - 1u); // threads beyond the end repeat the last task without writing
    let row = task / p.parts;
    let start = (task - row * p.parts) * p.chunk;
    let stop = min(start + p.chunk, p.cols);
    var acc = empty();
{{- if eq .Stage "finish"}}
    for (var i = lane; i < p.states; i += {{.Lanes}}u) {
        acc = merge(acc, partial[row * p.states + i - p.partial_base]);
    }
{{- else}}
    for (var i = start + lane; i < stop; i += {{mul 4 .Lanes}}u) {
        let columns = vec4(i) + {{.Lanes}}u * vec4(0u, 1u, 2u, 3u);
        acc = take(acc, row, min(columns, vec4(stop - 1u)), columns < vec4(stop));
    }
{{- end}}
{{- template "tree.wgsl" .}}
{{- if eq .Stage "part"}}
    if lane == 0u && asked < p.end {
        partial[task - p.partial_base] = acc;
    }
{{- else if .PerRow}}
    if lane == 0u && asked < p.end {
        finish(acc, row);
    }
{{- else}}
{{- template "tree_all" .}}
    if asked < p.end {
        for (var i = start + lane; i < stop; i += {{.Lanes}}u) {
            finish(acc, row, i);
        }
    }
{{- end}}
}
