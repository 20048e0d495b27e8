// Attention of 32 rows, which are the queries of all heads that share a head of keys, in order of positions. A thread has four
// rows, of the eight by eight threads those with its y, and of these four keys of each tile and {{.DV}} times four columns of
// the result. Maximum and sum of the keys seen so far go along (Milakov and Gimelshein, "Online normalizer calculation for
// softmax", 2018).
struct Params {
    total: u32, blocks: u32, // workgroups, and how many there are for a head of keys
    n: u32, keys: u32, heads: u32, kv_heads: u32, d: u32,
    causal: u32, window: u32, has_lengths: u32,
    first_batch: u32, lengths0: u32,
    first: u32, end: u32, // rows of queries, batch · n + query, that this dispatch writes
    q0: u32, k0: u32,     // elements at which the bound parts of q and y, and of k and v, begin
    lse0: u32,
    scale: f32, cap: f32, inf: u32,
    unit0: u32,     // workgroup of the first one here
    begin: u32, stop: u32, // keys of this dispatch, counted from the oldest
}

@group(0) @binding(0) var<storage, read> queries: array<{{.QUnit}}>;
@group(0) @binding(1) var<storage, read> keys: array<{{.KVUnit}}>;
@group(0) @binding(2) var<storage, read> values: array<{{.KVUnit}}>;
@group(0) @binding(3) var<storage, read> lengths: array<i32>;
@group(0) @binding(4) var<storage, read_write> y: array<{{.YUnit}}>;
{{if .LSE -}}
@group(0) @binding(5) var<storage, read_write> lse: array<f32>; // [batch, heads, n]
{{end -}}
{{if .Long -}}
@group(0) @binding({{if .LSE}}6{{else}}5{{end}}) var<storage, read_write> states: array<vec4<f32>>; // of threads between dispatches
{{end -}}
@group(0) @binding({{.Uniform}}) var<uniform> p: Params;

