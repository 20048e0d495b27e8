// Statistic of rms_norm_backward: the sums of squares and of products with g.
fn empty() -> vec2<f32> {
    return vec2<f32>();
}

fn take(a: vec2<f32>, v: vec4<f32>, g: vec4<f32>, valid: vec4<bool>) -> vec2<f32> {
    let x = select(vec4<f32>(), v, valid);
    return a + vec2(dot(x, x), dot(x, select(vec4<f32>(), g, valid)));
}

fn merge(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    return a + b;
}

fn coefficients(a: vec2<f32>) -> vec4<f32> {
    let r = select(inverseSqrt(a.x / f32(p.cols) + p.epsilon), 0.0, is_inf(a.x));
    return vec4(0.0, r, 0.0, r * r * (r / f32(p.cols)) * a.y);
}

fn apply(v: vec4<f32>, g: vec4<f32>, k: vec4<f32>) -> vec4<f32> {
    return g * k.y - v * k.w;
}
