{{define "conv_head"}}// Cross-correlation over NCHW planes. Sizes count elements; index 0 is down, 1 across.
struct Params {
    height: u32, width: u32, out_height: u32, out_width: u32,
    kernel_height: u32, kernel_width: u32, stride_y: u32, stride_x: u32,
    pad_y: u32, pad_x: u32, dilation_y: u32, dilation_x: u32,
    channels: u32, out_channels: u32, // of a group
    groups: u32, total: u32,
    tiles: u32, blocks: u32, // workgroups per plane, blocks of channels per group
    x0: u32, y0: u32,
    first: u32, last: u32, // rows of a filter, counted through all channels
    inf: u32,
{{- template "finish_scalars" .Finish}}
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding({{.Result}}) var<storage, read_write> y: array<f32>;
@group(0) @binding({{add .Result 1}}) var<uniform> p: Params;
{{template "finish" .Finish}}
{{end}}
{{template "conv_head" .}}
{{$k := .}}
// An invocation computes {{.Channels}} output channels at {{.Pixels}} places of the plane, {{.Lanes}} apart, so that neighbouring
// invocations read and write side by side.
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let id = linear_id(workgroup, grid);
    if id >= p.total { return; }
    let place = id % p.tiles * {{mul .Lanes .Pixels}}u + local.x;
    let block = id / p.tiles % p.blocks * {{.Channels}}u;
    let z = id / (p.tiles * p.blocks); // image and group
    let group = z % p.groups;
    let size = p.out_height * p.out_width;
    if place >= size { return; }
    let depth = p.channels * p.kernel_height * p.kernel_width;
{{- range $j := seq .Pixels}}
    let p{{$j}} = min(place + {{mul $j $k.Lanes}}u, size - 1u);
    let top{{$j}} = p{{$j}} / p.out_width * p.stride_y - p.pad_y; // may wrap below zero, and back again
    let left{{$j}} = p{{$j}} % p.out_width * p.stride_x - p.pad_x;
{{- end}}
{{- range $i := seq .Channels}}
    var w{{$i}} = (group * p.out_channels + min(block + {{$i}}u, p.out_channels - 1u)) * depth + p.first * p.kernel_width;
    {{- range $v := seq $k.Vectors}}
    var s{{$i}}_{{$v}} = vec4<f32>();
    {{- end}}
{{- end}}
    for (var row = p.first; row < p.last; row++) {
        let ky = row % p.kernel_height;
        let plane = p.x0 + (z * p.channels + row / p.kernel_height) * p.height * p.width;
        {{- range $j := seq .Pixels}}
        let iy{{$j}} = top{{$j}} + ky * p.dilation_y;
        let line{{$j}} = plane + iy{{$j}} * p.width;
        {{- end}}
        for (var kx = 0u; kx < p.kernel_width; kx++) {
        {{- range $j := seq .Pixels}}
            let ix{{$j}} = left{{$j}} + kx * p.dilation_x;
            {{- if $k.Padded}}
            let in{{$j}} = iy{{$j}} < p.height && ix{{$j}} < p.width;
            {{- end}}
        {{- end}}
        {{- range $v := seq .Vectors}}
            let x{{$v}} = vec4<f32>(
            {{- range $l := seq 4}}{{$j := add (mul 4 $v) $l}}{{if $l}}, {{end}}x[{{if $k.Padded}}select(0u, line{{$j}} + ix{{$j}}, in{{$j}}){{else}}line{{$j}} + ix{{$j}}{{end}}]{{end -}}
            );
            {{- if $k.Padded}}
            let m{{$v}} = vec4<bool>({{range $l := seq 4}}{{if $l}}, {{end}}in{{add (mul 4 $v) $l}}{{end}});
            {{- end}}
        {{- end}}
        {{- range $i := seq .Channels}}
            let f{{$i}} = weights[w{{$i}}];
            {{- range $v := seq $k.Vectors}}
            {{- if $k.Padded}}
            s{{$i}}_{{$v}} += select(vec4<f32>(), f{{$i}} * x{{$v}}, m{{$v}}); // an infinite weight over padding is no NaN
            {{- else}}
            s{{$i}}_{{$v}} += f{{$i}} * x{{$v}};
            {{- end}}
            {{- end}}
            w{{$i}}++;
        {{- end}}
        }
    }
{{- range $i := seq .Channels}}
    if block + {{$i}}u < p.out_channels {
        let at = p.y0 + (z * p.out_channels + block + {{$i}}u) * size + place;
        let channel = group * p.out_channels + block + {{$i}}u;
    {{- range $j := seq $k.Pixels}}{{$apart := mul $j $k.Lanes}}
        if place + {{$apart}}u < size { y[at + {{$apart}}u] = finish(s{{$i}}_{{div $j 4}}[{{rem $j 4}}]{{if $k.Resume}} + y[at + {{$apart}}u]{{end}}, channel, place + {{$apart}}u, at + {{$apart}}u); }
    {{- end}}
    }
{{- end}}
}
