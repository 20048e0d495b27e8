// Sums over the rows of each part: y[part][column] = Σ x[row][column]{{if .Norm}}, the gradient of a norm's result times the norm
// itself, which m, from which the norm is, mean and factor of each row give{{end}}. An invocation has a column of a part.
struct Params {
    first: u32, // part of this dispatch
    end: u32,   // one past its last part
    rows: u32,
    cols: u32,
    chunk: u32, // rows of a part
    blocks: u32, // workgroups of a part
    base: u32,  // element at which the bound part of x, and of m, begins
    norm_base: u32, // row at which that of the norms begins
    y_base: u32, // element at which that of y begins
    row: u32,   // of part 0
    low: u32,   // columns of this dispatch
    high: u32,
    more: u32,  // whether y has sums already, of other rows
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
{{- if .Norm}}
@group(0) @binding(1) var<storage, read> m: array<f32>;
@group(0) @binding(2) var<storage, read> norms: array<vec2<f32>>;
{{- end}}
@group(0) @binding({{sub .Bindings 1}}) var<storage, read_write> y: array<f32>;
@group(0) @binding({{.Bindings}}) var<uniform> p: Params;

@compute @workgroup_size({{.Workgroup}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let id = linear_id(workgroup, grid);
    let part = p.first + id / p.blocks;
    let column = p.low + id % p.blocks * {{.Workgroup}}u + local;
    if part >= p.end || column >= p.high { return; }
    let start = p.row + part * p.chunk;
    let to = part * p.cols - p.y_base + column;
    var sum = 0.0;
    if p.more != 0u {
        sum = y[to];
    }
    for (var row = start; row < min(start + p.chunk, p.rows); row++) {
        let at = row * p.cols - p.base + column;
{{- if .Norm}}
        let norm = norms[row - p.norm_base];
        sum += x[at] * ((m[at] - norm.x) * norm.y);
{{- else}}
        sum += x[at];
{{- end}}
    }
    y[to] = sum;
}
