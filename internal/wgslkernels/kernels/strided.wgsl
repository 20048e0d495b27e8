// Copies a box of {{if eq .Unit 4}}fours of words{{else}}words{{end}} from a strided place to a strided place. Strides may be negative: they wrap.
struct Params {
    total: u32, x0: u32, y0: u32, unused: u32,
{{- range $d := seq .Rank}}
    axis{{$d}}: vec4<u32>, // size, stride in x, stride in y
{{- end}}
}

@group(0) @binding(0) var<storage, read> x: array<{{if eq .Unit 4}}vec4<u32>{{else}}u32{{end}}>;
@group(0) @binding(1) var<storage, read_write> y: array<{{if eq .Unit 4}}vec4<u32>{{else}}u32{{end}}>;
@group(0) @binding(2) var<uniform> p: Params;

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    var i = linear_id(workgroup, grid) * {{.Lanes}}u + local.x;
    if i >= p.total { return; }
    var at_x = p.x0;
    var at_y = p.y0;
{{- range $d := seq .Rank}}
    at_x += i % p.axis{{$d}}.x * p.axis{{$d}}.y;
    at_y += i % p.axis{{$d}}.x * p.axis{{$d}}.z;
    i /= p.axis{{$d}}.x;
{{- end}}
    y[at_y] = x[at_x];
}