var<workgroup> stage: array<vec4<f32>, 512>;   // 32 columns of queries and of a tile of keys, or some of the tile's values
var<workgroup> weights: array<vec4<f32>, 256>; // of a tile, for each key and y
var<workgroup> peaks: array<f32, 256>;
var<workgroup> places: array<u32, 32>;         // where rows begin in q and y; of those that are not ours, nowhere
const nowhere = 0xffffffffu;
{{.Functions}}
{{template "attention_common"}}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let unit = p.unit0 + linear_id(workgroup, grid);
    if unit >= p.total { return; }
    let tx = local % 8u;
    let ty = local / 8u;
    let z = unit / p.blocks;
    let batch = p.first_batch + z / p.kv_heads;
    let head = z % p.kv_heads;
    let group = p.heads / p.kv_heads;
    let first_row = (unit % p.blocks) * 32u;
    let rows = p.n * group;

    var used = p.keys;
    var oldest = 0u;
    if p.has_lengths != 0u {
        used = u32(max(lengths[batch - p.lengths0], 0));
        if used > p.keys {
            oldest = used % p.keys;
            used = p.keys;
        }
    }
    let low = max(seen(first_row / group, used).x, p.begin);
    let high = min(seen(min(first_row + 31u, rows - 1u) / group, used).y, p.stop);
{{range $i := seq 4}}
    let r{{$i}} = first_row + ty + {{mul 8 $i}}u;
    let place{{$i}} = batch * p.n + r{{$i}} / group;
    if tx == 0u {
        places[ty + {{mul 8 $i}}u] = select(nowhere, (place{{$i}} * p.heads + head * group + r{{$i}} % group) * p.d - p.q0,
            r{{$i}} < rows && place{{$i}} >= p.first && place{{$i}} < p.end);
    }
    let range{{$i}} = seen(r{{$i}} / group, used);
    var m{{$i}} = -3.4028234e38;
    var l{{$i}} = 0.0;
{{- range $j := seq $.DV}}
    var o{{$i}}_{{$j}} = vec4<f32>();
{{- end}}
{{- end}}
{{- if .Long}}
    let state = ((unit - p.unit0) * 64u + local) * {{add 2 (mul 4 .DV)}}u;
    if p.begin > 0u {
        let m = states[state];
        let l = states[state + 1u];
{{- range $i, $c := .Components}}
        m{{$i}} = m.{{$c}};
        l{{$i}} = l.{{$c}};
{{- range $j := seq $.DV}}
        o{{$i}}_{{$j}} = states[state + {{add 2 (add (mul $i $.DV) $j)}}u];
{{- end}}
{{- end}}
    }
{{- end}}

    for (var tile = low; tile < high; tile += 32u) {
{{- range $i := seq 4}}
        var s{{$i}} = vec4<f32>();
{{- end}}
        for (var c = 0u; c < p.d; c += 32u) {
            workgroupBarrier();
            for (var i = ty; i < 32u; i += 8u) {
                stage[i * 8u + (tx ^ (i % 8u))] = load_queries(places[i], c + 4u * tx, places[i] != nowhere);
                stage[256u + i * 8u + (tx ^ (i / 4u))] = load_keys(key_at(batch, head, tile + i, oldest), c + 4u * tx, tile + i < high);
            }
            workgroupBarrier();
            for (var e = 0u; 4u * e < min(32u, p.d - c); e++) {
{{- range $j := seq 4}}
                let b{{$j}} = stage[256u + (tx * 4u + {{$j}}u) * 8u + (e ^ tx)];
{{- end}}
{{- range $i := seq 4}}
                let a{{$i}} = stage[(ty + {{mul 8 $i}}u) * 8u + (e ^ ty)];
                s{{$i}} += vec4(dot(a{{$i}}, b0), dot(a{{$i}}, b1), dot(a{{$i}}, b2), dot(a{{$i}}, b3));
{{- end}}
            }
        }
        let key = vec4(tile + 4u * tx) + vec4(0u, 1u, 2u, 3u);
{{- range $i := seq 4}}
        let see{{$i}} = (key >= vec4(range{{$i}}.x)) & (key < vec4(range{{$i}}.y));
        s{{$i}} *= p.scale;
{{- if $.Cap}}
        let u{{$i}} = s{{$i}} / p.cap;
        s{{$i}} = p.cap * vec4(safe_tanh(u{{$i}}.x), safe_tanh(u{{$i}}.y), safe_tanh(u{{$i}}.z), safe_tanh(u{{$i}}.w));
{{- end}}
        let x{{$i}} = select(vec4(-3.4028234e38), s{{$i}}, see{{$i}});
        peaks[(ty + {{mul 8 $i}}u) * 8u + tx] = max(max(x{{$i}}.x, x{{$i}}.y), max(x{{$i}}.z, x{{$i}}.w));
{{- end}}
        workgroupBarrier();
{{- range $i := seq 4}}
        let before{{$i}} = m{{$i}};
        for (var j = 0u; j < 8u; j++) {
            m{{$i}} = max(m{{$i}}, peaks[(ty + {{mul 8 $i}}u) * 8u + j]);
        }
        let f{{$i}} = shifted_exp(before{{$i}} - m{{$i}});
        l{{$i}} *= f{{$i}};
{{- range $j := seq $.DV}}
        o{{$i}}_{{$j}} *= f{{$i}};
{{- end}}
        let d{{$i}} = s{{$i}} - m{{$i}};
        let w{{$i}} = select(vec4<f32>(), vec4(shifted_exp(d{{$i}}.x), shifted_exp(d{{$i}}.y), shifted_exp(d{{$i}}.z), shifted_exp(d{{$i}}.w)), see{{$i}});
{{- end}}
{{- range $j, $c := .Components}}
        weights[(4u * tx + {{$j}}u) * 8u + ty] = vec4(w0.{{$c}}, w1.{{$c}}, w2.{{$c}}, w3.{{$c}});
{{- end}}
        var sum = vec4<f32>();
        for (var part = 0u; part < min(32u, high - tile); part += {{.Part}}u) {
            workgroupBarrier();
            let some = min({{.Part}}u, high - tile - part); // of the keys
{{- if .Counted}}
            for (var k = 0u; k < {{div (mul .DV .Part) 8}}u; k++) {
                let i = local + 64u * k;
                let there = i < some * {{mul 8 .DV}}u;
{{- else}}
            for (var i = local; i < some * {{mul 8 .DV}}u; i += 64u) {
                let there = true;
{{- end}}
                let t = tile + part + i / {{mul 8 .DV}}u;
                stage[i] = load_values(key_at(batch, head, t, oldest), 4u * (i % {{mul 8 .DV}}u), there);
            }
            workgroupBarrier();
            for (var e = 0u; e < some; e++) {
                let w = weights[(part + e) * 8u + ty];
                sum += w;
{{- range $j := seq .DV}}
                let v{{$j}} = stage[e * {{mul 8 $.DV}}u + tx + {{mul 8 $j}}u];
{{- range $i, $c := $.Components}}
                o{{$i}}_{{$j}} += w.{{$c}} * v{{$j}};
{{- end}}
{{- end}}
            }
        }
{{- range $i, $c := .Components}}
        l{{$i}} += sum.{{$c}};
{{- end}}
    }
{{- if .Long}}
    if p.stop < p.keys {
        states[state] = vec4(m0, m1, m2, m3);
        states[state + 1u] = vec4(l0, l1, l2, l3);
{{- range $i := seq 4}}
{{- range $j := seq $.DV}}
        states[state + {{add 2 (add (mul $i $.DV) $j)}}u] = o{{$i}}_{{$j}};
{{- end}}
{{- end}}
        return;
    }
{{- end}}
{{range $i := seq 4}}
{{- if $.LSE}}
    if tx == 0u && places[ty + {{mul 8 $i}}u] != nowhere {
        let i = r{{$i}} / group;
        lse[(batch * p.heads + head * group + r{{$i}} % group) * p.n + i - p.lse0] =
            select(m{{$i}} + ieee_log(l{{$i}}), bitcast<f32>(p.inf | 0x80000000u), l{{$i}} == 0.0);
    }
{{- end}}
    let f{{$i}} = select(1.0 / l{{$i}}, 0.0, l{{$i}} == 0.0);
    workgroupBarrier();
{{- range $j := seq $.DV}}
    stage[local + {{mul 64 $j}}u] = o{{$i}}_{{$j}} * f{{$i}};
{{- end}}
    workgroupBarrier();
    for (var i = local; i < {{mul 64 $.DV}}u; i += 64u) {
        let row = places[i % 64u / 8u + {{mul 8 $i}}u];
        if row != nowhere { store(row, 4u * (i % 8u) + i / 64u * 32u, stage[i]); }
    }
{{- end}}
}
