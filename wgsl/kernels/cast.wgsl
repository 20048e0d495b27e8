// Converts between pairs of f32, and of f16 or bf16 in a word. The last pair of an odd number has room: buffers are multiples of
// four words.
struct Params {
    pairs: u32,
}

@group(0) @binding(0) var<storage, read> x: array<{{if eq .From "f32"}}vec2<f32>{{else}}u32{{end}}>;
@group(0) @binding(1) var<storage, read_write> y: array<{{if eq .To "f32"}}vec2<f32>{{else}}u32{{end}}>;
@group(0) @binding(2) var<uniform> p: Params;
{{if eq .To "f16"}}
// Nearest half, ties to even. pack2x16float may round otherwise and may make a finite value of what is too large.
fn half_of(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    let sign = (bits >> 16u) & 0x8000u;
    let magnitude = bits & 0x7fffffffu;
    if magnitude > 0x7f800000u { return sign | 0x7e00u; }
    if magnitude >= 0x477ff000u { return sign | 0x7c00u; } // 65520, half-way beyond the largest half
    if magnitude >= 0x38800000u { // normal: the exponent is 112 less
        let r = magnitude - 0x38000000u;
        return sign | ((r + 0xfffu + ((r >> 13u) & 1u)) >> 13u);
    }
    let shift = min(126u - (magnitude >> 23u), 31u); // subnormal: units of 2^-24
    let m = (magnitude & 0x7fffffu) | 0x800000u;
    let q = m >> shift;
    let rest = m & ((1u << shift) - 1u);
    let tie = 1u << (shift - 1u);
    return sign | (q + select(0u, 1u, rest > tie || (rest == tie && (q & 1u) == 1u)));
}
{{else if eq .To "bf16"}}
// Nearest bf16, ties to even. NaN is told apart: rounding could make it Inf or zero.
fn bf16_of(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    if (bits & 0x7fffffffu) > 0x7f800000u { return (bits >> 16u) | 0x40u; }
    return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}
{{end}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let i = linear_id(workgroup, grid) * {{.Lanes}}u + local.x;
    if i >= p.pairs { return; }
{{- if eq .From "f32"}}
    let v = x[i];
{{- else if eq .From "f16"}}
    let v = unpack2x16float(x[i]);
{{- else}}
    let v = vec2<f32>(bitcast<f32>(x[i] << 16u), bitcast<f32>(x[i] & 0xffff0000u));
{{- end}}
{{- if eq .To "f16"}}
    y[i] = half_of(v.x) | (half_of(v.y) << 16u);
{{- else if eq .To "bf16"}}
    y[i] = bf16_of(v.x) | (bf16_of(v.y) << 16u);
{{- else}}
    y[i] = v;
{{- end}}
}
