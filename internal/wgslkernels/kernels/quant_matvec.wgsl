{{$p := . -}}
// Products of {{.Room}} rows of x, or fewer, with rows of weights, which are read once: a {{if .Grouped}}group of {{.Group}} threads{{else}}workgroup{{end}} takes {{if eq .Form "gate"}}two rows of each weight{{else}}four rows{{end}}{{if .Several}}
// of one of the weights{{end}}, a thread a run of each at a time.{{if .Dots}} x is in 8 bits: see quant_activations.wgsl.{{end}}
struct Params {
    m: u32,     // rows of x
    depth: u32, // vectors of a row of x
    runs: u32,  // of a row
    first: u32, // workgroup of all
    end: u32,
    x0: u32,
    nan: u32, // bits of NaN, for rows of x with Inf in them; 0 if results are to be as they come
    epsilon: f32,
    // Of each product: its first workgroup, blocks and fours of a row of weights, their rows in all; where row 0 of weights, the first
    // result and the first bias would be, for bindings that begin later.
    products: array<vec4<u32>, {{mul 2 (len .Formats)}}>,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<{{if .Dots}}u32{{else}}f32{{end}}>>;
{{- range $i, $b := .Bound}}
@group(0) @binding({{add $i 1}}) var<storage, {{$b}};
{{- end}}
@group(0) @binding({{add (len .Bound) 1}}) var<uniform> p: Params;
{{template "sum_lanes_head" .}}
{{.Functions}}
{{- template "quant_head" (index .Formats 0)}}
{{- range .Formats}}
{{template "quant_run" .}}
{{- end}}
{{- if not .Dots}}
// Whether Inf or NaN is in a row of x.
fn poisoned(v: u32) -> bool {
    for (var i = 0u; i < p.depth; i++) {
        let b = bitcast<vec4<u32>>(x[p.x0 + v * p.depth + i]{{if eq .Form "norm"}} * gamma[i]{{end}});
        if any((b & vec4(0x7f800000u)) == vec4(0x7f800000u)) { return true; }
    }
    return false;
}
{{end}}
// Result i of the few from row on, for row v of x.
fn store(which: u32, v: u32, row: u32, i: u32, span: u32) {
    let rows = p.products[2u * which].w;
    let places = p.products[2u * which + 1u];
    if v >= p.m || row + i >= rows { return; }
    let s = total(4u * v + i, span);
{{- if eq .Form "gate"}}
    let up = total(4u * v + i + 2u, span);
    var z = swiglu(s, up);
    {{- if not .Dots}}
    let large = is_inf(s) || is_inf(up);
    {{- end}}
{{- else}}
    {{- if eq .Form "norm"}}
    let t = total(4u, span);
    var z = s * select(inverseSqrt(t / f32(16u * p.runs) + p.epsilon), 0.0, is_inf(t));
    {{- else}}
    var z = s;
    {{- end}}
    {{- if not .Dots}}
    let large = is_inf(z);
    {{- end}}
{{- end}}
{{- if not .Dots}}
    // What has Inf in x is Inf or NaN.
    if p.nan != 0u && large && poisoned(v) { z = bitcast<f32>(p.nan); }
{{- end}}
    let at = places.y + v * rows + row + i;
{{- if .Several}}
    switch which {
    {{- range $k, $f := .Formats}}
        {{if $k}}case {{$k}}u{{else}}default{{end}}: { y{{$k}}[at] = z{{if $p.Biased}} + b{{$k}}[places.z + row + i]{{end}}; }
    {{- end}}
    }
{{- else}}
    y0[at] = z{{if .Biased}} + b0[places.z + row + i]{{end}};
{{- end}}
}

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) lane: u32{{if .Subgroups}}, @builtin(subgroup_size) subgroup_size: u32{{end}}) {
    let id = p.first + linear_id(workgroup, grid);
    if id >= p.end { return; }
{{- if .Several}}
    var which = 0u;
    while which < {{sub (len .Formats) 1}}u && id >= p.products[2u * which + 2u].x { which++; }
{{- else}}
    let which = 0u;
{{- end}}
    let head = p.products[2u * which];
    let places = p.products[2u * which + 1u];
    let blocks = head.y;
    let rows = head.w;
{{- if .Grouped}}
    let l = lane % {{.Group}}u;
    let row = ((id - head.x) * {{div .Lanes .Group}}u + lane / {{.Group}}u) * {{.Rows}}u;
{{- else}}
    let l = lane;
    let row = (id - head.x) * {{.Rows}}u;
{{- end}}
{{- range $i, $w := .Of}}
    let at{{$i}} = places.x + min(row + {{rem $i $p.Rows}}u, rows - 1u) * head.z;
{{- end}}
{{- range $v := seq .Room}}
    let x_at{{$v}} = p.x0 + min({{$v}}u, p.m - 1u) * p.depth;
{{- end}}
{{- range $v := seq .Vectors}}
    var s{{$v}} = vec4<f32>();
{{- end}}
    for (var r = l; r < p.runs; r += {{.Group}}u) {
{{- if .Several}}
        var o = 0.0;
    {{- range $i, $w := .Of}}
        var r{{$i}}: Run;
    {{- end}}
        switch which {
    {{- range $k, $f := .Formats}}
            {{if $k}}case {{$k}}u{{else}}default{{end}}: {
                o = {{$f.Offset}}.0;
        {{- range $i, $w := $p.Of}}
                r{{$i}} = {{index $f.Weights 0}}_run(at{{$i}}, blocks, r, vec4(0u, 1u, 2u, 3u));
        {{- end}}
            }
    {{- end}}
        }
{{- else}}
        let o = {{(index .Formats 0).Offset}}.0;
    {{- range $i, $w := .Of}}
        var r{{$i}} = {{$w}}_run(at{{$i}}, blocks, r, vec4(0u, 1u, 2u, 3u));
    {{- end}}
{{- end}}
{{- if .Dots}}
    {{- range $v := seq .Room}}
        var x{{$v}} = x[x_at{{$v}} + (r >> 1u) * 3u + (r & 1u)];
        var d{{$v}} = vec4<i32>();
    {{- end}}
        for (var c = 0u; c < 4u; c++) {
    {{- range $v := seq .Room}}
            d{{$v}} += vec4(dot4I8Packed(r0.q.x, x{{$v}}.x), dot4I8Packed(r1.q.x, x{{$v}}.x), dot4I8Packed(r2.q.x, x{{$v}}.x), dot4I8Packed(r3.q.x, x{{$v}}.x));
            x{{$v}} = x{{$v}}.yzwx; // an index that varies would be slow
    {{- end}}
    {{- range $i := seq 4}}
            r{{$i}}.q = r{{$i}}.q.yzwx;
    {{- end}}
        }
        let s = vec4(r0.s, r1.s, r2.s, r3.s);
        let m = vec4(r0.m, r1.m, r2.m, r3.m);
    {{- range $v := seq .Room}}
        let h{{$v}} = bitcast<vec4<f32>>(x[x_at{{$v}} + (r >> 1u) * 3u + 2u]);
        let sum{{$v}} = select(h{{$v}}.y, h{{$v}}.z, (r & 1u) != 0u);
        s{{$v}} += h{{$v}}.x * (s * (vec4<f32>(d{{$v}}) - o * sum{{$v}}) - m * sum{{$v}});
        {{- if eq $p.Form "norm"}}
        s1.x += h{{$v}}.w;
        {{- end}}
    {{- end}}
{{- else}}
        for (var i = 4u * r; i < 4u * r + 4u; i++) {
    {{- range $i, $w := .Of}}
            let a{{$i}} = values(r{{$i}}.q.x, r{{$i}}.s, o, r{{$i}}.m);
            r{{$i}}.q = r{{$i}}.q.yzwx; // an index that varies would be slow
    {{- end}}
    {{- range $v := seq .Room}}
            let x{{$v}} = x[x_at{{$v}} + i]{{if eq $p.Form "norm"}};
            s1.x += dot(x{{$v}}, x{{$v}});
            let g{{$v}} = gamma[i] * x{{$v}}{{end}};
        {{- $x := "x"}}{{if eq $p.Form "norm"}}{{$x = "g"}}{{end}}
            s{{$v}} += vec4(dot(a0, {{$x}}{{$v}}), dot(a1, {{$x}}{{$v}}), dot(a2, {{$x}}{{$v}}), dot(a3, {{$x}}{{$v}}));
    {{- end}}
        }
{{- end}}
    }
{{- template "sum_lanes" .}}
    store(which, l / {{.Rows}}u, row, l % {{.Rows}}u, span);
}
