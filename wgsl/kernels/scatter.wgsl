// What finds the updates of each row. Updates are counted from 1; 0 means none. Rows below low or from high on belong to another
// dispatch, as do updates beyond the count.
struct Params {
    count: u32, low: u32, high: u32, indices0: u32,
}

@group(0) @binding(0) var<storage, read> indices: array<u32>;
{{- if eq .Mode "last"}}
@group(0) @binding(1) var<storage, read_write> head: array<atomic<u32>>; // the last update of each row
@group(0) @binding(2) var<uniform> p: Params;
{{- else if eq .Mode "link"}}
@group(0) @binding(1) var<storage, read_write> head: array<atomic<u32>>; // an update of each row
@group(0) @binding(2) var<storage, read_write> next: array<u32>; // the one behind it, in any order
@group(0) @binding(3) var<uniform> p: Params;
{{- else}}
@group(0) @binding(1) var<storage, read> head: array<u32>;
@group(0) @binding(2) var<storage, read> next: array<u32>;
@group(0) @binding(3) var<storage, read_write> order: array<u32>; // the next greater one, plus 2³¹ at the first of a row
@group(0) @binding(4) var<uniform> p: Params;
{{- end}}

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let i = linear_id(workgroup, grid) * {{.Lanes}}u + local.x;
    if i >= p.count { return; }
    let row = indices[p.indices0 + i];
    let mine = row >= p.low && row < p.high;
{{- if eq .Mode "last"}}
    if mine { atomicMax(&head[row - p.low], i + 1u); }
{{- else if eq .Mode "link"}}
    if mine { next[i] = atomicExchange(&head[row - p.low], i + 1u); }
{{- else}}
    var first = 0u;
    var after = 0xffffffffu;
    if mine {
        first = 0x80000000u;
        for (var other = head[row - p.low]; other != 0u; other = next[other - 1u]) {
            if other < i + 1u { first = 0u; }
            if other > i + 1u { after = min(after, other); }
        }
    }
    order[i] = first | select(after, 0u, after == 0xffffffffu);
{{- end}}
}
