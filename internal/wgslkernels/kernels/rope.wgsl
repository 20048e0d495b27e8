// Turns pairs of elements of heads by angles: position·frequency/factor. An invocation has one pair of some heads of a token, or
// one element that does not turn. The frequency of a pair is that of pair 0 times a step for each bit of the pair's number.
struct Params {
    total: u32, // invocations of this dispatch
    heads: u32,
    d: u32,     // elements of a head
    dims: u32,  // of them turn
    chunk: u32, // heads of an invocation
    chunks: u32, // of a token
    first: u32, // token of this dispatch
    periods: u32, // positions, after which they begin anew
    base: u32,  // element at which the bound part of x, and of y, begins
    position_base: u32, // and that of the positions
    apart: u32, // 1, or half of dims where pairs are NeoX's
    scaled: u32, // whether there are factors
    direction: f32,
    inf: u32,
{{- if .Precise}}
    steps: array<vec4<u32>, 6>, // turns per position of pair 0 in 8.56 bits, then fractions of 64 bits; low words first
{{- else}}
    steps: array<vec4<u32>, 3>, // radians per position of pair 0, then factors, as bits
{{- end}}
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> positions: array<i32>;
@group(0) @binding(2) var<storage, read> factors: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> p: Params;

{{.Functions}}
{{- if .Precise}}
fn step_of(j: u32) -> vec2<u32> {
    let v = p.steps[j / 2u];
    return select(v.zw, v.xy, j % 2u == 0u);
}

// The product of two words.
fn multiply(a: u32, b: u32) -> vec2<u32> {
    let al = a & 0xffffu;
    let ah = a >> 16u;
    let bl = b & 0xffffu;
    let bh = b >> 16u;
    let low = al * bl;
    let m = al * bh;
    let n = ah * bl;
    let middle = (low >> 16u) + (m & 0xffffu) + (n & 0xffffu);
    return vec2((low & 0xffffu) | (middle << 16u), ah * bh + (m >> 16u) + (n >> 16u) + (middle >> 16u));
}

fn add(a: vec2<u32>, b: u32) -> vec2<u32> {
    let low = a.x + b;
    return vec2(low, a.y + select(0u, 1u, low < b));
}

// The upper half of the product of two numbers of 64 bits, but for its last bit or two.
fn upper(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return add(add(multiply(a.y, b.y), multiply(a.y, b.x).y), multiply(a.x, b.y).y);
}

// a/f modulo 2⁶⁴, digit by digit: f is a whole number m of 24 bits times a power of two.
fn divide(a: vec2<u32>, f: f32) -> vec2<u32> {
    let bits = bitcast<u32>(f);
    let m = (bits & 0x7fffffu) | 0x800000u;
    var shift = 150 - i32((bits >> 23u) & 0xffu);
    var number = a;
    if shift <= -64 {
        return vec2(0u);
    } else if shift <= -32 {
        number = vec2(a.y >> u32(-shift - 32), 0u);
    } else if shift < 0 {
        number = vec2((a.x >> u32(-shift)) | (a.y << u32(32 + shift)), a.y >> u32(-shift));
    }
    shift = 64 + max(shift, 0); // bits of the quotient
    var rest = 0u;
    var q = vec2<u32>();
    while shift > 0 {
        let n = u32(min(shift, 8));
        rest = (rest << n) | (number.y >> (32u - n));
        number = vec2(number.x << n, (number.y << n) | (number.x >> (32u - n)));
        q = vec2((q.x << n) | (rest / m), (q.y << n) | (q.x >> (32u - n)));
        rest %= m;
        shift -= i32(n);
    }
    if (bits >> 31u) == 1u {
        q = add(~q, 1u);
    }
    return q;
}

// The sine and the cosine of position·frequency/factor turns, of which only the fraction counts.
fn turn(position: i32, pair: u32, factor: f32) -> vec2<f32> {
    var f = step_of(0u);
    for (var j = 0u; j < {{.Bits}}u; j++) {
        if ((pair >> j) & 1u) == 1u {
            f = upper(f, step_of(j + 1u));
        }
    }
    if p.scaled != 0u {
        f = divide(f, factor);
    }
    let n = bitcast<u32>(position);
    let low = multiply(n, f.x);
    let high = low.y + n * f.y - select(0u, f.x, position < 0);
    let turns = (high << 8u) | (low.x >> 24u); // of 2³²
    let quadrant = (turns + 0x20000000u) >> 30u;
    let r = f32(bitcast<i32>(turns - (quadrant << 30u))) * 1.4629180792671596e-9;
    let z = r * r;
    let s = r + r * z * (-1.6666667e-1 + z * (8.3333333e-3 + z * (-1.9841270e-4 + z * 2.7557319e-6)));
    let c = 1.0 + z * (-0.5 + z * (4.1666667e-2 + z * (-1.3888889e-3 + z * 2.4801587e-5)));
    let odd = (quadrant & 1u) == 1u;
    let sc = vec2(select(s, c, odd), select(c, s, odd));
    let turned = select(sc, -sc, vec2(quadrant >= 2u, quadrant == 1u || quadrant == 2u));
    let none = is_nan(factor) || (bitcast<u32>(factor) & 0x7f800000u) == 0u;
    return select(turned, vec2(nan()), none);
}
{{- else}}
fn turn(position: i32, pair: u32, factor: f32) -> vec2<f32> {
    var f = bitcast<f32>(p.steps[0].x);
    for (var j = 0u; j < {{.Bits}}u; j++) {
        if ((pair >> j) & 1u) == 1u {
            f *= bitcast<f32>(p.steps[(j + 1u) / 4u][(j + 1u) % 4u]);
        }
    }
    let angle = f32(position) * f / factor;
    let wild = is_nan(factor) || factor == 0.0;
    return select(vec2(sine(angle, 0.0), sine(angle, 1.0)), vec2(nan()), wild);
}
{{- end}}

@compute @workgroup_size({{.Workgroup}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let i = linear_id(workgroup, grid) * {{.Workgroup}}u + local;
    if i >= p.total { return; }
    let pairs = p.dims / 2u;
    let units = p.d - pairs;
    let unit = i % units;
    let rest = i / units;
    let token = p.first + rest / p.chunks;
    let head = rest % p.chunks * p.chunk;
    let end = min(head + p.chunk, p.heads);
    let origin = token * p.heads * p.d - p.base;
    if unit >= pairs {
        for (var h = head; h < end; h++) {
            let at = origin + h * p.d + pairs + unit;
            y[at] = x[at];
        }
        return;
    }
    var factor = 1.0;
    if p.scaled != 0u {
        factor = factors[unit];
    }
    let sc = turn(positions[token % p.periods - p.position_base], unit, factor) * vec2(p.direction, 1.0);
    let first = select(unit, 2u * unit, p.apart == 1u);
    for (var h = head; h < end; h++) {
        let at = origin + h * p.d + first;
        let a = x[at];
        let b = x[at + p.apart];
        y[at] = a * sc.y - b * sc.x;
        y[at + p.apart] = a * sc.x + b * sc.y;
    }
}
