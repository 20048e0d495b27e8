// Functions for expressions; kernels take in only those that they use. WGSL's own are too free: they may flush, assume that
// NaN and Inf do not occur, and are exact to 2⁻¹¹ (sin, cos) or worse. NaN operands come out as they went in; infinite
// constants come from the uniform p, because a shader may not spell them.

fn inf() -> f32 {
    return bitcast<f32>(p.inf);
}

fn nan() -> f32 {
    return bitcast<f32>(p.inf | 0x400000u);
}

// What inspect says of a single element: the bits of infinities and, above them, of NaN.
fn special_number(x: f32, i: u32) -> vec4<u32> {
    let magnitude = bitcast<u32>(x) & 0x7fffffffu;
    let kinds = vec2(magnitude > 0x7f800000u, magnitude == 0x7f800000u);
    return vec4(select(vec2(0u), vec2(1u), kinds), select(vec2(0xffffffffu), vec2(i), kinds));
}

// A value that compilers know nothing of: they may not take x − x for 0, or a sum of sums in another order. So an expression gives what
// its operations give one by one.
fn opaque(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) ^ (p.inf & 1u));
}

fn nan_max(a: f32, b: f32) -> f32 {
    return select(select(max(a, b), b, is_nan(b)), a, is_nan(a));
}

fn nan_min(a: f32, b: f32) -> f32 {
    return select(select(min(a, b), b, is_nan(b)), a, is_nan(a));
}

// nan_min(nan_max(a, low), high), with one test of a; those of the bounds are the same for all elements.
fn nan_clip(a: f32, low: f32, high: f32) -> f32 {
    let bad = select(high, low, is_nan(low));
    return select(select(min(max(a, low), high), bad, is_nan(bad)), a, is_nan(a));
}

fn ieee_sqrt(x: f32) -> f32 {
    // WGSL may take 1/inverseSqrt(x), which has no business at 0 and Inf.
    let y = select(sqrt(x), x, x == 0.0 || is_nan(x) || is_inf(x));
    return select(y, nan(), x < 0.0);
}

fn ieee_exp(x: f32) -> f32 {
    let y = select(exp(x), 0.0, x < -103.97);
    return select(select(y, inf(), x > 88.722839), x, is_nan(x));
}

// expm1 by its series near 0, where exp(x) − 1 cancels.
fn ieee_expm1(x: f32) -> f32 {
    if abs(x) < 0.5 {
        return x + x * x * (0.5 + x * (1.6666667e-1 + x * (4.1666667e-2 + x * (8.3333333e-3 + x * (1.3888889e-3 + x * 1.984127e-4)))));
    }
    return ieee_exp(x) - 1.0;
}

