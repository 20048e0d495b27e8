{{- $word := "u32"}}{{if .Vec}}{{$word = "vec4<u32>"}}{{end -}}
// Puts rows, in units of {{if .Vec}}four words{{else}}a word{{end}}, where indices say: of several updates of a row the last one wins. The bound part of y
// begins with row low.
struct Params {
    total: u32, width: u32, low: u32, high: u32,
    indices0: u32, x0: u32, y0: u32,
}

@group(0) @binding(0) var<storage, read> indices: array<u32>;
@group(0) @binding(1) var<storage, read> last: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<{{$word}}>;
@group(0) @binding(3) var<storage, read_write> y: array<{{$word}}>;
@group(0) @binding(4) var<uniform> p: Params;

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let i = linear_id(workgroup, grid) * {{.Lanes}}u + local.x;
    if i >= p.total { return; }
    let update = i / p.width;
    let row = indices[p.indices0 + update];
    if row < p.low || row >= p.high { return; }
    if last[row - p.low] == update + 1u { y[p.y0 + (row - p.low) * p.width + i % p.width] = x[p.x0 + i]; }
}
