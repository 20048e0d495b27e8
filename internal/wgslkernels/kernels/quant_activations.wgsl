{{$p := . -}}
// Activations in 8 bits: blocks of 32 values{{if .Norm}}, times gamma,{{end}} with the scale max|x|/127, NaN where Inf or NaN is among them. A block is
// three vectors: the integers of its two runs, then as floats the scale, the sums of the integers of each run, and half of Σx².
struct Params {
    total: u32,  // blocks
    blocks: u32, // in a row
    x0: u32,
    nan: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
{{- if .Norm}}
@group(0) @binding(1) var<storage, read> gamma: array<vec4<f32>>;
{{- end}}
@group(0) @binding({{if .Norm}}2{{else}}1{{end}}) var<storage, read_write> y: array<vec4<u32>>;
@group(0) @binding({{if .Norm}}3{{else}}2{{end}}) var<uniform> p: Params;

fn eight(v: vec4<f32>) -> u32 {
    return pack4xI8(vec4<i32>(round(v)));
}

fn sum(q: vec4<u32>) -> u32 {
    let one = 0x01010101u;
    return bitcast<u32>(f32(dot4I8Packed(q.x, one) + dot4I8Packed(q.y, one) + dot4I8Packed(q.z, one) + dot4I8Packed(q.w, one)));
}

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = linear_id(workgroup, grid) * {{.Lanes}}u + lane;
    if i >= p.total { return; }
    var squares = 0.0;
    var most = vec4<u32>(); // as bits, which Inf and NaN are the largest of
{{- range $j := seq 8}}
    {{- if $p.Norm}}
    let x{{$j}} = x[p.x0 + 8u * i + {{$j}}u];
    squares += dot(x{{$j}}, x{{$j}});
    let v{{$j}} = x{{$j}} * gamma[8u * (i % p.blocks) + {{$j}}u];
    {{- else}}
    let v{{$j}} = x[p.x0 + 8u * i + {{$j}}u];
    {{- end}}
    most = max(most, bitcast<vec4<u32>>(v{{$j}}) & vec4(0x7fffffffu));
{{- end}}
    let top = max(max(most.x, most.y), max(most.z, most.w));
    let large = bitcast<f32>(min(top, 0x7f7fffffu));
    let near = select(select(1.0, 0x1p64, large < 0x1p-64), 0x1p-64, large > 0x1p64); // division is exact enough for these
    let inverse = select(0.0, 127.0 / (large * near), large * near > 0.0);
    let q = vec4(eight(v0 * near * inverse), eight(v1 * near * inverse), eight(v2 * near * inverse), eight(v3 * near * inverse));
    let r = vec4(eight(v4 * near * inverse), eight(v5 * near * inverse), eight(v6 * near * inverse), eight(v7 * near * inverse));
    y[3u * i] = q;
    y[3u * i + 1u] = r;
    y[3u * i + 2u] = vec4(select(bitcast<u32>(large * (1.0 / 127.0)), p.nan, top >= 0x7f800000u), sum(q), sum(r), bitcast<u32>(0.5 * squares));
}
