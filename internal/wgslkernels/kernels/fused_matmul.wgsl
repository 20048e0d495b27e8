{{$p := . -}}
// Products of a few rows of x with rows of weights, by a workgroup for each row of the weights: of a norm of x, of three weights
// whose rows are numbered through, or of two that a gated layer joins.
struct Params {
    m: u32,     // rows of x
    depth: u32, // fours of a row
    total: u32, // rows of the weights
    second: u32, // row at which the second of three weights begins
    third: u32,
    width1: u32, // rows of the second and of the third
    width2: u32,
    epsilon: f32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
{{- if eq .Form "norm"}}
@group(0) @binding(1) var<storage, read> gamma: array<vec4<f32>>;
{{- end}}
{{- range $i := seq .Weights}}
@group(0) @binding({{add $p.FirstWeight $i}}) var<storage, read> w{{$i}}: array<{{if eq $p.Kind "f32"}}vec4<f32>{{else}}vec2<u32>{{end}}>;
{{- end}}
{{- if .Biases}}
@group(0) @binding({{sub .Reads 1}}) var<storage, read> bias: array<f32>;
{{- end}}
{{- range $i := seq .Results}}
@group(0) @binding({{add $p.Reads $i}}) var<storage, read_write> y{{$i}}: array<f32>;
{{- end}}
@group(0) @binding({{add .Reads .Results}}) var<uniform> p: Params;

var<workgroup> sums: array<f32, {{mul .Sums .Lanes}}>;

{{.Functions}}
{{- if eq .Kind "f32"}}
fn widen(u: vec4<f32>) -> vec4<f32> {
    return u;
}
{{- else}}
fn widen(u: vec2<u32>) -> vec4<f32> {
{{- if eq .Kind "f16"}}
    return vec4(unpack2x16float(u.x), unpack2x16float(u.y));
{{- else}}
    return bitcast<vec4<f32>>(vec4(u.x << 16u, u.x & 0xffff0000u, u.y << 16u, u.y & 0xffff0000u));
{{- end}}
}
{{- end}}

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let id = linear_id(workgroup, grid);
    if id >= p.total { return; }
{{- if eq .Form "three"}}
    let which = select(select(0u, 1u, id >= p.second), 2u, id >= p.third);
    let row = id - select(select(0u, p.second, which == 1u), p.third, which == 2u);
{{- else}}
    let row = id;
{{- end}}
{{- range $s := seq .Sums}}
    var s{{$s}} = 0.0;
{{- end}}
    for (var i = lane; i < p.depth; i += {{.Lanes}}u) {
{{- if eq .Form "three"}}
        var u = w0[min(row, p.second - 1u) * p.depth + i];
        if which == 1u {
            u = w1[row * p.depth + i];
        } else if which == 2u {
            u = w2[row * p.depth + i];
        }
        let a = widen(u);
{{- else if eq .Form "norm"}}
        let a = widen(w0[row * p.depth + i]) * gamma[i];
{{- else}}
        let a = widen(w0[row * p.depth + i]);
        let b = widen(w1[row * p.depth + i]);
{{- end}}
{{- range $v := seq .Room}}
        let x{{$v}} = x[min({{$v}}u, p.m - 1u) * p.depth + i];
        s{{$v}} += dot(a, x{{$v}});
{{- if eq $p.Form "norm"}}
        s{{add $p.Room $v}} += dot(x{{$v}}, x{{$v}});
{{- else if eq $p.Form "gate"}}
        s{{add $p.Room $v}} += dot(b, x{{$v}});
{{- end}}
{{- end}}
    }
{{- range $s := seq .Sums}}
    sums[{{mul $s $p.Lanes}}u + lane] = s{{$s}};
{{- end}}
    for (var half = {{div .Lanes 2}}u; half > 0u; half >>= 1u) {
        workgroupBarrier();
        if lane < half {
{{- range $s := seq .Sums}}
            sums[{{mul $s $p.Lanes}}u + lane] += sums[{{mul $s $p.Lanes}}u + lane + half];
{{- end}}
        }
    }
    workgroupBarrier();
    if lane < p.m {
        let sum = sums[lane * {{.Lanes}}u];
{{- if eq .Form "norm"}}
        let squares = sums[({{.Room}}u + lane) * {{.Lanes}}u];
        y0[lane * p.total + row] = sum * select(inverseSqrt(squares / f32(4u * p.depth) + p.epsilon), 0.0, is_inf(squares));
{{- else if eq .Form "gate"}}
        y0[lane * p.total + row] = silu(sum) * sums[({{.Room}}u + lane) * {{.Lanes}}u];
{{- else}}
        let r = sum{{if .Biases}} + bias[id]{{end}};
        if which == 0u {
            y0[lane * p.second + row] = r;
        } else if which == 1u {
            y1[lane * p.width1 + row] = r;
        } else {
            y2[lane * p.width2 + row] = r;
        }
{{- end}}
    }
}
