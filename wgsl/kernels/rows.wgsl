// Transforms each row by a statistic of it. A row is cut into parts; a task is one part, worked on by Lanes threads, and a
// workgroup holds as many tasks as fit. Where a row is one part, stage "whole" does everything, reading x once if the row fits
// the threads' registers. Where it has several, stage "part" leaves the statistics of parts, and stage "write" joins those of
// its row and transforms its part. Functions empty, take, merge, coefficients and apply belong to the statistic.
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

fn load(e: vec4<u32>, high: u32) -> vec4<f32> {
    let i = min(e.x, high - 1u) / 4u;
    return x[i]{{if eq .Second "added"}} + m[i]{{end}};
}
{{- if eq .Second "gradient"}}

fn load_gradient(e: vec4<u32>, origin: u32, high: u32) -> vec4<f32> {
    let i = min(e.x, high - 1u);
    return m[i / 4u] * vector0[(i - origin - p.vector_base) / 4u];
}
{{- end}}
{{else}}
// The four elements of block j of a thread's share.
fn elements(low: u32, lane: u32, j: u32) -> vec4<u32> {
    return vec4(low + lane + {{mul .Lanes 4}}u * j) + {{.Lanes}}u * vec4(0u, 1u, 2u, 3u);
}

fn load(e: vec4<u32>, high: u32) -> vec4<f32> {
    let i = min(e, vec4(high - 1u));
    return vec4(x[i.x], x[i.y], x[i.z], x[i.w]){{if eq .Second "added"}} + vec4(m[i.x], m[i.y], m[i.z], m[i.w]){{end}};
}
{{- if eq .Second "gradient"}}

fn load_gradient(e: vec4<u32>, origin: u32, high: u32) -> vec4<f32> {
    let i = min(e, vec4(high - 1u));
    let j = i - (origin + p.vector_base);
    return vec4(m[i.x], m[i.y], m[i.z], m[i.w]) * vec4(vector0[j.x], vector0[j.y], vector0[j.z], vector0[j.w]);
}
{{- end}}
{{end}}
{{- if ne .Stage "part"}}
{{- if eq .Second "gradient"}}
fn store(e: vec4<u32>, origin: u32, high: u32, v: vec4<f32>, g: vec4<f32>, k: vec4<f32>) {
    let r = apply(v, g, k);
{{- else}}
fn store(e: vec4<u32>, origin: u32, high: u32, v: vec4<f32>, k: vec2<f32>) {
{{- if eq .Width 4}}
    let i = (min(e.x, high - 1u) - origin - p.vector_base) / 4u;
    var r = apply(v, k{{range $i := seq .Vectors}}, vector{{$i}}[i]{{end}});
{{- else}}
    let i = min(e, vec4(high - 1u)) - (origin + p.vector_base);
    var r = apply(v, k{{range $i := seq .Vectors}}, vec4(vector{{$i}}[i.x], vector{{$i}}[i.y], vector{{$i}}[i.z], vector{{$i}}[i.w]){{end}});
{{- end}}
{{- end}}
{{- if eq .Width 4}}
    if e.x < high {
{{- if eq .Second "gate"}}
        let a = m[e.x / 4u];
        r *= vec4(swish(a.x), swish(a.y), swish(a.z), swish(a.w));
{{- end}}
        y[e.x / 4u] = r;
{{- if eq .Second "added"}}
        sum[e.x / 4u] = v;
{{- end}}
    }
{{- else}}
{{- range $lane := .Components}}
    if e.{{$lane}} < high {
        y[e.{{$lane}}] = r.{{$lane}}{{if eq $.Second "gate"}} * swish(m[e.{{$lane}}]){{end}};
{{- if eq $.Second "added"}}
        sum[e.{{$lane}}] = v.{{$lane}};
{{- end}}
    }
{{- end}}
{{- end}}
}
{{end}}
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
    let v{{$j}} = load(e{{$j}}, high);
{{- if eq $.Second "gradient"}}
    let g{{$j}} = load_gradient(e{{$j}}, origin, high);
{{- end}}
    acc = take(acc, v{{$j}}{{if eq $.Second "gradient"}}, g{{$j}}{{end}}, e{{$j}} < vec4(high));
{{- end}}
{{- else}}
    for (var j = 0u; low + j * {{mul .Lanes 4}}u < high; j++) {
        let e = elements(low, lane, j);
        acc = take(acc, load(e, high){{if eq .Second "gradient"}}, load_gradient(e, origin, high){{end}}, e < vec4(high));
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
        store(e{{$j}}, origin, high, v{{$j}}{{if eq $.Second "gradient"}}, g{{$j}}{{end}}, k);
{{- end}}
{{- else}}
        for (var j = 0u; low + j * {{mul .Lanes 4}}u < high; j++) {
            let e = elements(low, lane, j);
            store(e, origin, high, load(e, high){{if eq .Second "gradient"}}, load_gradient(e, origin, high){{end}}, k);
        }
{{- end}}
{{- end}}
    }
}
