// A workgroup of 32 compresses a page of 4 KiB to a block of LZ4: op.CompressLZ4 says how.
struct Params {
    total: u32, sizes0: u32,
    rounds: u32, // after which every page is through
}

@group(0) @binding(0) var<storage, read> pages: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> blocks: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> sizes: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;

var<workgroup> page: array<u32, 1024>;
var<workgroup> table: array<atomic<u32>, 1024>; // for each hash the last position, plus 1
var<workgroup> made: array<atomic<u32>, 1024>; // the block, into which bytes are put once
var<workgroup> lowest: atomic<u32>; // lane that has a match; then the length of the match
var<workgroup> found: u32;
var<workgroup> origin: u32;

fn word(at: u32) -> u32 {
    let shift = (at & 3u) * 8u;
    let low = page[at >> 2u] >> shift;
    if shift == 0u { return low; }
    return low | (page[(at >> 2u) + 1u] << (32u - shift));
}

fn slot(bytes: u32) -> u32 { return (bytes * {{.Hash}}u) >> {{.Shift}}u; }

fn put(at: u32, byte: u32) { atomicOr(&made[at >> 2u], (byte & 255u) << ((at & 3u) * 8u)); }

// Number of bytes after the token that a length takes.
fn more(n: u32) -> u32 {
    if n < 15u { return 0u; }
    return 1u + (n - 15u) / 255u;
}

fn put_length(lane: u32, at: u32, n: u32, bytes: u32) {
    if lane < bytes { put(at + lane, select(255u, n - 15u - 255u * lane, lane + 1u == bytes)); }
}

// Puts literals and a match, of length 0 at the end, after size, and returns the new size; only that where it is too large.
fn sequence(lane: u32, size: u32, anchor: u32, literals: u32, offset: u32, length: u32) -> u32 {
    let at = size + 1u + more(literals);
    let after = at + literals;
    var total = after;
    var token = min(literals, 15u) << 4u;
    if length > 0u {
        total += 2u + more(length - 4u);
        token |= min(length - 4u, 15u);
    }
    if total >= 4096u { return total; }
    if lane == 0u { put(size, token); }
    put_length(lane, size + 1u, literals, more(literals));
    for (var i = lane; i < literals; i += 32u) {
        put(at + i, page[(anchor + i) >> 2u] >> (((anchor + i) & 3u) * 8u));
    }
    if length > 0u {
        if lane < 2u { put(after + lane, offset >> (8u * lane)); }
        put_length(lane, after + 2u, length - 4u, more(length - 4u));
    }
    return total;
}

@compute @workgroup_size(32)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let id = linear_id(workgroup, grid);
    if id >= p.total { return; }
    let lane = local.x;
    for (var i = lane; i < 256u; i += 32u) {
        let v = pages[id * 256u + i];
        for (var j = 0u; j < 4u; j++) { page[4u * i + j] = v[j]; }
    }
    for (var i = lane; i < 1024u; i += 32u) {
        atomicStore(&table[i], 0u);
        atomicStore(&made[i], 0u);
    }
    if lane == 0u { atomicStore(&lowest, 32u); }
    workgroupBarrier();
    var size = 0u;
    var anchor = 0u;
    var at = 0u;
{{- if .Counted}}
    // A compiler that must see that all threads come to a barrier sees no such thing in what they read of workgroup memory.
    for (var round = 0u; round < p.rounds; round++) {
        let inside = at + lane <= {{.Last}}u && size < 4096u;
{{- else}}
    while at <= {{.Last}}u && size < 4096u {
        let inside = at + lane <= {{.Last}}u;
{{- end}}
        let place = min(at + lane, {{.Last}}u);
        let bytes = word(place);
        let entry = slot(bytes);
        let seen = atomicLoad(&table[entry]);
        var q = max(seen, 1u) - 1u;
        var hit = seen != 0u && word(q) == bytes;
        if !hit && place > 0u {
            q = place - 1u;
            hit = word(q) == bytes;
        }
        if hit && inside { atomicMin(&lowest, lane); }
        workgroupBarrier();
        let winner = atomicLoad(&lowest);
        if lane == min(winner, 31u) {
            found = winner;
            origin = q;
        }
        let first = workgroupUniformLoad(&found);
        if lane == 0u { atomicStore(&lowest, select(4096u, 32u, first == 32u)); }
        if inside && lane <= first { atomicMax(&table[entry], place + 1u); }
        workgroupBarrier();
        let begin = origin;
{{- if .Counted}}
        let match_at = at + first;
        if first < 32u {
{{- else}}
        if first == 32u {
            at += 32u;
        } else {
            let match_at = at + first;
{{- end}}
            for (var n = 4u + 4u * lane; match_at + n < {{.End}}u; n += 128u) {
                let differ = word(match_at + n) ^ word(begin + n);
                if differ != 0u {
                    atomicMin(&lowest, n + (countTrailingZeros(differ) >> 3u));
                    break;
                }
                if atomicLoad(&lowest) < n { break; }
            }
{{- if .Counted}}
        }
        workgroupBarrier();
        if lane == 0u && first < 32u { found = min(atomicLoad(&lowest), {{.End}}u - match_at); }
        let length = workgroupUniformLoad(&found);
        if first == 32u {
            at += 32u;
        } else {
{{- else}}
            workgroupBarrier();
            if lane == 0u { found = min(atomicLoad(&lowest), {{.End}}u - match_at); }
            let length = workgroupUniformLoad(&found);
{{- end}}
            if lane == 0u { atomicStore(&lowest, 32u); }
            size = sequence(lane, size, anchor, match_at - anchor, match_at - begin, length);
            anchor = match_at + length;
            at = anchor;
            // The last positions inside the match.
            let late = max(match_at + 1u, max(at, 32u) - 32u) + lane;
            if late < at && late <= {{.Last}}u { atomicMax(&table[slot(word(late))], late + 1u); }
{{- if .Counted}}
        }
        workgroupBarrier();
{{- else}}
            workgroupBarrier();
        }
{{- end}}
    }
    if size < 4096u { size = sequence(lane, size, anchor, 4096u - anchor, 0u, 0u); }
    workgroupBarrier();
    for (var i = lane; i < 256u; i += 32u) {
        var v: vec4<u32>;
        for (var j = 0u; j < 4u; j++) {
            if size < 4096u { v[j] = atomicLoad(&made[4u * i + j]); } else { v[j] = page[4u * i + j]; }
        }
        blocks[id * 256u + i] = v;
    }
    if lane == 0u { sizes[p.sizes0 + id] = min(size, 4096u); }
}
