// Gradients of attention for 32 {{if .Keys}}keys of a head, which goes over tiles of rows{{else}}rows, which goes over tiles of keys{{end}}. Rows are the queries of all heads
// that share a head of keys, in order of positions. Of the eight by eight threads each has four {{if .Keys}}keys{{else}}rows{{end}}, those with its y, and of
// these four {{if .Keys}}rows{{else}}keys{{end}} of each tile and {{.DV}} times four columns of the result.
struct Params {
    total: u32, blocks: u32, columns: u32, // workgroups, and how many there are for a head of keys, and for the columns of the result
    n: u32, keys: u32, heads: u32, kv_heads: u32, d: u32,
    causal: u32, window: u32, has_lengths: u32,
    first_batch: u32, lengths0: u32,
    q0: u32, k0: u32, stats0: u32, // elements at which the bound parts of rows, of keys, and of stats begin
    scale: f32, cap: f32,
    begin: u32, stop: u32, // of the {{if .Keys}}rows{{else}}keys{{end}} that are summed over here; from the first on, the result is new
}

@group(0) @binding(0) var<storage, read> queries: array<{{.Unit}}>;
@group(0) @binding(1) var<storage, read> keys: array<{{.Unit}}>;
@group(0) @binding(2) var<storage, read> values: array<{{.Unit}}>;
@group(0) @binding(3) var<storage, read> slopes: array<{{.Unit}}>; // dy
@group(0) @binding(4) var<storage, read> stats: array<vec2<f32>>;  // [batch, heads, n]: lse and Σdy·y
@group(0) @binding(5) var<storage, read> lengths: array<i32>;
{{- range $i, $r := .Results}}
@group(0) @binding({{add 6 $i}}) var<storage, read_write> {{$r}}: array<{{$.Unit}}>;
{{- end}}
@group(0) @binding({{add 6 (len .Results)}}) var<uniform> p: Params;

var<workgroup> stage: array<vec4<f32>, 512>;   // 32 columns of what is multiplied, or some of what is gathered
var<workgroup> weights: array<vec4<f32>, 256>; // of a tile, for each of its elements and y
var<workgroup> places: array<u32, 32>;         // where ours begin; of those that are not there, nowhere
var<workgroup> facts: array<vec2<f32>, 32>;    // stats of rows
var<workgroup> ranges: array<vec2<u32>, 32>;   // keys that rows see
const nowhere = 0xffffffffu;
{{.Functions}}
{{template "attention_common"}}

// Where a row of queries begins.
fn row_at(batch: u32, head: u32, row: u32) -> u32 {
    let group = p.heads / p.kv_heads;
    return ((batch * p.n + row / group) * p.heads + head * group + row % group) * p.d - p.q0;
}

fn fact_of(batch: u32, head: u32, row: u32) -> vec2<f32> {
    let group = p.heads / p.kv_heads;
    return stats[(batch * p.heads + head * group + row % group) * p.n + row / group - p.stats0];
}

