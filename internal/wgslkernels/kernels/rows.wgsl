{{define "fours"}}
{{- $f := .}}
{{- if .Reaches}}
    let at = min(e, vec4(high - 1u));
{{- end}}
{{- range $n, $reach := .Reaches}}{{$i := add $f.First $n}}{{$x := printf "%s%d" $f.Name $i}}
{{- if eq $reach "all"}}
    let v{{$i}} = vec4({{$x}}[0]);
{{- else if eq $reach "row"}}
    let v{{$i}} = vec4({{$x}}[row - p.row_base]);
{{- else}}
{{- $base := ""}}{{if eq $reach "column"}}{{$base = " - (origin + p.vector_base)"}}{{end}}
{{- if eq $f.Width 4}}
    let v{{$i}} = {{$x}}[(at.x{{$base}}) / 4u];
{{- else}}
    let v{{$i}} = vec4({{$x}}[at.x{{$base}}], {{$x}}[at.y{{$base}}], {{$x}}[at.z{{$base}}], {{$x}}[at.w{{$base}}]);
{{- end}}
{{- end}}
{{- end}}
{{- end -}}
// Transforms each row by a statistic of it. A row is cut into parts; a task is one part, worked on by Lanes threads, and a
// workgroup holds as many tasks as fit. Where a row is one part, stage "whole" does everything, reading x once if the row fits
// the threads' registers. Where it has several, stage "part" leaves the statistics of parts, and stage "write" joins those of
// its row and transforms its part. Functions empty, take, merge, coefficients and apply belong to the statistic. The rows are an
// expression, prologue, of operands x0, x1 …, and the results another, epilogue, of what they would be and operands extra1, extra2 ….
struct Params {
    first: u32, // task of this dispatch
    end: u32,   // one past its last task
    cols: u32,
    parts: u32, // tasks per row
    chunk: u32, // elements per part
    base: u32,  // element at which the bound part of x, and of y, begins
    part_base: u32, // task at which the bound part of the statistics begins
    inf: u32,
    epsilon: f32,
    vector_base: u32, // element at which the bound part of vectors begins
    norm_base: u32, // row at which the bound part of the norms begins
    row_base: u32, // and that of operands with an element for each row
{{- range $i := seq .Scalars}}
    s{{$i}}: f32,
{{- end}}
}

{{range $i, $b := .Bindings -}}
@group(0) @binding({{$i}}) var<storage, {{if $b.Write}}read_write{{else}}read{{end}}> {{$b.Name}}: array<{{$b.Type}}>;
{{end -}}
@group(0) @binding({{len .Bindings}}) var<uniform> p: Params;
{{template "tree_head" .}}
{{.Functions}}
{{- .Statistic}}
{{- if eq .Width 4}}
// The four elements of block j of a thread's share.
fn elements(low: u32, lane: u32, j: u32) -> vec4<u32> {
    return vec4(low + 4u * (lane + {{.Lanes}}u * j)) + vec4(0u, 1u, 2u, 3u);
}
{{- else}}
// The four elements of block j of a thread's share.
fn elements(low: u32, lane: u32, j: u32) -> vec4<u32> {
    return vec4(low + lane + {{mul .Lanes 4}}u * j) + {{.Lanes}}u * vec4(0u, 1u, 2u, 3u);
}
{{- end}}

fn load(e: vec4<u32>, row: u32, origin: u32, high: u32) -> vec4<f32> {
{{- template "fours" .Prologue}}
    return {{.Prologue.Call}};
}
{{- if eq .Second "gradient"}}

fn load_gradient(e: vec4<u32>, origin: u32, high: u32) -> vec4<f32> {
{{- if eq .Width 4}}
    let i = min(e.x, high - 1u);
    return m[i / 4u] * vector0[(i - origin - p.vector_base) / 4u];
{{- else}}
    let i = min(e, vec4(high - 1u));
    let j = i - (origin + p.vector_base);
    return vec4(m[i.x], m[i.y], m[i.z], m[i.w]) * vec4(vector0[j.x], vector0[j.y], vector0[j.z], vector0[j.w]);
{{- end}}
}
{{- end}}
{{- if ne .Stage "part"}}

