// Writes rows into a cache at positions: a ring for each sequence, or pages that a table names. A thread has one
// {{if eq .Way "packed"}}two blocks of a packed row{{else if eq .Way "odd"}}element: neighbours in a word may be of two rows, so that it changes bits{{else}}word of the cache{{end}}.
// Rows of the cache below low or from high on belong to other dispatches.
struct Params {
    total: u32, width: u32, // units of the rows, and of one
    row0: u32,              // the first row of this dispatch, among n of each sequence, of which those before first are left out
    n: u32, first: u32,
    slots: u32, entries: u32, pages: u32, // of a ring or page; of the table for a sequence, 0 for rings
    low: u32, high: u32,
    sequence0: u32,
    rows0: u32, positions0: u32, table0: u32, y0: u32, // where in the bindings things begin
    values: u32, words: u32, // of a packed row
}

@group(0) @binding(0) var<storage, read> rows: array<{{if eq .From "f32"}}f32{{else}}u32{{end}}>;
@group(0) @binding(1) var<storage, read> positions: array<u32>;
@group(0) @binding(2) var<storage, read> table: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<{{if eq .Way "odd"}}atomic<u32>{{else}}u32{{end}}>;
@group(0) @binding(4) var<uniform> p: Params;
{{if eq .Way "packed"}}{{template "halves.wgsl" "f16"}}{{template "quant_halves"}}
// Rounds 32 values to multiples of their scale, whose bits it returns.
fn pack(source: u32, to: u32) -> u32 {
    var largest = 0u; // as bits, which tell what is not finite
    for (var i = 0u; i < 32u; i++) { largest = max(largest, bitcast<u32>(rows[source + i]) & 0x7fffffffu); }
    var half = half_of(bitcast<f32>(min(largest, 0x7f7fffffu)) * (1.0 / 127.0));
    if largest >= 0x7f800000u || half >= 0x7c00u { half = 0x7e00u; }
    let scale = halves_of(half).x;
    let some = half != 0u && half != 0x7e00u;
    let inverse = select(0.0, 1.0 / scale, some);
    for (var w = 0u; w < 8u; w++) {
        var word = 0u;
        for (var i = 0u; some && i < 4u; i++) {
            let x = rows[source + 4u * w + i];
            // One off at most. Between two multiples of the scale, products are exact.
            var n = min(abs(x) * inverse + 0.5, 127.0);
            n = floor(n);
            if n < 127.0 && abs(x) >= (n + 0.5) * scale { n += 1.0; }
            if n > 0.0 && abs(x) < (n - 0.5) * scale { n -= 1.0; }
            word |= (u32(select(i32(n), -i32(n), x < 0.0)) & 0xffu) << (8u * i);
        }
        y[to + w] = word;
    }
    return half;
}
{{else if ne .From .To}}{{template "halves.wgsl" .To}}{{end}}
@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let id = linear_id(workgroup, grid) * {{.Lanes}}u + local;
    if id >= p.total { return; }
    let row = p.row0 + id / p.width;
    let sequence = row / p.n;
    let i = row % p.n;
    if i < p.first { return; }
    let position = positions[p.positions0 + sequence - p.sequence0] + i;
    if position >= 0x80000000u { return; } // negative ones too
    var page = sequence;
    if p.entries != 0u {
        let entry = position / p.slots;
        if entry >= p.entries { return; }
        page = table[p.table0 + (sequence - p.sequence0) * p.entries + entry];
        if page >= p.pages { return; }
    }
    let slot = page * p.slots + position % p.slots;
    if slot < p.low || slot >= p.high { return; }
{{- if eq .Way "packed"}}
    let part = id % p.width;
    let source = p.rows0 + id / p.width * p.values + 64u * part;
    let to = p.y0 + (slot - p.low) * p.words;
    var scales = pack(source, to + 16u * part);
    if 64u * part + 32u < p.values { scales |= pack(source + 32u, to + 16u * part + 8u) << 16u; }
    let after = to + p.values / 4u;
    y[after + part] = scales;
    if part == p.width - 1u {
        for (var w = after + p.width; w < to + p.words; w++) { y[w] = 0u; }
    }
{{- else}}
    let to = p.y0 + (slot - p.low) * p.width + id % p.width;
{{- end}}
{{- if eq .Way "words"}}
    y[to] = {{if eq .From "f32"}}bitcast<u32>(rows[p.rows0 + id]){{else}}rows[p.rows0 + id]{{end}};
{{- else if eq .Way "pairs"}}
    let source = p.rows0 + 2u * id;
    y[to] = {{.Round}}(rows[source]) | ({{.Round}}(rows[source + 1u]) << 16u);
{{- else if eq .Way "odd"}}
    let source = p.rows0 + id;
    let bits = {{if eq .From "f32"}}{{.Round}}(rows[source]){{else}}(rows[source / 2u] >> (16u * (source & 1u))) & 0xffffu{{end}};
    let shift = 16u * (to & 1u);
    atomicAnd(&y[to / 2u], 0xffff0000u >> shift);
    atomicOr(&y[to / 2u], bits << shift);
{{- end}}
}
