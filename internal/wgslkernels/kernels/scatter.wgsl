// Finds the last update of each row. Updates are counted from 1; 0 means none. Rows below low or from high on belong to another
// dispatch, as do updates beyond the count.
struct Params {
    count: u32, low: u32, high: u32, indices0: u32,
}

@group(0) @binding(0) var<storage, read> indices: array<u32>;
@group(0) @binding(1) var<storage, read_write> last: array<atomic<u32>>;
@group(0) @binding(2) var<uniform> p: Params;

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let i = linear_id(workgroup, grid) * {{.Lanes}}u + local.x;
    if i >= p.count { return; }
    let row = indices[p.indices0 + i];
    if row >= p.low && row < p.high { atomicMax(&last[row - p.low], i + 1u); }
}
