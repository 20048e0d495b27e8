// How many steps z ← z² + c takes to leave the circle of radius 2, at most as many as allowed; one invocation for each pixel.

@group(0) @binding(0) var<storage, read> window: vec4<f32>; // left, top, width, height in the complex plane
@group(0) @binding(1) var<storage, read_write> escape: array<f32>;

struct Params {
    width: u32,
    height: u32,
    iterations: u32,
}
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.width || id.y >= params.height) {
        return;
    }
    let at = (vec2<f32>(id.xy) + 0.5) / vec2<f32>(f32(params.width), f32(params.height));
    let c = window.xy + at * window.zw;
    var z = vec2<f32>(0.0);
    var n = 1u;
    while (n < params.iterations && dot(z, z) <= 4.0) {
        z = vec2<f32>(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
        n++;
    }
    escape[id.y * params.width + id.x] = f32(n);
}
