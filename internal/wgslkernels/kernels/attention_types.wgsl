{{/* Rows of elements that are stored as Type, in a buffer whose units are four elements if Vec, else one word. */}}
{{define "attention_load"}}
// Four elements of the row that starts at element row, from column c on, which is a multiple of 4; zeros after the row's end.
fn load_{{.Buffer}}(row: u32, c: u32, there: bool) -> vec4<f32> {
    if !there || c >= p.d { return vec4<f32>(); }
{{- if .Vec}}
    let u = {{.Buffer}}[(row + c) / 4u];
{{- if eq .Type "f32"}}
    return u;
{{- else if eq .Type "f16"}}
    return vec4(unpack2x16float(u.x), unpack2x16float(u.y));
{{- else}}
    return bitcast<vec4<f32>>(vec4(u.x << 16u, u.x & 0xffff0000u, u.y << 16u, u.y & 0xffff0000u));
{{- end}}
{{- else}}
    let at = vec4(c, c + 1u, c + 2u, c + 3u);
    let e = vec4(row) + min(at, vec4(p.d - 1u));
{{- if eq .Type "f32"}}
    let v = vec4({{.Buffer}}[e.x], {{.Buffer}}[e.y], {{.Buffer}}[e.z], {{.Buffer}}[e.w]);
{{- else}}
    let u = (vec4({{.Buffer}}[e.x / 2u], {{.Buffer}}[e.y / 2u], {{.Buffer}}[e.z / 2u], {{.Buffer}}[e.w / 2u]) >> (16u * (e & vec4(1u)))) & vec4(0xffffu);
{{- if eq .Type "f16"}}
    let v = vec4(unpack2x16float(u.x | (u.y << 16u)), unpack2x16float(u.z | (u.w << 16u)));
{{- else}}
    let v = bitcast<vec4<f32>>(u << vec4(16u));
{{- end}}
{{- end}}
    return select(vec4<f32>(), v, at < vec4(p.d));
{{- end}}
}
{{end}}

{{define "attention_store"}}
{{- if eq .Type "f16"}}
// Nearest half, ties to even: pack2x16float may round otherwise and may make a finite value of what is too large.
fn bits_of(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    let sign = (bits >> 16u) & 0x8000u;
    let magnitude = bits & 0x7fffffffu;
    if magnitude > 0x7f800000u { return sign | 0x7e00u; }
    if magnitude >= 0x477ff000u { return sign | 0x7c00u; } // 65520, half-way beyond the largest half
    let r = magnitude - 0x38000000u; // the exponent is 112 less
    // Subnormal ones, units of 2^-24, come of an addition in which what is below is rounded away.
    let small = bitcast<u32>(bitcast<f32>(magnitude) + 0.5) - 0x3f000000u;
    return sign | select((r + 0xfffu + ((r >> 13u) & 1u)) >> 13u, small, magnitude < 0x38800000u);
}
{{else if eq .Type "bf16"}}
fn bits_of(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    return select((bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u, (bits >> 16u) | 0x40u, is_nan(x));
}
{{end}}
// Stores four elements of the row that starts at element row, from column c on, as far as the row goes.
fn store(row: u32, c: u32, v: vec4<f32>) {
    if c >= p.d { return; }
{{- if .Vec}}
{{- if eq .Type "f32"}}
    y[(row + c) / 4u] = v;
{{- else}}
    y[(row + c) / 4u] = vec2(bits_of(v.x) | (bits_of(v.y) << 16u), bits_of(v.z) | (bits_of(v.w) << 16u));
{{- end}}
{{- else}}
{{- range $i, $c := .Components}}
    if c + {{$i}}u < p.d {
{{- if eq $.Type "f32"}}
        y[row + c + {{$i}}u] = v.{{$c}};
{{- else}}
        let e = row + c + {{$i}}u; // the word's other half may be another thread's
        let shift = 16u * (e & 1u);
        atomicAnd(&y[e / 2u], 0xffff0000u >> shift);
        atomicOr(&y[e / 2u], bits_of(v.{{$c}}) << shift);
{{- end}}
    }
{{- end}}
{{- end}}
}
{{end}}

{{define "attention_common" -}}
fn shifted_exp(d: f32) -> f32 {
    return select(select(exp(d), 0.0, d < -104.0), d, is_nan(d));
}

// The keys that a query sees, counted from the oldest of those in use.
fn seen(query: u32, used: u32) -> vec2<u32> {
    let at = i32(used) - i32(p.n) + i32(query);
    var least = 0;
    var beyond = i32(used);
    if p.causal != 0u { beyond = min(beyond, at + 1); }
    if p.window != 0u {
        least = max(0, at - i32(p.window) + 1);
        beyond = min(beyond, at + i32(p.window));
    }
    return vec2(u32(least), u32(max(least, beyond)));
}

// Where a key begins.
fn key_at(batch: u32, head: u32, key: u32, oldest: u32) -> u32 {
    let slot = oldest + key - select(0u, p.keys, oldest + key >= p.keys);
    return ((batch * p.keys + slot) * p.kv_heads + head) * p.d - p.k0;
}
{{end}}