// x = m·2ᵉ with m in [√½, √2): returns (m − 1, e), for finite x above 0.
fn split_exponent(x: f32) -> vec2<f32> {
    let denormal = x < 1.17549435e-38;
    let bits = bitcast<u32>(select(x, x * 8388608.0, denormal)) - 0x3f3504f3u;
    let e = f32(i32(bits) >> 23u) - select(0.0, 23.0, denormal);
    return vec2(bitcast<f32>((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0, e);
}

// log(1+f) − f for f in [√½−1, √2−1], by the series of 2·atanh(f/(2+f)).
fn log1p_rest(f: f32) -> f32 {
    let s = f / (2.0 + f);
    let z = s * s;
    let r = z * (0.66666667 + z * (0.4 + z * (0.28571429 + z * (0.22222222 + z * 0.18181818))));
    let h = 0.5 * f * f;
    return s * (h + r) - h;
}

// What a logarithm is where it is not a number: −Inf at 0, NaN below, Inf and NaN themselves.
fn log_limits(x: f32, y: f32) -> f32 {
    let v = select(select(y, nan(), x < 0.0), -inf(), x == 0.0);
    return select(v, x, is_nan(x) || bitcast<u32>(x) == p.inf);
}

// The natural logarithm of what is finite and above 0.
fn finite_log(x: f32) -> f32 {
    let s = split_exponent(x);
    return s.y * 0.69313812 + (s.x + (log1p_rest(s.x) + s.y * 9.0580006e-6));
}

fn ieee_log(x: f32) -> f32 {
    return log_limits(x, finite_log(x));
}

fn ieee_log2(x: f32) -> f32 {
    let s = split_exponent(x);
    return log_limits(x, s.y + (s.x + log1p_rest(s.x)) * 1.442695);
}

// Sine and cosine in [−π/4, π/4].
fn near_sine(r: f32) -> f32 {
    let z = r * r;
    return r + r * z * (-1.6666667e-1 + z * (8.3333333e-3 + z * (-1.9841270e-4 + z * 2.7557319e-6)));
}

fn near_cosine(r: f32) -> f32 {
    let z = r * r;
    return 1.0 + z * (-0.5 + z * (4.1666667e-2 + z * (-1.3888889e-3 + z * 2.4801587e-5)));
}

// sin(x + quarters·π/2). The argument is reduced to [−π/4, π/4] with π/2 in three parts, of which the first two times k are
// exact (Cody and Waite) up to |x| = 8192 and beyond; then comes the Taylor series.
fn sine(x: f32, quarters: f32) -> f32 {
    let k = round(x * 0.63661977);
    let r = clamp(((x - k * 1.5703125) - k * 4.83751297e-4) - k * 7.549789955e-8, -0.8, 0.8);
    let q = (k + quarters) - 4.0 * floor((k + quarters) * 0.25);
    let y = select(near_sine(r), near_cosine(r), q == 1.0 || q == 3.0);
    return select(select(y, -y, q >= 2.0), nan(), is_nan(x) || is_inf(x));
}

// WGSL bounds the error of a division for divisors to 2¹²⁶ only. Beyond it the Vulkan driver of an H100 gives 0, or NaN of an infinity.
fn ieee_div(a: f32, b: f32) -> f32 {
    let s = select(1.0, 0.25, abs(b) > 0x1p126f);
    return (a * s) / (b * s);
}

fn safe_tanh(x: f32) -> f32 {
    let z = x * x;
    let odd = x + x * z * (-0.33333333 + z * (0.13333333 + z * (-5.3968254e-2 + z * (2.1869489e-2 + z * (-8.8632356e-3 + z * 3.5921280e-3)))));
    let t = 1.0 - 2.0 / (exp(2.0 * min(abs(x), 10.0)) + 1.0);
    return select(select(select(t, -t, x < 0.0), odd, abs(x) < 0.4), x, is_nan(x));
}

fn sigmoid(x: f32) -> f32 {
    let e = exp(-min(abs(x), 200.0));
    let y = select(1.0, e, x < 0.0) / (1.0 + e);
    return select(y, x, is_nan(x));
}

// ½(1 + tanh u) is sigmoid(2u).
fn gelu(x: f32) -> f32 {
    let y = x * sigmoid(1.5957691 * (x + 0.044715 * x * x * x));
    return select(y, 0.0, x < -20.0);
}

// Φ(−|x|) = ½·erfc(|x|/√2) by formula 7.1.26 of Abramowitz and Stegun, exact to 0.8e-7.
fn gelu_erf(x: f32) -> f32 {
    let a = min(abs(x), 20.0);
    let t = 1.0 / (1.0 + 0.23164189 * a);
    let tail = t * (0.127414796 + t * (-0.142248368 + t * (0.7107068705 + t * (-0.7265760135 + t * 0.5307027145))));
    let y = select(x, 0.0, x < 0.0) - abs(x) * (tail * exp(-0.5 * a * a));
    return select(select(y, max(x, 0.0), abs(x) >= 20.0), x, is_nan(x));
}

fn silu(x: f32) -> f32 {
    return select(x * sigmoid(x), 0.0, x < -100.0);
}

// silu(x)·up, of which no factor is smaller than the product unless that is tiny itself: where subnormals are zeros, one would make
// NaN of an infinite up.
fn swiglu(x: f32, up: f32) -> f32 {
    let h = exp(0.5 * clamp(x, -100.0, 0.0));
    let far = (x * h) * up * (h / (1.0 + h * h));
    let near = select(silu(x) * up, (x * up) * sigmoid(x), abs(x) <= 1.0);
    return select(near, far, x < -1.0 && x >= -100.0);
}

// Slopes of activations: sigmoid(w) + x·w'·sigmoid(w)·sigmoid(-w), by e^-|w|, of which all are fractions. Far out, where
// products would overflow, they are what they are at ±Inf.
fn sigmoid_slope(w: f32, xw: f32) -> f32 {
    let e = exp(-min(abs(w), 87.0));
    let r = 1.0 / (1.0 + e);
    return select(r, e * r, w < 0.0) + xw * (e * r * r);
}

fn silu_slope(x: f32) -> f32 {
    let c = clamp(x, -80.0, 80.0);
    return select(sigmoid_slope(c, c), x, is_nan(x));
}

fn gelu_slope(x: f32) -> f32 {
    let c = clamp(x, -10.0, 10.0);
    let q = c * c;
    return select(sigmoid_slope(c * (1.5957691 + 0.071354814 * q), c * (1.5957691 + 0.21406444 * q)), x, is_nan(x));
}

// Φ(x) + x·φ(x), with Φ(−|x|) as in gelu_erf.
fn gelu_erf_slope(x: f32) -> f32 {
    let c = clamp(x, -12.0, 12.0);
    let a = abs(c);
    let t = 1.0 / (1.0 + 0.23164189 * a);
    let tail = t * (0.127414796 + t * (-0.142248368 + t * (0.7107068705 + t * (-0.7265760135 + t * 0.5307027145))));
    let e = exp(-0.5 * a * a);
    let y = select(1.0 - tail * e, tail * e, c < 0.0) + c * e * 0.39894228;
    return select(y, x, is_nan(x));
}

// log(1+e) for e in [0, 1], by the series of 2·atanh(e/(2+e)), which keeps small e.
fn small_log1p(e: f32) -> f32 {
    let s = e / (2.0 + e);
    let z = s * s;
    return 2.0 * s * (1.0 + z * (0.33333333 + z * (0.2 + z * (0.14285714 + z * (0.11111111 + z * (0.09090909 + z * 0.076923077))))));
}

fn softplus(x: f32) -> f32 {
    let y = max(x, 0.0) + small_log1p(exp(-min(abs(x), 100.0)));
    return select(y, x, is_nan(x));
}

// tanh(log(1+n)) is (n²+2n)/(n²+2n+2); for positive x both sides are divided by n².
fn mish(x: f32) -> f32 {
    let e = exp(-min(abs(x), 40.0));
    let up = select(e * (e + 2.0), 1.0 + 2.0 * e, x > 0.0);
    let t = up / (up + select(2.0, 2.0 * e * e, x > 0.0));
    return select(select(x * t, 0.0, x < -40.0), x, is_nan(x));
}

// C's pow: the magnitude from exp2(y·log2|x|), then sign and special cases.
fn ieee_pow(x: f32, y: f32) -> f32 {
    let whole = floor(y) == y || is_inf(y);
    let odd = whole && abs(y) < 16777216.0 && floor(y * 0.5) * 2.0 != y;
    let t = y * ieee_log2(abs(x));
    let m = select(select(exp2(t), inf(), t >= 128.0), 0.0, t < -150.0);
    let v = select(select(m, -m, odd && (bitcast<u32>(x) >> 31u) == 1u), nan(), x < 0.0 && !whole && !is_inf(x));
    let one = y == 0.0 || x == 1.0 || (x == -1.0 && is_inf(y));
    let number = select(v, nan(), is_nan(x) || is_nan(y));
    return select(number, 1.0, one);
}

// Maps floats to integers in the same order, NaN above all and −0 equal to 0, so that maxima are exact where WGSL leaves
// max of NaN open.
fn order_key(x: f32) -> u32 {
    let b = select(bitcast<u32>(x), 0u, bitcast<u32>(x) == 0x80000000u);
    return select(select(b | 0x80000000u, ~b, b >= 0x80000000u), 0xffffffffu, is_nan(x));
}

fn order_value(key: u32) -> f32 {
    return bitcast<f32>(select(~key, key ^ 0x80000000u, key >= 0x80000000u));
}
