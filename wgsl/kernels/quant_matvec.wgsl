{{$p := . -}}
// Products of {{.Room}} rows of x, or fewer, with rows of weights, which are read once: a workgroup takes {{if eq .Form "gate"}}two rows of each weight{{else}}four rows{{end}},
// a thread a run of each at a time.
struct Params {
    m: u32,      // rows of x
    depth: u32,  // fours of a row of x
    runs: u32,   // of a row
    blocks: u32, // of a row of weights
    fours: u32,  // of a row of weights
    rows: u32,   // of the weights, in all
    first: u32,  // workgroup of all
    end: u32,
    w0: u32, // where row 0 would begin, for a binding that begins later
    y0: u32,
    bias0: u32,
    x0: u32,
    width: u32, // of a row of y
    nan: u32,   // bits of NaN, for rows of x with Inf in them; 0 if results are to be as they come
    epsilon: f32,
    biased: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
{{- range $i, $name := .Reads}}
@group(0) @binding({{add $i 1}}) var<storage, read> {{$name}}: array<{{index $p.Types $i}}>;
{{- end}}
@group(0) @binding({{add (len .Reads) 1}}) var<storage, read_write> y: array<f32>;
@group(0) @binding({{add (len .Reads) 2}}) var<uniform> p: Params;

var<workgroup> sums: array<vec4<f32>, {{mul .Room .Lanes}}>;
{{- if eq .Form "norm"}}
var<workgroup> squares: array<f32, {{mul .Room .Lanes}}>;
{{- end}}
{{.Functions}}
{{template "quant_run" .Blocks}}
// Whether Inf or NaN is in a row of x.
fn spoiled(v: u32) -> bool {
    for (var i = 0u; i < p.depth; i++) {
        let b = bitcast<vec4<u32>>(x[p.x0 + v * p.depth + i]{{if eq .Form "norm"}} * gamma[i]{{end}});
        if any((b & vec4(0x7f800000u)) == vec4(0x7f800000u)) { return true; }
    }
    return false;
}

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let id = p.first + linear_id(workgroup, grid);
    if id >= p.end { return; }
    let row = id * {{.Rows}}u;
{{- range $i := seq .Rows}}
    let at{{$i}} = p.w0 + min(row + {{$i}}u, p.rows - 1u) * p.fours;
{{- end}}
{{- range $v := seq .Room}}
    let x_at{{$v}} = p.x0 + min({{$v}}u, p.m - 1u) * p.depth;
    var s{{$v}} = vec4<f32>();
    {{- if eq $p.Form "norm"}}
    var t{{$v}} = 0.0;
    {{- end}}
{{- end}}
    for (var r = lane; r < p.runs; r += {{.Lanes}}u) {
{{- range $i, $w := .Of}}
        var r{{$i}} = {{$w}}_run(at{{rem $i $p.Rows}}, p.blocks, r, vec4(0u, 1u, 2u, 3u));
{{- end}}
        for (var i = 4u * r; i < 4u * r + 4u; i++) {
{{- range $i := seq 4}}
            let a{{$i}} = values(r{{$i}}.q.x, r{{$i}}.s, r{{$i}}.m);
            r{{$i}}.q = r{{$i}}.q.yzwx; // an index that varies would be slow
{{- end}}
{{- range $v := seq .Room}}
            let x{{$v}} = x[x_at{{$v}} + i]{{if eq $p.Form "norm"}};
            t{{$v}} += dot(x{{$v}}, x{{$v}});
            let g{{$v}} = gamma[i] * x{{$v}}{{end}};
    {{- $x := "x"}}{{if eq $p.Form "norm"}}{{$x = "g"}}{{end}}
            s{{$v}} += vec4(dot(a0, {{$x}}{{$v}}), dot(a1, {{$x}}{{$v}}), dot(a2, {{$x}}{{$v}}), dot(a3, {{$x}}{{$v}}));
{{- end}}
        }
    }
{{- range $v := seq .Room}}
    sums[{{mul $v $p.Lanes}}u + lane] = s{{$v}};
    {{- if eq $p.Form "norm"}}
    squares[{{mul $v $p.Lanes}}u + lane] = t{{$v}};
    {{- end}}
{{- end}}
    for (var half = {{div .Lanes 2}}u; half > 0u; half >>= 1u) {
        workgroupBarrier();
        if lane < half {
{{- range $v := seq .Room}}
            sums[{{mul $v $p.Lanes}}u + lane] += sums[{{mul $v $p.Lanes}}u + lane + half];
    {{- if eq $p.Form "norm"}}
            squares[{{mul $v $p.Lanes}}u + lane] += squares[{{mul $v $p.Lanes}}u + lane + half];
    {{- end}}
{{- end}}
        }
    }
    workgroupBarrier();
    let i = lane % {{.Rows}}u;
    let v = lane / {{.Rows}}u;
    if v < p.m && row + i < p.rows {
        let all = sums[v * {{.Lanes}}u];
        let s = all[i];
{{- if eq .Form "gate"}}
        var z = swiglu(s, all[i + 2u]);
        let large = is_inf(s) || is_inf(all[i + 2u]);
{{- else}}
    {{- if eq .Form "norm"}}
        let t = squares[v * {{.Lanes}}u];
        var z = s * select(inverseSqrt(t / f32(4u * p.depth) + p.epsilon), 0.0, is_inf(t));
    {{- else}}
        var z = s;
    {{- end}}
        let large = is_inf(z);
{{- end}}
        // What has Inf in x is Inf or NaN.
        if p.nan != 0u && large && spoiled(v) { z = bitcast<f32>(p.nan); }
{{- if eq .Form "plain"}}
        if p.biased != 0u { z += bias[p.bias0 + row + i]; }
{{- end}}
        y[p.y0 + v * p.width + row + i] = z;
    }
}
