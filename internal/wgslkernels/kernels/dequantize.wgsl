{{$p := . -}}
// The values of rows of weights, all or those that indices name. A thread makes a word's worth of two runs.
struct Params {
    total: u32,
    units: u32,  // of 32 values in a row
    blocks: u32, // in a row
    fours: u32,  // of a row of weights
    rows: u32,   // of the weights, in all
    low: u32,    // rows that are bound: from low to before high
    high: u32,
    first: u32, // row of the result, of all
    w0: u32,    // where row low begins
    y0: u32,
    indices0: u32,
    nan: u32,
    chosen: u32, // whether there are indices
}

@group(0) @binding(0) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> indices: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<{{if .Half}}vec2<u32>{{else}}vec4<f32>{{end}}>;
@group(0) @binding(3) var<uniform> p: Params;
{{if .Half}}{{template "halves.wgsl" "f16"}}{{end}}
{{- template "quant_head" .Blocks}}
{{- template "quant_run" .Blocks}}
fn store(i: u32, v: vec4<f32>) {
{{- if .Half}}
    y[i] = vec2(half_of(v.x) | (half_of(v.y) << 16u), half_of(v.z) | (half_of(v.w) << 16u));
{{- else}}
    y[i] = v;
{{- end}}
}

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = linear_id(workgroup, grid) * {{.Lanes}}u + lane;
    if i >= p.total { return; }
    let c = i & 3u;
    let u = (i >> 2u) % p.units;
    let row = (i >> 2u) / p.units;
    let r = u / {{.Apart}}u * {{mul 2 .Apart}}u + u % {{.Apart}}u;
    let at = p.y0 + row * p.units * 8u + 4u * r + c;
    var id = p.first + row;
    if p.chosen != 0u {
        id = indices[p.indices0 + row];
        if id >= p.rows { // negative ones too
            store(at, vec4(bitcast<f32>(p.nan)));
            store(at + {{mul 4 .Apart}}u, vec4(bitcast<f32>(p.nan)));
        }
    }
    if id < p.low || id >= p.high { return; }
    let start = p.w0 + (id - p.low) * p.fours;
{{- range $h := seq 2}}
    let r{{$h}} = w_run(start, p.blocks, r + {{mul $h $p.Apart}}u, c);
    store(at + {{mul 4 (mul $h $p.Apart)}}u, values(r{{$h}}.q, r{{$h}}.s, {{$p.Blocks.Offset}}.0, r{{$h}}.m));
{{- end}}
}
