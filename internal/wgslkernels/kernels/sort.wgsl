{{- $place := eq .Mode "place"}}{{$count := eq .Mode "count"}}{{$scan := eq .Mode "scan"}}{{$alone := eq .Blocks 1}}{{$spare := add .Digits 1 -}}
// A step of a stable sort of updates by their rows, which goes over the digits of the rows' numbers from the least on. For each
// digit the updates of each block are counted, the counts of all blocks summed up, and the updates put in their places. A key is the
// number of a row counted from low; the digit of keys beyond rows is after all others.
struct Params {
    count: u32, // of updates
    blocks: u32,
    shift: u32, // of the digit
    digits: u32, // a power of two, at most {{.Digits}}
    low: u32, rows: u32,
    keys0: u32,
}
{{if $scan}}
@group(0) @binding(0) var<storage, read_write> counts: array<u32>; // of each digit and block; afterwards of the blocks before it
@group(0) @binding(1) var<storage, read_write> totals: array<u32>; // of each digit
@group(0) @binding(2) var<uniform> p: Params;
{{- else}}
@group(0) @binding(0) var<storage, read> keys: array<u32>;
{{- if $count}}
@group(0) @binding(1) var<storage, read_write> counts: array<u32>;
@group(0) @binding(2) var<uniform> p: Params;
{{- else}}
{{- $next := 1}}
{{- if not .First}}
@group(0) @binding({{$next}}) var<storage, read> order: array<u32>; // the updates' numbers
{{- $next = add $next 1}}{{end}}
{{- if not $alone}}
@group(0) @binding({{$next}}) var<storage, read> counts: array<u32>;
@group(0) @binding({{add $next 1}}) var<storage, read> totals: array<u32>;
{{- $next = add $next 2}}{{end}}
@group(0) @binding({{$next}}) var<storage, read_write> keys_to: array<u32>;
@group(0) @binding({{add $next 1}}) var<storage, read_write> order_to: array<u32>;
@group(0) @binding({{add $next 2}}) var<uniform> p: Params;
{{- end}}

fn key_of(i: u32) -> u32 {
    return keys[p.keys0 + i] - p.low; // far beyond rows if it is below low
}

fn digit_of(key: u32) -> u32 {
    return select(p.digits, (key >> p.shift) & (p.digits - 1u), key < p.rows);
}
{{- end}}
{{if $count}}
var<workgroup> counters: array<atomic<u32>, {{$spare}}>;
{{- else}}
var<workgroup> sums: array<u32, {{.Lanes}}>;

// The sum of v of the lanes up to this one.
fn sum_up(lane: u32, v: u32) -> u32 {
    var sum = v;
{{- range .Distances}}
    sums[lane] = sum;
    workgroupBarrier();
    if lane >= {{.}}u { sum += sums[lane - {{.}}u]; }
    workgroupBarrier();
{{- end}}
    sums[lane] = sum;
    workgroupBarrier();
    return sum;
}
{{- end}}
{{- if $place}}

var<workgroup> next: array<u32, {{$spare}}>; // where the next update of each digit goes
var<workgroup> masks: array<atomic<u32>, {{mul $spare .Words}}>; // which lanes have a digit
{{- end}}

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let block = linear_id(workgroup, grid);
{{- if $scan}}
    if block > p.digits { return; }
    var carry = 0u;
    for (var first = 0u; first < p.blocks; first += {{.Lanes}}u) {
        let inside = first + lane < p.blocks;
        let at = block * p.blocks + min(first + lane, p.blocks - 1u);
        let v = select(0u, counts[at], inside);
        let sum = sum_up(lane, v);
        if inside { counts[at] = carry + sum - v; }
        carry += sums[{{sub .Lanes 1}}u];
        workgroupBarrier();
    }
    if lane == 0u { totals[block] = carry; }
{{- else}}
    if block >= p.blocks { return; }
    let start = block * {{mul .Lanes .Rounds}}u;
    let end = min(start + {{mul .Lanes .Rounds}}u, p.count);
{{- if $count}}
    for (var d = lane; d < {{$spare}}u; d += {{.Lanes}}u) { atomicStore(&counters[d], 0u); }
    workgroupBarrier();
    for (var i = start + lane; i < end; i += {{.Lanes}}u) { atomicAdd(&counters[digit_of(key_of(i))], 1u); }
    workgroupBarrier();
    for (var d = lane; d <= p.digits; d += {{.Lanes}}u) { counts[d * p.blocks + block] = atomicLoad(&counters[d]); }
{{- else}}
    for (var m = lane; m < {{mul $spare .Words}}u; m += {{.Lanes}}u) { atomicStore(&masks[m], 0u); }
{{- if $alone}}
    workgroupBarrier();
    for (var i = start + lane; i < end; i += {{.Lanes}}u) { atomicAdd(&masks[digit_of(key_of(i))], 1u); }
    workgroupBarrier();
    let total = select(0u, atomicLoad(&masks[lane]), lane < p.digits);
    workgroupBarrier();
    atomicStore(&masks[lane], 0u);
    if lane == 0u { atomicStore(&masks[p.digits], 0u); }
{{- else}}
    let total = select(0u, totals[min(lane, p.digits)], lane < p.digits);
{{- end}}
    let sum = sum_up(lane, total);
    if lane < p.digits { next[lane] = sum - total{{if not $alone}} + counts[lane * p.blocks + block]{{end}}; }
    if lane == 0u { next[p.digits] = sums[{{sub .Lanes 1}}u]{{if not $alone}} + counts[p.digits * p.blocks + block]{{end}}; }
    workgroupBarrier();
    let word = lane / 32u;
    let bit = 1u << (lane % 32u);
    for (var first = start; first < end; first += {{.Lanes}}u) {
        let i = first + lane;
        let inside = i < end;
        let key = key_of(min(i, end - 1u));
        let digit = digit_of(key);
        let mask = digit * {{.Words}}u;
        if inside { atomicOr(&masks[mask + word], bit); }
        workgroupBarrier();
        var same = 0u; // lanes of that digit
        var before = 0u; // those before this one
{{- range $w := seq .Words}}
        {
            let m = atomicLoad(&masks[mask + {{$w}}u]);
            same += countOneBits(m);
            before += countOneBits(m & select(select(0u, bit - 1u, word == {{$w}}u), 0xffffffffu, word > {{$w}}u));
        }
{{- end}}
        if inside {
            let at = next[digit] + before;
            keys_to[at] = key;
            order_to[at] = {{if .First}}i{{else}}order[i]{{end}};
        }
        workgroupBarrier();
        if inside {
            if before == 0u { next[digit] += same; }
            atomicStore(&masks[mask + word], 0u);
        }
        workgroupBarrier();
    }
{{- end}}
{{- end}}
}
