// Philox4x32-10: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011. A thread has a counter, which makes
// four numbers; those after the end too.
struct Params {
    total: u32, first: u32, stream: u32,
}

@group(0) @binding(0) var<storage, read> seed: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(2) var<uniform> p: Params;

{{.Functions}}
// The upper and the lower half of a product, by halves of the factors.
fn product(a: u32, b: u32) -> vec2<u32> {
    let low = vec2(a & 0xffffu, b & 0xffffu);
    let high = vec2(a >> 16u, b >> 16u);
    let first = high.x * low.y + ((low.x * low.y) >> 16u);
    let second = low.x * high.y + (first & 0xffffu);
    return vec2(high.x * high.y + (first >> 16u) + (second >> 16u), a * b);
}

fn philox(counter: vec4<u32>, seed: vec2<u32>) -> vec4<u32> {
    var c = counter;
    var key = seed;
    for (var round = 0u; round < {{.Rounds}}u; round++) {
        let a = product({{.Factor0}}u, c.x);
        let b = product({{.Factor1}}u, c.z);
        c = vec4(b.x ^ c.y ^ key.x, b.y, a.x ^ c.w ^ key.y, a.y);
        key += vec2({{.Weyl0}}u, {{.Weyl1}}u);
    }
    return c;
}
{{if .Normal}}
// Two normal numbers by Box and Muller. The angle is taken apart as an integer: quarters of a turn and what is left.
fn normal(u: u32, v: u32) -> vec2<f32> {
    let r = sqrt(max(-2.0 * finite_log(f32((u >> 8u) + 1u) * 5.9604644775390625e-8), 1e-30));
    let turn = v >> 8u;
    let quarter = (turn + 0x200000u) >> 22u;
    let angle = f32(i32(turn) - i32(quarter << 22u)) * 3.7450702829239286e-7;
    let y = vec2(near_cosine(angle), near_sine(angle));
    let turned = select(y, vec2(-y.y, y.x), (quarter & 1u) == 1u);
    return r * select(turned, -turned, (quarter & 2u) == 2u);
}
{{end}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let i = linear_id(workgroup, grid) * {{.Lanes}}u + local.x;
    if i >= p.total { return; }
    let w = philox(vec4(p.first + i, 0u, p.stream, 0u), vec2(seed[0], seed[1]));
{{- if .Normal}}
    y[i] = vec4(normal(w.x, w.y), normal(w.z, w.w));
{{- else}}
    y[i] = vec4<f32>(w >> vec4(8u)) * 5.9604644775390625e-8;
{{- end}}
}
