// Converts between pairs of f32, and of f16 or bf16 in a word. The last pair of an odd number has room: buffers are multiples of
// four words.
struct Params {
    pairs: u32,
}

@group(0) @binding(0) var<storage, read> x: array<{{if eq .From "f32"}}vec2<f32>{{else if .F16}}vec2<f16>{{else}}u32{{end}}>;
@group(0) @binding(1) var<storage, read_write> y: array<{{if eq .To "f32"}}vec2<f32>{{else}}u32{{end}}>;
@group(0) @binding(2) var<uniform> p: Params;
{{template "halves.wgsl" .To}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let i = linear_id(workgroup, grid) * {{.Lanes}}u + local.x;
    if i >= p.pairs { return; }
{{- if eq .From "f32"}}
    let v = x[i];
{{- else if .F16}}
    let v = vec2<f32>(x[i]);
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
