// Statistic of layer_norm: count, mean and sum of squared deviations, joined pairwise (Chan, Golub and LeVeque, 1979).
fn empty() -> vec4<f32> {
    return vec4<f32>();
}

fn take(a: vec4<f32>, v: vec4<f32>, valid: vec4<bool>) -> vec4<f32> {
    let ones = select(vec4<f32>(), vec4(1.0), valid);
    let n = dot(ones, ones);
    let mean = dot(select(vec4<f32>(), v, valid), ones) / max(n, 1.0);
    let d = select(vec4<f32>(), v - mean, valid);
    let rest = dot(d, ones) / max(n, 1.0); // what rounding left out of the mean
    return merge(a, vec4(n, mean + rest, abs(dot(d, d) - n * rest * rest), 0.0));
}

fn merge(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    if a.x == 0.0 {
        return b;
    }
    if b.x == 0.0 {
        return a;
    }
    let n = a.x + b.x;
    let d = b.y - a.y;
    let w = b.x / n;
    return vec4(n, a.y + d * w, a.z + b.z + d * d * (a.x * w), 0.0);
}

fn coefficients(a: vec4<f32>) -> vec2<f32> {
    return vec2(a.y, inverseSqrt(a.z / a.x + p.epsilon));
}

fn apply(v: vec4<f32>, k: vec2<f32>, gamma: vec4<f32>, beta: vec4<f32>) -> vec4<f32> {
    return (v - k.x) * k.y * gamma + beta;
}
