// Attention of up to Rows queries that share a head of keys, over a part of these: leaves for each query the maximum m of its scores,
// Σexp(score − m), 0 where it saw nothing, and Σexp(score − m)·value. A workgroup takes 64 keys at a time: threads share the
// products of queries and keys, of which workgroup memory holds sixteen elements at a time. Then each has four columns of the
// result and one in Groups of the keys, and what they made of these is added at the end.
// Rows of the cache below low or from high on belong to other dispatches.
struct Params {
    total: u32, tiles: u32, parts: u32, all_parts: u32, part0: u32, // workgroups; parts of this dispatch, of all, its first
    n: u32, heads: u32, kvheads: u32, d: u32, group: u32,
    rows: u32,     // queries that share a head of keys
    capacity: u32, // keys of a sequence at most
    sequence0: u32, low: u32, high: u32,
    page: u32, entries: u32, pages: u32, // keys of a page, entries of the table for a sequence: 0 without pages
    has_lengths: u32, ring: u32, causal: u32, window: u32,
    scale: f32, cap: f32,
    inf: u32,
    q0: u32, k0: u32, lengths0: u32, table0: u32, partial0: u32, // where in the bindings things begin
    words: u32, // of a packed row of the cache
}

@group(0) @binding(0) var<storage, read> q: array<f32>;
@group(0) @binding(1) var<storage, read> keys: array<{{.Unit}}>;
@group(0) @binding(2) var<storage, read> values: array<{{.Unit}}>;
@group(0) @binding(3) var<storage, read> lengths: array<i32>;
@group(0) @binding(4) var<storage, read> table: array<u32>;
@group(0) @binding(5) var<storage, read_write> partial: array<f32>;
@group(0) @binding(6) var<uniform> p: Params;

const nowhere = 0xffffffffu;
var<workgroup> query: array<vec4<f32>, {{div (mul .Rows .Width) 4}}>; // Width elements to a row
var<workgroup> slab: array<vec4<f32>, 320>;          // of 64 keys: 16 elements, and four to tell banks apart
var<workgroup> weight: array<f32, {{mul .Rows 64}}>; // scores, then weights: 64 to a row
var<workgroup> peak: array<f32, {{mul .Rows 8}}>;    // of eight scores, at last sums of weights
var<workgroup> place: array<u32, 64>;                // row of each key in the bound part of the cache
{{.Functions}}
{{- if eq .Kind "u32"}}{{template "quant_halves"}}{{end}}
{{- range $name := .Arrays}}
// Four elements of a head in a row of the cache, from element e on.
fn {{$name}}_at(row: u32, head: u32, e: u32) -> vec4<f32> {
{{- if eq $.Kind "u32"}}
    if e >= p.d { return vec4<f32>(); }
    let c = head * p.d + e; // the bytes of all heads, then the scales of 32 elements each
    let at = p.k0 + row * p.words;
    let scales = halves_of({{$name}}[at + p.kvheads * p.d / 4u + c / 64u]);
    let bytes = vec4<i32>(vec4({{$name}}[at + c / 4u]) << vec4(24u, 16u, 8u, 0u)) >> vec4(24u);
    return vec4<f32>(bytes) * select(scales.x, scales.y, (c & 32u) != 0u);
{{- else}}
    return load_{{$name}}(p.k0 + (row * p.kvheads + head) * p.d, e, true);
{{- end}}
}
{{end}}
fn weight_of(d: f32) -> f32 {
    return select(select(exp(d), 0.0, d < -104.0), d, is_nan(d));
}

// Which keys the query at a position sees.
fn seen_from(position: i32) -> u32 {
    return u32(select(0, max(max(position, 0) - i32(p.window) + 1, 0), p.window != 0u));
}

fn seen_to(position: i32, used: i32) -> u32 {
    let to = select(used, min(used, position + 1), p.causal != 0u);
    let ahead = min(position, used - i32(p.window)) + i32(p.window);
    return u32(max(select(to, min(to, ahead), p.window != 0u), 0));
}

