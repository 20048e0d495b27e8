// Converts between f32 and pairs of halves in a word. The last pair of an odd number has room: buffers are multiples of four words.
struct Params {
    pairs: u32,
}

@group(0) @binding(0) var<storage, read> x: array<{{if .Half}}vec2<f32>{{else}}u32{{end}}>;
@group(0) @binding(1) var<storage, read_write> y: array<{{if .Half}}u32{{else}}vec2<f32>{{end}}>;
@group(0) @binding(2) var<uniform> p: Params;
{{if .Half}}
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
{{end}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let i = linear_id(workgroup, grid) * {{.Lanes}}u + local.x;
    if i >= p.pairs { return; }
{{- if .Half}}
    let v = x[i];
    y[i] = half_of(v.x) | (half_of(v.y) << 16u);
{{- else}}
    y[i] = unpack2x16float(x[i]);
{{- end}}
}
