// A workgroup of 32 decompresses a block of LZ4 to a page of at most 4 KiB: what op.DecompressLZ4 does. Every length is compared with
// what is left on either side before anything is read or written, and every turn of the loop consumes bytes of the block, so that
// none is without end.
struct Params {
    total: u32, sizes0: u32,
}

@group(0) @binding(0) var<storage, read> blocks: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> sizes: array<u32>;
@group(0) @binding(2) var<storage, read_write> pages: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> states: array<u32>;
@group(0) @binding(4) var<uniform> p: Params;

const going_on = 0x10000u; // status of a sequence with a match
const endless = 0x40000000u;

var<workgroup> block: array<u32, 1024>;
var<workgroup> made: array<atomic<u32>, 1024>; // the page, into which bytes are put once
var<workgroup> parsed: vec4<u32>; // literals: place, number << 16; match: offset, length << 16; position after; status

fn byte(at: u32) -> u32 { return (block[at >> 2u] >> ((at & 3u) * 8u)) & 255u; }

fn put(at: u32, value: u32) { atomicOr(&made[at >> 2u], (value & 255u) << ((at & 3u) * 8u)); }

// A length that begins with n in the token and goes on at a position, and the position after it.
fn length_of(n: u32, place: u32, size: u32) -> vec2<u32> {
    var length = n;
    var at = place;
    var ongoing = n == 15u;
    while ongoing {
        if at >= size { return vec2<u32>(endless, at); }
        let more = byte(at);
        length += more;
        at++;
        ongoing = more == 255u;
    }
    return vec2<u32>(length, at);
}

fn failed(code: u32) -> vec4<u32> { return vec4<u32>(0u, 0u, 0u, 0u - code); }

// Reads a sequence at a position of the block; there bytes of the page exist already.
fn sequence(place: u32, there: u32, size: u32) -> vec4<u32> {
    if place >= size { return failed({{.Truncated}}u); }
    let token = byte(place);
    let literals = length_of(token >> 4u, place + 1u, size);
    if literals.x > size - literals.y { return failed({{.Truncated}}u); }
    if literals.x > 4096u - there { return failed({{.Overflow}}u); }
    let what = literals.y | (literals.x << 16u);
    let to = there + literals.x;
    let at = literals.y + literals.x;
    if at == size { return vec4<u32>(what, 0u, at, to); }
    if at + 2u > size { return failed({{.Truncated}}u); }
    let offset = byte(at) | (byte(at + 1u) << 8u);
    let length = length_of(token & 15u, at + 2u, size);
    if length.x >= endless { return failed({{.Truncated}}u); }
    if offset == 0u || offset > to { return failed({{.BadOffset}}u); }
    if length.x + 4u > 4096u - to { return failed({{.Overflow}}u); }
    return vec4<u32>(what, offset | ((length.x + 4u) << 16u), length.y, going_on);
}

@compute @workgroup_size(32)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let id = linear_id(workgroup, grid);
    if id >= p.total { return; }
    let lane = local.x;
    for (var i = lane; i < 256u; i += 32u) {
        let v = blocks[id * 256u + i];
        for (var j = 0u; j < 4u; j++) {
            block[4u * i + j] = v[j];
            atomicStore(&made[4u * i + j], 0u);
        }
    }
    workgroupBarrier();
    let size = sizes[p.sizes0 + id];
    var at = 0u;
    var there = 0u;
    var status = going_on;
    while status == going_on {
        if lane == 0u {
            if size - 1u >= 4095u { // 4096: the page itself
                parsed = select(failed({{.BadSize}}u), vec4<u32>(0u, 0u, 0u, 4096u), size == 4096u);
            } else {
                parsed = sequence(at, there, size);
            }
        }
        let s = workgroupUniformLoad(&parsed);
        let literals = s.x >> 16u;
        for (var i = lane; i < literals; i += 32u) { put(there + i, byte((s.x & 0xffffu) + i)); }
        there += literals;
        at = s.z;
        status = s.w;
        workgroupBarrier();
        // Every byte comes from what was there before: the offset is the period of what is repeated.
        let offset = s.y & 0xffffu;
        let length = s.y >> 16u;
        for (var i = lane; i < length; i += 32u) {
            let source = there - offset + i % offset;
            put(there + i, atomicLoad(&made[source >> 2u]) >> ((source & 3u) * 8u));
        }
        there += length;
        workgroupBarrier();
    }
    for (var i = lane; i < 256u; i += 32u) {
        var v = vec4<u32>();
        for (var j = 0u; j < 4u; j++) {
            if size == 4096u { v[j] = block[4u * i + j]; } else if status <= 4096u { v[j] = atomicLoad(&made[4u * i + j]); }
        }
        pages[id * 256u + i] = v;
    }
    if lane == 0u { states[p.sizes0 + id] = status; }
}
