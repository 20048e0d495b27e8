// Writes one value everywhere, four words at a time: buffers have room up to the next multiple.
struct Params {
    total: u32, value: u32,
}

@group(0) @binding(0) var<storage, read_write> y: array<vec4<u32>>;
@group(0) @binding(1) var<uniform> p: Params;

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let i = linear_id(workgroup, grid) * {{.Lanes}}u + local.x;
    if i < p.total { y[i] = vec4<u32>(p.value); }
}
