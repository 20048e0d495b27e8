// Exchanges the axes of matrices: y[z][i][j] = x[z][j][i] for i < rows, j < cols. Tiles of 16×16 pass through workgroup memory, so that
// both sides are walked along their rows; a 17th column puts the tile's columns into different banks.
struct Params {
    rows: u32, cols: u32, total: u32, across: u32, // tiles
    tiles: u32, x0: u32, y0: u32,
    x_row: u32, y_row: u32, x_matrix: u32, y_matrix: u32, // distances
}

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform> p: Params;

var<workgroup> tile: array<u32, 272>;

@compute @workgroup_size(16, {{.Down}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let id = linear_id(workgroup, grid);
    if id >= p.total { return; }
    let z = id / p.tiles;
    let i = id % p.tiles / p.across * 16u;
    let j = id % p.tiles % p.across * 16u;
    for (var l = local.y; l < 16u; l += {{.Down}}u) {
        if j + l < p.cols && i + local.x < p.rows {
            tile[l * 17u + local.x] = x[p.x0 + z * p.x_matrix + (j + l) * p.x_row + i + local.x];
        }
    }
    workgroupBarrier();
    for (var l = local.y; l < 16u; l += {{.Down}}u) {
        if i + l < p.rows && j + local.x < p.cols {
            y[p.y0 + z * p.y_matrix + (i + l) * p.y_row + j + local.x] = tile[local.x * 17u + l];
        }
    }
}