// Row of key t in the cache, if this dispatch has it.
fn locate(sequence: u32, t: u32, oldest: u32) -> u32 {
    var row: u32;
    if p.entries == 0u {
        let slot = oldest + t;
        row = (p.sequence0 + sequence) * p.capacity + select(slot, slot - p.capacity, slot >= p.capacity);
    } else {
        let id = table[p.table0 + sequence * p.entries + t / p.page];
        if id >= p.pages { return nowhere; } // negative ones too
        row = id * p.page + t % p.page;
    }
    return select(nowhere, row - p.low, row >= p.low && row < p.high);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let id = linear_id(workgroup, grid);
    if id >= p.total { return; }
    let tile = id % p.tiles;
    let part = id / p.tiles % p.parts;
    let head = id / p.tiles / p.parts % p.kvheads;
    let sequence = id / p.tiles / p.parts / p.kvheads;
    var length = i32(p.capacity);
    if p.has_lengths != 0u { length = max(lengths[p.lengths0 + sequence], 0); }
    let used = min(length, i32(p.capacity));
    var oldest = 0u;
    if p.ring != 0u && length > i32(p.capacity) { oldest = u32(length) % p.capacity; }
    // The keys of this part, and what the first query of the tile and the last one see of them.
    let first = used - i32(p.n); // position of query 0
    let from_any = seen_from(first);
    let count = u32(used) - from_any;
    let chunk = (((count + p.parts - 1u) / p.parts) + 63u) / 64u * 64u;
    let row0 = tile * {{.Rows}}u;
    let last_row = min(row0 + {{.Rows}}u, p.rows) - 1u;
    let begin = max(from_any + part * chunk, seen_from(first + i32(row0 / p.group)));
    let end = min(min(from_any + (part + 1u) * chunk, u32(used)), seen_to(first + i32(last_row / p.group), used));

    for (var i = local; i < {{div (mul .Rows .Width) 4}}u; i += 64u) {
        let r = row0 + i / {{div .Width 4}}u;
        var x = vec4<f32>();
        if r < p.rows {
            let at = p.q0 + ((sequence * p.n + r / p.group) * p.heads + head * p.group + r % p.group) * p.d;
            x = load_q(at, i % {{div .Width 4}}u * 4u, true) * p.scale;
        }
        query[i] = x;
    }
    var sum = 0.0;    // of the weights of query local / 8 with keys 8·(local % 8) …
    var scaled = 1.0; // since the maximum of that query has risen
    // A thread has the scores of all queries with one key, and four columns of sums over one in Groups of the keys.
    let group = local / {{div .Width 4}}u;
    let column = local % {{div .Width 4}}u * 4u;
{{- range $m := seq .Rows}}
    var acc{{$m}} = vec4<f32>();
    var best{{$m}} = -3.4028234e38;
{{- end}}
    for (var base = begin; base < end; base += 64u) {
        workgroupBarrier();
        let here = min(64u, end - base);
        let t = base + local;
        var at = nowhere;
        if t < end { at = locate(sequence, t, oldest); }
        place[local] = at;
{{- range $m := seq .Rows}}
        var score{{$m}} = 0.0;
{{- end}}
        for (var e0 = 0u; e0 < p.d; e0 += 16u) {
            workgroupBarrier();
            for (var i = local; i < here * 4u; i += 64u) {
                let row = place[i / 4u];
                var x = vec4<f32>();
                if row != nowhere { x = keys_at(row, head, e0 + i % 4u * 4u); }
                slab[i / 4u * 5u + i % 4u] = x;
            }
            workgroupBarrier();
            if local < here {
{{- range $e := seq 4}}
                let k{{$e}} = slab[local * 5u + {{$e}}u];
{{- end}}
{{- range $m := seq .Rows}}
{{- range $e := seq 4}}
                score{{$m}} += dot(query[{{div (mul $m $.Width) 4}}u + e0 / 4u + {{$e}}u], k{{$e}});
{{- end}}
{{- end}}
            }
        }
{{- range $m := seq .Rows}}
        {
            let position = first + i32((row0 + {{$m}}u) / p.group);
            let sees = at != nowhere && t >= seen_from(position) && t < seen_to(position, used);
            score{{$m}} = select(-inf(), select(score{{$m}}, p.cap * safe_tanh(score{{$m}}), p.cap != 0.0), sees);
            weight[{{mul $m 64}}u + local] = score{{$m}};
        }
{{- end}}
        workgroupBarrier();
        if local < {{mul .Rows 8}}u {
            var m = -3.4028234e38;
            for (var i = 0u; i < 8u; i++) { m = max(m, weight[local * 8u + i]); }
            peak[local] = m;
        }
        workgroupBarrier();
{{- range $m := seq .Rows}}
        {
            var m = best{{$m}};
            for (var i = 0u; i < 8u; i++) { m = max(m, peak[{{mul $m 8}}u + i]); }
            weight[{{mul $m 64}}u + local] = weight_of(score{{$m}} - m);
            let f = weight_of(best{{$m}} - m);
            if local / 8u == {{$m}}u { scaled = f; }
            acc{{$m}} *= f;
            best{{$m}} = m;
        }
{{- end}}
        workgroupBarrier();
        if local < {{mul .Rows 8}}u {
            sum *= scaled;
            for (var i = 0u; i < 8u; i++) { sum += weight[local * 8u + i]; }
        }
        if column < p.d {
            for (var i = group; i < here; i += {{.Groups}}u) {
                let row = place[i];
                if row == nowhere { continue; }
                let v = values_at(row, head, column);
{{- range $m := seq .Rows}}
                acc{{$m}} += weight[{{mul $m 64}}u + i] * v;
{{- end}}
            }
        }
    }
    if local < {{mul .Rows 8}}u { peak[local] = sum; }
    let unit = (sequence * p.kvheads + head) * p.all_parts + p.part0 + part;
{{- range $m := seq .Rows}}
    workgroupBarrier();
    slab[local] = acc{{$m}};
    workgroupBarrier();
    if row0 + {{$m}}u < p.rows {
        let at = p.partial0 + (unit * p.rows + row0 + {{$m}}u) * (p.d + 2u);
        if local == 0u {
            var total = 0.0;
            for (var i = 0u; i < 8u; i++) { total += peak[{{mul $m 8}}u + i]; }
            partial[at] = best{{$m}};
            partial[at + 1u] = total;
        }
        if group == 0u {
            var y = acc{{$m}};
{{- range $g := seq $.Groups}}{{if gt $g 0}}
            y += slab[{{div (mul $g $.Width) 4}}u + local];
{{- end}}{{end}}
{{- range $j, $c := $.Components}}
            if column + {{$j}}u < p.d { partial[at + 2u + column + {{$j}}u] = y.{{$c}}; }
{{- end}}
        }
    }
{{- end}}
}
