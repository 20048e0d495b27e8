{{template "product_head" .}}
{{template "product_element" .}}
// One invocation per element, in order: the yardstick of all other variants.
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let id = linear_id(workgroup, grid);
    if id >= p.total { return; }
    let z = id / p.tiles;
    let i = id % p.tiles * {{.Lanes}}u + local.x;
    let row = i / p.cols;
    let col = i % p.cols;
    if row >= p.rows { return; }
    let base_a = p.a0 + z / p.splits * p.stride_a;
    let base_b = p.b0 + z / p.splits * p.stride_b;
    let first = z % p.splits * p.split;
    let end = min(first + p.split, p.depth);
    var sum = 0.0;
    for (var k = first; k < end; k++) {
        sum += at_a(base_a + {{if .TransA}}k * p.lda + row{{else}}row * p.lda + k{{end}}) * at_b(base_b + {{if .TransB}}col * p.ldb + k{{else}}k * p.ldb + col{{end}});
    }
    let o = p.c0 + z * p.stride_c + row * p.ldc + col;
    res[o] = finish(sum, row, col, o);
}
