// What the gradients of attention need of each query: the logarithm of its sum, and Σdy·y. Eight neighbouring threads have a query.
struct Params {
    total: u32, // queries of all heads
    n: u32, heads: u32, d: u32,
    y0: u32, lse0: u32, stats0: u32, // elements at which the bound parts begin
    first: u32,                      // query
}

@group(0) @binding(0) var<storage, read> y: array<{{.Unit}}>;
@group(0) @binding(1) var<storage, read> dy: array<{{.Unit}}>;
@group(0) @binding(2) var<storage, read> lse: array<f32>; // [batch, heads, n]
@group(0) @binding(3) var<storage, read_write> stats: array<vec2<f32>>;
@group(0) @binding(4) var<uniform> p: Params;

var<workgroup> sums: array<f32, 64>;
{{.Functions}}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let number = linear_id(workgroup, grid) * 8u + local / 8u;
    let there = number < p.total;
    let query = p.first + number; // in order of lse
    let i = query % p.n;
    let head = query / p.n % p.heads;
    let row = ((query / p.n / p.heads * p.n + i) * p.heads + head) * p.d - p.y0;
    var sum = 0.0;
    for (var c = 4u * (local % 8u); c < p.d; c += 32u) {
        sum += dot(load_y(row, c, there), load_dy(row, c, there));
    }
    sums[local] = sum;
    workgroupBarrier();
    if there && local % 8u == 0u {
        for (var j = 1u; j < 8u; j++) {
            sum += sums[local + j];
        }
        let log = lse[query - p.lse0];
        // Beside the greatest number no score has any weight.
        stats[query - p.stats0] = vec2(select(log, 3.4028234e38, is_inf(log) && (bitcast<u32>(log) >> 31u) != 0u), sum);
    }
}
