{{- /* The bits of the nearest number of the type that the template is given. */ -}}
{{if eq . "f16"}}
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
{{else if eq . "bf16"}}
// Nearest bf16, ties to even. NaN is told apart: rounding could make it Inf or zero.
fn bf16_of(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    if (bits & 0x7fffffffu) > 0x7f800000u { return (bits >> 16u) | 0x40u; }
    return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}
{{else if eq . "u8"}}
// Nearest integer, ties to even; above 255 it is 255, below 0 and of NaN 0, which their bits tell.
fn byte_of(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    if bits < 0x437f0000u { return u32(round(x)); }
    return select(255u, 0u, bits > 0x7f800000u);
}
{{end}}
