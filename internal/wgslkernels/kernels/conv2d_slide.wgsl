{{template "conv_head" .}}
{{$k := .}}
// For strides and dilations of 1 across: an invocation computes {{.Channels}} output channels at {{.Pixels}} neighbouring places of a line. It
// reads each element of the input once per filter row, and shifts what it holds along.
fn load(line: u32, ix: u32{{if .Padded}}, inside: bool{{end}}) -> f32 {
    return x[{{if .Padded}}select(0u, line + ix, inside){{else}}line + min(ix, p.width - 1u){{end}}];
}

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let id = linear_id(workgroup, grid);
    if id >= p.total { return; }
    let across = (p.out_width + {{sub .Pixels 1}}u) / {{.Pixels}}u;
    let unit = id % p.tiles * {{.Lanes}}u + local.x;
    let oy = unit / across;
    let ox = unit % across * {{.Pixels}}u;
    if oy >= p.out_height { return; }
    let block = id / p.tiles % p.blocks * {{.Channels}}u;
    let z = id / (p.tiles * p.blocks); // image and group
    let group = z % p.groups;
    let depth = p.channels * p.kernel_height * p.kernel_width;
    let top = oy * p.stride_y - p.pad_y; // may wrap below zero, and back again
    let left = ox - p.pad_x;
{{- range $i := seq .Channels}}
    var w{{$i}} = (group * p.out_channels + min(block + {{$i}}u, p.out_channels - 1u)) * depth + p.first * p.kernel_width;
    {{- range $v := seq $k.Vectors}}
    var s{{$i}}_{{$v}} = vec4<f32>();
    {{- end}}
{{- end}}
    for (var row = p.first; row < p.last; row++) {
        let ky = row % p.kernel_height;
        let plane = p.x0 + (z * p.channels + row / p.kernel_height) * p.height * p.width;
        let iy = top + ky * p.dilation_y;
        let line = plane + iy * p.width;
        {{- range $v := seq .Vectors}}
        var x{{$v}} = vec4<f32>();
        {{- if $k.Padded}}
        var m{{$v}} = vec4<bool>();
        {{- end}}
        {{- range $l := seq 4}}{{$j := add (mul 4 $v) $l}}{{if $j}}
        {{- if $k.Padded}}
        m{{$v}}[{{$l}}] = iy < p.height && left + {{sub $j 1}}u < p.width;
        {{- end}}
        x{{$v}}[{{$l}}] = load(line, left + {{sub $j 1}}u{{if $k.Padded}}, m{{$v}}[{{$l}}]{{end}});
        {{- end}}{{end}}
        {{- end}}
        for (var kx = 0u; kx < p.kernel_width; kx++) {
            let ix = left + kx + {{sub .Pixels 1}}u;
        {{- if .Padded}}
            let inside = iy < p.height && ix < p.width;
        {{- end}}
        {{- range $v := seq .Vectors}}{{$last := eq (add $v 1) $k.Vectors}}
            x{{$v}} = vec4<f32>(x{{$v}}.yzw, {{if $last}}load(line, ix{{if $k.Padded}}, inside{{end}}){{else}}x{{add $v 1}}.x{{end}});
            {{- if $k.Padded}}
            m{{$v}} = vec4<bool>(m{{$v}}.yzw, {{if $last}}inside{{else}}m{{add $v 1}}.x{{end}});
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
        let at = p.y0 + ((z * p.out_channels + block + {{$i}}u) * p.out_height + oy) * p.out_width + ox;
        let channel = group * p.out_channels + block + {{$i}}u;
        let place = oy * p.out_width + ox;
    {{- range $j := seq $k.Pixels}}
        if ox + {{$j}}u < p.out_width { y[at + {{$j}}u] = finish(s{{$i}}_{{div $j 4}}[{{rem $j 4}}]{{if $k.Resume}} + y[at + {{$j}}u]{{end}}, channel, place + {{$j}}u, at + {{$j}}u); }
    {{- end}}
    }
{{- end}}
}