{{if eq .Second "gradient" -}}
fn store(e: vec4<u32>, origin: u32, high: u32, v: vec4<f32>, g: vec4<f32>, k: vec4<f32>) {
    let y4 = apply(v, g, k);
{{- else -}}
fn store(e: vec4<u32>, row: u32, origin: u32, high: u32, v: vec4<f32>, k: vec2<f32>) {
{{- template "fours" .Epilogue}}
{{- if eq .Width 4}}
    let j = (min(e.x, high - 1u) - origin - p.vector_base) / 4u;
    let r = apply(v, k{{range $i := seq .Vectors}}, vector{{$i}}[j]{{end}});
{{- else}}
    let j = min(e, vec4(high - 1u)) - (origin + p.vector_base);
    let r = apply(v, k{{range $i := seq .Vectors}}, vec4(vector{{$i}}[j.x], vector{{$i}}[j.y], vector{{$i}}[j.z], vector{{$i}}[j.w]){{end}});
{{- end}}
    let y4 = {{.Epilogue.Call}};
{{- end}}
{{- if eq .Width 4}}
    if e.x < high {
        y[e.x / 4u] = y4;
{{- if eq .Second "added"}}
        sum[e.x / 4u] = v;
{{- end}}
    }
{{- else}}
{{- range $lane := .Components}}
    if e.{{$lane}} < high {
        y[e.{{$lane}}] = y4.{{$lane}};
{{- if eq $.Second "added"}}
        sum[e.{{$lane}}] = v.{{$lane}};
{{- end}}
    }
{{- end}}
{{- end}}
}
{{- end}}

@compute @workgroup_size({{.Workgroup}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) local: u32{{template "tree_inputs" .}}) {
    let lane = local % {{.Lanes}}u;
    let asked = p.first + linear_id(workgroup, grid) * {{div .Workgroup .Lanes}}u + local / {{.Lanes}}u;
    let task = min(asked, p.end - 1u); // threads beyond the end repeat the last task without writing
    let row = task / p.parts;
    let start = (task - row * p.parts) * p.chunk;
    let origin = row * p.cols - p.base;
    let low = origin + start;
    let high = origin + min(start + p.chunk, p.cols);
    var acc = empty();
{{- if eq .Stage "write"}}
    for (var i = lane; i < p.parts; i += {{.Lanes}}u) {
        acc = merge(acc, statistics[row * p.parts + i - p.part_base]);
    }
{{- else if .Blocks}}
{{- range $j := seq .Blocks}}
    let e{{$j}} = elements(low, lane, {{$j}}u);
    let v{{$j}} = load(e{{$j}}, row, origin, high);
{{- if eq $.Second "gradient"}}
    let g{{$j}} = load_gradient(e{{$j}}, origin, high);
{{- end}}
    acc = take(acc, v{{$j}}{{if eq $.Second "gradient"}}, g{{$j}}{{end}}, e{{$j}} < vec4(high));
{{- end}}
{{- else}}
    for (var j = 0u; low + j * {{mul .Lanes 4}}u < high; j++) {
        let e = elements(low, lane, j);
        acc = take(acc, load(e, row, origin, high){{if eq .Second "gradient"}}, load_gradient(e, origin, high){{end}}, e < vec4(high));
    }
{{- end}}
{{- template "tree.wgsl" .}}{{template "tree_all" .}}
    if asked < p.end {
{{- if eq .Stage "part"}}
        if lane == 0u {
            statistics[task - p.part_base] = acc;
        }
{{- else}}
        let k = coefficients(acc);
{{- if eq .Second "gradient"}}
        if lane == 0u{{if eq .Stage "write"}} && start == 0u{{end}} {
            norms[row - p.norm_base] = k.xy;
        }
{{- end}}
{{- if .Blocks}}
{{- range $j := seq .Blocks}}
        store(e{{$j}}, {{if ne $.Second "gradient"}}row, {{end}}origin, high, v{{$j}}{{if eq $.Second "gradient"}}, g{{$j}}{{end}}, k);
{{- end}}
{{- else}}
        for (var j = 0u; low + j * {{mul .Lanes 4}}u < high; j++) {
            let e = elements(low, lane, j);
            store(e, {{if ne .Second "gradient"}}row, {{end}}origin, high, load(e, row, origin, high){{if eq .Second "gradient"}}, load_gradient(e, origin, high){{end}}, k);
        }
{{- end}}
{{- end}}
    }
}
