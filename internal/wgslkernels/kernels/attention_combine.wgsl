// Joins the parts that attention_decode.wgsl leaves. Each thread makes one element.
struct Params {
    total: u32, parts: u32,
    n: u32, heads: u32, kvheads: u32, d: u32, group: u32, rows: u32,
    partial0: u32, y0: u32,
}

@group(0) @binding(0) var<storage, read> partial: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> p: Params;

fn weight_of(d: f32) -> f32 {
    return select(select(exp(d), 0.0, d < -104.0), d, is_nan(d));
}

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let i = linear_id(workgroup, grid) * {{.Lanes}}u + local;
    if i >= p.total { return; }
    let head = i / p.d % p.heads;
    let token = i / p.d / p.heads;
    let row = token % p.n * p.group + head % p.group;
    let unit = (token / p.n * p.kvheads + head / p.group) * p.parts;
    let first = p.partial0 + (unit * p.rows + row) * (p.d + 2u);
    let stride = p.rows * (p.d + 2u);
    var best = -3.4028234e38;
    for (var part = 0u; part < p.parts; part++) { best = max(best, partial[first + part * stride]); }
    var sum = 0.0;
    var acc = 0.0;
    for (var part = 0u; part < p.parts; part++) {
        let at = first + part * stride;
        if partial[at + 1u] == 0.0 { continue; } // saw nothing
        let w = weight_of(partial[at] - best);
        sum += w * partial[at + 1u];
        acc += w * partial[at + 2u + i % p.d];
    }
    y[p.y0 + i] = acc / select(sum, 1.0, sum == 0.0);
}
