{{- $word := "u32"}}{{if .Add}}{{$word = "f32"}}{{end}}{{if .Vec}}{{$word = printf "vec4<%s>" $word}}{{end -}}
// Puts rows, in units of {{if .Vec}}four words{{else}}a word{{end}}, where indices say: {{if .Add}}the sum of the updates of a row is added to it, by the
// invocation of the first one; order leads to the others{{else}}of several updates of a row the last one wins{{end}}. The bound part of y begins with row low.
struct Params {
    total: u32, width: u32, low: u32, high: u32,
    indices0: u32, x0: u32, y0: u32,
}

@group(0) @binding(0) var<storage, read> indices: array<u32>;
@group(0) @binding(1) var<storage, read> {{if .Add}}order{{else}}last{{end}}: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<{{$word}}>;
@group(0) @binding(3) var<storage, read_write> y: array<{{$word}}>;
@group(0) @binding(4) var<uniform> p: Params;

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let i = linear_id(workgroup, grid) * {{.Lanes}}u + local.x;
    if i >= p.total { return; }
    let update = i / p.width;
    let row = indices[p.indices0 + update];
    if row < p.low || row >= p.high { return; }
    let col = i % p.width;
    let at = p.y0 + (row - p.low) * p.width + col;
{{- if .Add}}
    if order[update] < 0x80000000u { return; }
    var sum = y[at];
    var now = update + 1u;
    while now != 0u { // parts of {{.Part}}, which keeps errors small
        var part = {{$word}}();
        for (var n = 0u; n < {{.Part}}u && now != 0u; n++) {
            part += x[p.x0 + (now - 1u) * p.width + col];
            now = order[now - 1u] & 0x7fffffffu;
        }
        sum += part;
    }
    y[at] = sum;
{{- else}}
    if last[row - p.low] == update + 1u { y[at] = x[p.x0 + i]; }
{{- end}}
}
