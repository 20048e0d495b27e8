// Copies the rows of a table that ids name, in units of {{if .Vec}}four words{{else}}a word{{end}}; other ids give
// rows of not_a_number. The bound part of the table begins with row low: ids below low or from high on, but inside the
// vocabulary, belong to another dispatch.
struct Params {
    total: u32, width: u32, low: u32, high: u32,
    vocabulary: u32, not_a_number: u32,
    table0: u32, ids0: u32, y0: u32,
}

@group(0) @binding(0) var<storage, read> table: array<{{if .Vec}}vec4<u32>{{else}}u32{{end}}>;
@group(0) @binding(1) var<storage, read> ids: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<{{if .Vec}}vec4<u32>{{else}}u32{{end}}>;
@group(0) @binding(3) var<uniform> p: Params;

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let i = linear_id(workgroup, grid) * {{.Lanes}}u + local.x;
    if i >= p.total { return; }
    let id = ids[p.ids0 + i / p.width];
    if id >= p.vocabulary { // negative ones too
        y[p.y0 + i] = {{if .Vec}}vec4<u32>(p.not_a_number){{else}}p.not_a_number{{end}};
    } else if id >= p.low && id < p.high {
        y[p.y0 + i] = table[p.table0 + (id - p.low) * p.width + i % p.width];
    }
}
