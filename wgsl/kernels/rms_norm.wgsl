// Statistic of rms_norm: the sum of squares.
fn empty() -> f32 {
    return 0.0;
}

fn take(a: f32, v: vec4<f32>, valid: vec4<bool>) -> f32 {
    let x = select(vec4<f32>(), v, valid);
    return a + dot(x, x);
}

fn merge(a: f32, b: f32) -> f32 {
    return a + b;
}

fn coefficients(a: f32) -> vec2<f32> {
    return vec2(select(inverseSqrt(a / f32(p.cols) + p.epsilon), 0.0, is_inf(a)), 0.0);
}

fn apply(v: vec4<f32>, k: vec2<f32>, gamma: vec4<f32>) -> vec4<f32> {
    return v * k.x * gamma;
}
