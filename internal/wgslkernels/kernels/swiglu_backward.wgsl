fn f(gate: f32, up: f32, dy: f32) -> vec2<f32> {
    return vec2(dy * up * silu_slope(gate), dy * silu(gate));
}
