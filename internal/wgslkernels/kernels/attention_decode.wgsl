// Attention of up to Rows queries that share a head of keys, over a part of these: leaves for each query the maximum m of its scores,
// Σexp(score − m), 0 where it saw nothing, and Σexp(score − m)·value. A workgroup takes 64 keys at a time: threads share the
// products of queries and keys, of which workgroup memory holds sixteen elements at a time, and then the elements of values.
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
@group(0) @binding(1) var<storage, read> keys: array<{{if eq .Kind "f32"}}f32{{else}}u32{{end}}>;
@group(0) @binding(2) var<storage, read> values: array<{{if eq .Kind "f32"}}f32{{else}}u32{{end}}>;
@group(0) @binding(3) var<storage, read> lengths: array<i32>;
@group(0) @binding(4) var<storage, read> table: array<u32>;
@group(0) @binding(5) var<storage, read_write> partial: array<f32>;
@group(0) @binding(6) var<uniform> p: Params;

const nowhere = 0xffffffffu;
var<workgroup> query: array<f32, {{mul .Rows 256}}>; // 256 to a row
var<workgroup> slab: array<f32, 1088>;               // of 64 keys: 16 elements, and one to tell banks apart
var<workgroup> weight: array<f32, {{mul .Rows 64}}>; // scores, then weights: 64 to a row
var<workgroup> place: array<u32, 64>;                // row of each key in the bound part of the cache
var<workgroup> best: array<f32, {{.Rows}}>;
var<workgroup> factor: array<f32, {{.Rows}}>;
var<workgroup> sum: array<f32, {{.Rows}}>;
{{.Functions}}
{{- if eq .Kind "u32"}}{{template "quant_halves"}}{{end}}
{{- range $name := .Arrays}}
// Element e of a head in a row of the cache.
fn {{$name}}_at(row: u32, head: u32, e: u32) -> f32 {
{{- if eq $.Kind "u32"}}
    let c = head * p.d + e; // the bytes of all heads, then the scales of 32 elements each
    let at = p.k0 + row * p.words;
    let scales = halves_of({{$name}}[at + p.kvheads * p.d / 4u + c / 64u]);
    return f32(extractBits(bitcast<i32>({{$name}}[at + c / 4u]), 8u * (c & 3u), 8u)) * select(scales.x, scales.y, (c & 32u) != 0u);
{{- else}}
    let i = p.k0 + (row * p.kvheads + head) * p.d + e;
{{- if eq $.Kind "f32"}}
    return {{$name}}[i];
{{- else if eq $.Kind "f16"}}
    let pair = unpack2x16float({{$name}}[i / 2u]);
    return select(pair.x, pair.y, (i & 1u) == 1u);
{{- else}}
    let word = {{$name}}[i / 2u];
    return bitcast<f32>(select(word << 16u, word & 0xffff0000u, (i & 1u) == 1u));
{{- end}}
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

@compute @workgroup_size({{.Lanes}})
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

    for (var i = local; i < {{mul .Rows 256}}u; i += {{.Lanes}}u) {
        let r = row0 + i / 256u;
        let e = i % 256u;
        var x = 0.0;
        if r < p.rows && e < p.d {
            x = q[p.q0 + ((sequence * p.n + r / p.group) * p.heads + head * p.group + r % p.group) * p.d + e] * p.scale;
        }
        query[i] = x;
    }
    if local < {{.Rows}}u {
        best[local] = -3.4028234e38;
        sum[local] = 0.0;
    }
    var acc: array<f32, {{mul .Rows .Columns}}>;
    var score: array<f32, {{.Scores}}>;
    for (var base = begin; base < end; base += 64u) {
        workgroupBarrier();
        for (var i = local; i < 64u; i += {{.Lanes}}u) {
            var at = nowhere;
            if base + i < end { at = locate(sequence, base + i, oldest); }
            place[i] = at;
        }
        let here = min(64u, end - base);
        for (var s = 0u; s < {{.Scores}}u; s++) { score[s] = 0.0; }
        for (var e0 = 0u; e0 < p.d; e0 += 16u) {
            workgroupBarrier();
            for (var i = local; i < 1024u; i += {{.Lanes}}u) {
                let at = place[i / 16u];
                let e = e0 + i % 16u;
                var x = 0.0;
                if at != nowhere && e < p.d { x = keys_at(at, head, e); }
                slab[i / 16u * 17u + i % 16u] = x;
            }
            workgroupBarrier();
            for (var s = 0u; s < {{.Scores}}u; s++) {
                let i = min(local + s * {{.Lanes}}u, {{sub (mul .Rows 64) 1}}u);
                var x = score[s];
                for (var e = 0u; e < 16u; e++) {
                    x += query[i / 64u * 256u + e0 + e] * slab[i % 64u * 17u + e];
                }
                score[s] = x;
            }
        }
        for (var s = 0u; s < {{.Scores}}u; s++) {
            let i = local + s * {{.Lanes}}u;
            if i < {{mul .Rows 64}}u {
                let t = base + i % 64u;
                let position = first + i32((row0 + i / 64u) / p.group);
                let sees = place[i % 64u] != nowhere && t >= seen_from(position) && t < seen_to(position, used);
                let bent = select(score[s], p.cap * safe_tanh(score[s]), p.cap != 0.0);
                weight[i] = select(-inf(), bent, sees);
            }
        }
        workgroupBarrier();
        if local < {{.Rows}}u {
            let old = best[local];
            var m = old;
            for (var i = 0u; i < here; i++) { m = max(m, weight[local * 64u + i]); }
            best[local] = m;
            factor[local] = weight_of(old - m);
        }
        workgroupBarrier();
        for (var s = 0u; s < {{.Scores}}u; s++) {
            let i = local + s * {{.Lanes}}u;
            if i < {{mul .Rows 64}}u { weight[i] = weight_of(weight[i] - best[i / 64u]); }
        }
        workgroupBarrier();
        if local < {{.Rows}}u {
            var total = 0.0;
            for (var i = 0u; i < here; i++) { total += weight[local * 64u + i]; }
            sum[local] = sum[local] * factor[local] + total;
        }
        for (var c = 0u; c < {{.Columns}}u; c++) {
            let e = local + c * {{.Lanes}}u;
            if e < p.d {
                for (var m = 0u; m < {{.Rows}}u; m++) { acc[m * {{.Columns}}u + c] *= factor[m]; }
                for (var i = 0u; i < here; i++) {
                    let at = place[i];
                    if at == nowhere { continue; }
                    let v = values_at(at, head, e);
                    for (var m = 0u; m < {{.Rows}}u; m++) { acc[m * {{.Columns}}u + c] += weight[m * 64u + i] * v; }
                }
            }
        }
    }
    workgroupBarrier();
    let unit = (sequence * p.kvheads + head) * p.all_parts + p.part0 + part;
    for (var m = 0u; m < {{.Rows}}u; m++) {
        if row0 + m >= p.rows { break; }
        let at = p.partial0 + (unit * p.rows + row0 + m) * (p.d + 2u);
        if local == 0u {
            partial[at] = best[m];
            partial[at + 1u] = sum[m];
        }
        for (var c = 0u; c < {{.Columns}}u; c++) {
            let e = local + c * {{.Lanes}}u;
            if e < p.d { partial[at + 2u + e] = acc[m * {{.Columns}}u + c]; }
        }
    }
}
