// Statistic of rms_norm and, as variant l2, of l2_normalize: the sum of squares.
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
    return vec2(select(inverseSqrt(a{{if ne .Variant "l2"}} / f32(p.cols){{end}} + p.epsilon), 0.0, is_inf(a)), 0.0);
}
{{if eq .Variant "l2"}}
fn apply(v: vec4<f32>, k: vec2<f32>) -> vec4<f32> {
    return v * k.x;
}
{{else}}
fn apply(v: vec4<f32>, k: vec2<f32>, gamma: vec4<f32>) -> vec4<f32> {
    return v * k.x * gamma;
}
{{end}}
