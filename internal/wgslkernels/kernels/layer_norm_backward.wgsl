// Statistic of layer_norm_backward: count, means of x and g, sums of squared deviations of x and of products of the deviations of
// both, joined pairwise (Chan, Golub and LeVeque, 1979).
struct Moments {
    n: f32,
    x: f32,
    g: f32,
    squares: f32,
    @size(16) products: f32, // so that bindings of partial results may begin at any
}

fn empty() -> Moments {
    return Moments(0.0, 0.0, 0.0, 0.0, 0.0);
}

fn take(a: Moments, v: vec4<f32>, g: vec4<f32>, valid: vec4<bool>) -> Moments {
    let ones = select(vec4<f32>(), vec4(1.0), valid);
    let n = dot(ones, ones);
    let each = 1.0 / max(n, 1.0);
    let mean = dot(select(vec4<f32>(), v, valid), ones) * each;
    let mean_g = dot(select(vec4<f32>(), g, valid), ones) * each;
    let d = select(vec4<f32>(), v - mean, valid);
    let e = select(vec4<f32>(), g - mean_g, valid);
    let rest = dot(d, ones) * each; // what rounding left out of the mean
    return merge(a, Moments(n, mean + rest, mean_g, abs(dot(d, d) - n * rest * rest), dot(d, e)));
}

fn merge(a: Moments, b: Moments) -> Moments {
    if a.n == 0.0 {
        return b;
    }
    if b.n == 0.0 {
        return a;
    }
    let n = a.n + b.n;
    let w = b.n / n;
    let d = b.x - a.x;
    let e = b.g - a.g;
    return Moments(n, a.x + d * w, a.g + e * w, a.squares + b.squares + d * d * (a.n * w), a.products + b.products + d * e * (a.n * w));
}

fn coefficients(a: Moments) -> vec4<f32> {
    let r = inverseSqrt(a.squares / a.n + p.epsilon);
    return vec4(a.x, r, a.g, r * r * (r / a.n) * a.products);
}

fn apply(v: vec4<f32>, g: vec4<f32>, k: vec4<f32>) -> vec4<f32> {
    return (g - k.z) * k.y - (v - k.x) * k.w;
}
