// Copies the rows of x that indices name, in units of {{if .Vec}}four words{{else}}a word{{end}}: y[o, j] = x[o, index], with the index at
// o·own + j; other where it is none of the rows. The bound part of x begins with row low, counted through all o: rows below low or
// from high on belong to another dispatch. Rows of y are counted through all o, too, from first on.
struct Params {
    total: u32, width: u32, low: u32, high: u32,
    rows: u32, count: u32, own: u32, other: u32,
    first: u32, x0: u32, indices0: u32, y0: u32,
}

@group(0) @binding(0) var<storage, read> x: array<{{if .Vec}}vec4<u32>{{else}}u32{{end}}>;
@group(0) @binding(1) var<storage, read> indices: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<{{if .Vec}}vec4<u32>{{else}}u32{{end}}>;
@group(0) @binding(3) var<uniform> p: Params;

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let i = linear_id(workgroup, grid) * {{.Lanes}}u + local.x;
    if i >= p.total { return; }
    let row = p.first + i / p.width;
    let o = row / p.count;
    let id = indices[p.indices0 + o * p.own + row % p.count]; // indices0 may wrap below zero, and back again
    let place = o * p.rows + id;
    if id >= p.rows { // negative ones too
        y[p.y0 + i] = {{if .Vec}}vec4<u32>(p.other){{else}}p.other{{end}};
    } else if place >= p.low && place < p.high {
        y[p.y0 + i] = x[p.x0 + (place - p.low) * p.width + i % p.width];
    }
}
