{{template "product_head" .}}
// Second pass of a product whose depth was split: lhs holds the partial matrices of each product side by side, rhs is not read.
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let i = linear_id(workgroup, grid) * {{.Lanes}}u + local.x;
    if i >= p.total { return; }
    let part = p.rows * p.cols;
    let e = i % part;
    var at = i / part * p.splits * part + e;
    var sum = 0.0;
    for (var s = 0u; s < p.splits; s++) {
        sum += lhs[at];
        at += part;
    }
    let row = e / p.cols;
    let col = e % p.cols;
    let o = p.c0 + i / part * p.stride_c + row * p.ldc + col;
    res[o] = finish(sum, row, col, o);
}