// The weight of a key, and the gradient of its score.
fn weigh(product: f32, dp: f32, fact: vec2<f32>, see: bool) -> vec2<f32> {
    var s = product * p.scale;
    var slope = p.scale;
{{- if .Cap}}
    let bent = safe_tanh(s / p.cap);
    s = p.cap * bent;
    slope *= 1.0 - bent * bent;
{{- end}}
    let w = shifted_exp(s - fact.x);
    return select(vec2<f32>(), vec2(w, w * (dp - fact.y) * slope), see);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let unit = linear_id(workgroup, grid);
    if unit >= p.total { return; }
    let tx = local % 8u;
    let ty = local / 8u;
    let column = unit % p.columns * {{mul 32 .DV}}u;
    let z = unit / p.columns / p.blocks;
    let batch = p.first_batch + z / p.kv_heads;
    let head = z % p.kv_heads;
    let group = p.heads / p.kv_heads;
    let first = unit / p.columns % p.blocks * 32u;
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
{{- if .Keys}}
    // Rows that may see some of the keys.
    var low = 0u;
    var high = 0u;
    if first < used {
        let start = i32(first) - i32(used) + i32(p.n); // the query at the first key's position
        var least = 0;
        var beyond = i32(p.n);
        if p.causal != 0u { least = max(least, start); }
        if p.window != 0u {
            least = max(least, start - i32(p.window) + 1);
            beyond = min(beyond, start + i32(min(31u, used - 1u - first)) + i32(p.window));
        }
        low = u32(least) * group;
        high = u32(max(least, beyond)) * group;
    }
    low = max(low, p.begin);
    high = min(high, p.stop);
    if local < 32u {
        places[local] = select(nowhere, key_at(batch, head, first + local, oldest), first + local < p.keys);
    }
{{- else}}
    let low = max(seen(first / group, used).x, p.begin);
    let high = min(seen(min(first + 31u, rows - 1u) / group, used).y, p.stop);
    if local < 32u {
        let row = min(first + local, rows - 1u);
        places[local] = select(nowhere, row_at(batch, head, row), first + local < rows);
        facts[local] = fact_of(batch, head, row);
        ranges[local] = seen(row / group, used);
    }
{{- end}}
{{- range $r := .Results}}
{{- range $i := seq 4}}
{{- range $j := seq $.DV}}
    var {{$r}}{{$i}}_{{$j}} = vec4<f32>();
{{- end}}
{{- end}}
{{- end}}

    for (var tile = low; tile < high; tile += 32u) {
{{- range $i := seq 4}}
        var s{{$i}} = vec4<f32>();
        var d{{$i}} = vec4<f32>();
{{- end}}
        for (var c = 0u; c < p.d; c += 32u) {
{{- range .Products}}
            workgroupBarrier();
            for (var i = ty; i < 32u; i += 8u) {
{{- if $.Keys}}
                stage[i * 8u + (tx ^ (i % 8u))] = load_{{.Mine}}(places[i], c + 4u * tx, first + i < used);
                stage[256u + i * 8u + (tx ^ (i / 4u))] = load_{{.Theirs}}(row_at(batch, head, tile + i), c + 4u * tx, tile + i < high);
{{- else}}
                stage[i * 8u + (tx ^ (i % 8u))] = load_{{.Mine}}(places[i], c + 4u * tx, places[i] != nowhere);
                stage[256u + i * 8u + (tx ^ (i / 4u))] = load_{{.Theirs}}(key_at(batch, head, tile + i, oldest), c + 4u * tx, tile + i < high);
{{- end}}
            }
            workgroupBarrier();
            for (var e = 0u; 4u * e < min(32u, p.d - c); e++) {
{{- range $j := seq 4}}
                let b{{$j}} = stage[256u + (tx * 4u + {{$j}}u) * 8u + (e ^ tx)];
{{- end}}
{{- $sum := .Sum}}
{{- range $i := seq 4}}
                let a{{$i}} = stage[(ty + {{mul 8 $i}}u) * 8u + (e ^ ty)];
                {{$sum}}{{$i}} += vec4(dot(a{{$i}}, b0), dot(a{{$i}}, b1), dot(a{{$i}}, b2), dot(a{{$i}}, b3));
{{- end}}
            }
{{- end}}
        }
{{- if .Keys}}
        if local < 32u {
            let row = min(tile + local, rows - 1u);
            facts[local] = fact_of(batch, head, row);
            ranges[local] = select(vec2<u32>(), seen(row / group, used), tile + local < high);
        }
        workgroupBarrier();
{{- end}}
{{- range $i := seq 4}}
{{- range $j, $c := $.Components}}
{{- if $.Keys}}
        let at{{$i}}_{{$j}} = 4u * tx + {{$j}}u;
        let key{{$i}}_{{$j}} = first + ty + {{mul 8 $i}}u;
{{- else}}
        let at{{$i}}_{{$j}} = ty + {{mul 8 $i}}u;
        let key{{$i}}_{{$j}} = tile + 4u * tx + {{$j}}u;
{{- end}}
        let range{{$i}}_{{$j}} = ranges[at{{$i}}_{{$j}}];
        let w{{$i}}_{{$j}} = weigh(s{{$i}}.{{$c}}, d{{$i}}.{{$c}}, facts[at{{$i}}_{{$j}}],
            key{{$i}}_{{$j}} >= range{{$i}}_{{$j}}.x && key{{$i}}_{{$j}} < range{{$i}}_{{$j}}.y);
{{- end}}
{{- end}}
{{- range .Sums}}
        workgroupBarrier();
{{- $w := .Weight}}
{{- range $j := seq 4}}
        weights[(4u * tx + {{$j}}u) * 8u + ty] = vec4(w0_{{$j}}.{{$w}}, w1_{{$j}}.{{$w}}, w2_{{$j}}.{{$w}}, w3_{{$j}}.{{$w}});
{{- end}}
        for (var part = 0u; part < min(32u, high - tile); part += {{$.Part}}u) {
            workgroupBarrier();
            let some = min({{$.Part}}u, high - tile - part);
{{- if $.Counted}}
            for (var k = 0u; k < {{div (mul $.DV $.Part) 8}}u; k++) {
                let i = local + 64u * k;
                let there = i < some * {{mul 8 $.DV}}u;
{{- else}}
            for (var i = local; i < some * {{mul 8 $.DV}}u; i += 64u) {
                let there = true;
{{- end}}
                let t = tile + part + i / {{mul 8 $.DV}}u;
                stage[i] = load_{{.Of}}({{if $.Keys}}row_at(batch, head, t){{else}}key_at(batch, head, t, oldest){{end}}, column + 4u * (i % {{mul 8 $.DV}}u), there);
            }
            workgroupBarrier();
            for (var e = 0u; e < some; e++) {
                let w = weights[(part + e) * 8u + ty];
{{- $to := .To}}
{{- range $j := seq $.DV}}
                let v{{$j}} = stage[e * {{mul 8 $.DV}}u + tx + {{mul 8 $j}}u];
{{- range $i, $c := $.Components}}
                {{$to}}{{$i}}_{{$j}} += w.{{$c}} * v{{$j}};
{{- end}}
{{- end}}
            }
        }
{{- end}}
    }
{{range $r := .Results}}
{{- range $i := seq 4}}
    workgroupBarrier();
{{- range $j := seq $.DV}}
    stage[local + {{mul 64 $j}}u] = {{$r}}{{$i}}_{{$j}};
{{- end}}
    workgroupBarrier();
    for (var i = local; i < {{mul 64 $.DV}}u; i += 64u) {
        let row = places[i % 64u / 8u + {{mul 8 $i}}u];
        let c = column + 4u * (i % 8u) + i / 64u * 32u;
        if row != nowhere && c < p.d {
{{- if $.Vec}}
            let at = (row + c) / 4u;
            {{$r}}[at] = stage[i] + select(vec4<f32>(), {{$r}}[at], p.begin > 0u);
{{- else}}
            for (var e = 0u; e < min(4u, p.d - c); e++) {
                {{$r}}[row + c + e] = stage[i][e] + select(0.0, {{$r}}[row + c + e], p.begin > 0u);
            }
{{- end}}
        }
    }
{{- end}}
{{- end}}
}
