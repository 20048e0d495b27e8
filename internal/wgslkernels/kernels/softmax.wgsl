// Statistic of softmax: the maximum m, at least −FLT_MAX, and Σexp(x − m). NaN and +Inf make the sum NaN; it is 0 where there
// is nothing but −Inf.
fn empty() -> vec2<f32> {
    return vec2(-3.4028234e38, 0.0);
}

fn shifted_exp(d: f32) -> f32 {
    return select(select(exp(d), 0.0, d < -104.0), d, is_nan(d));
}

fn take(a: vec2<f32>, v: vec4<f32>, valid: vec4<bool>) -> vec2<f32> {
    let x = select(vec4(-inf()), v, valid);
    let m = max(max(a.x, max(x.x, x.y)), max(x.z, x.w));
    return vec2(m, a.y * shifted_exp(a.x - m)
        + ((shifted_exp(x.x - m) + shifted_exp(x.y - m)) + (shifted_exp(x.z - m) + shifted_exp(x.w - m))));
}

fn merge(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    let m = max(a.x, b.x);
    return vec2(m, a.y * shifted_exp(a.x - m) + b.y * shifted_exp(b.x - m));
}
{{if eq .Variant "log"}}
fn coefficients(a: vec2<f32>) -> vec2<f32> {
    return vec2(a.x, select(ieee_log(a.y), nan(), a.y == 0.0));
}

fn apply(v: vec4<f32>, k: vec2<f32>) -> vec4<f32> {
    return (v - k.x) - k.y;
}
{{else}}
fn coefficients(a: vec2<f32>) -> vec2<f32> {
    return vec2(a.x, select(1.0 / a.y, nan(), a.y == 0.0));
}

fn apply(v: vec4<f32>, k: vec2<f32>) -> vec4<f32> {
    let d = v - k.x;
    return vec4(shifted_exp(d.x), shifted_exp(d.y), shifted_exp(d.z), shifted_exp(d.w)) * k.y;
}
{{end}}
