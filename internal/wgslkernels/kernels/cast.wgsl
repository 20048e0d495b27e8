// Converts four elements at a time: f32, pairs of f16 or bf16 in words, u8 in a word. The last ones have room: buffers are multiples
// of four words.
struct Params {
    quads: u32,
}

{{define "cast_elements"}}{{if eq . "f32"}}vec4<f32>{{else if eq . "u8"}}u32{{else}}vec2<u32>{{end}}{{end -}}
@group(0) @binding(0) var<storage, read> x: array<{{if .F16}}vec4<f16>{{else}}{{template "cast_elements" .From}}{{end}}>;
@group(0) @binding(1) var<storage, read_write> y: array<{{template "cast_elements" .To}}>;
@group(0) @binding(2) var<uniform> p: Params;
{{template "halves.wgsl" .To}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let i = linear_id(workgroup, grid) * {{.Lanes}}u + local.x;
    if i >= p.quads { return; }
    let q = x[i];
{{- if eq .From "f32"}}
    let v = q;
{{- else if .F16}}
    let v = vec4<f32>(q);
{{- else if eq .From "f16"}}
    let v = vec4<f32>(unpack2x16float(q.x), unpack2x16float(q.y));
{{- else if eq .From "u8"}}
    let v = vec4<f32>((vec4<u32>(q) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u));
{{- else}}
    let v = bitcast<vec4<f32>>(vec4<u32>(q.x << 16u, q.x & 0xffff0000u, q.y << 16u, q.y & 0xffff0000u));
{{- end}}
{{- if eq .To "f16"}}
    y[i] = vec2<u32>(half_of(v.x) | (half_of(v.y) << 16u), half_of(v.z) | (half_of(v.w) << 16u));
{{- else if eq .To "bf16"}}
    y[i] = vec2<u32>(bf16_of(v.x) | (bf16_of(v.y) << 16u), bf16_of(v.z) | (bf16_of(v.w) << 16u));
{{- else if eq .To "u8"}}
    y[i] = byte_of(v.x) | (byte_of(v.y) << 8u) | (byte_of(v.z) << 16u) | (byte_of(v.w) << 24u);
{{- else}}
    y[i] = v;
{{- end}}
}
