// The k largest elements of each task, which is a part of a row, by one workgroup. Elements above the least of the k largest so far
// are gathered in an arena after those; when it is full, it is sorted, and the k first stay. An element is a pair of its order
// key and the complement of its index, of which no two are equal: the order in which they are gathered does not show.
struct Params {
    first: u32, // task of this dispatch
    end: u32,   // one past its last task
    cols: u32,
    parts: u32, // tasks per row
    chunk: u32, // elements per part
    x_base: u32,
    y_base: u32,
    k: u32,
    inf: u32,
}

@group(0) @binding(0) var<storage, read> x: array<{{if .FromPairs}}vec2<u32>{{else}}f32{{end}}>;
{{if .ToPairs -}}
@group(0) @binding(1) var<storage, read_write> pairs: array<vec2<u32>>;
@group(0) @binding(2) var<uniform> p: Params;
{{- else -}}
@group(0) @binding(1) var<storage, read_write> values: array<f32>;
@group(0) @binding(2) var<storage, read_write> indices: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;
{{- end}}

const room = {{.Room}}u; // of the arena
var<workgroup> arena: array<vec2<u32>, room>;
var<workgroup> count: atomic<u32>;
var<workgroup> known: u32; // count, where all read it

{{.Functions}}
fn above(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.x > b.x || (a.x == b.x && a.y > b.y);
}

fn exchange(i: u32, j: u32) {
    if j < room {
        let a = arena[i];
        let b = arena[j];
        if above(b, a) {
            arena[i] = b;
            arena[j] = a;
        }
    }
}

// Sorts by a bitonic network whose comparisons all have one direction, so that what lies after the arena's end counts as least.
fn sort(n: u32, lane: u32) {
    for (var size = 2u; size < 2u * n; size *= 2u) {
        let half = size / 2u;
        for (var c = lane; 2u * c < 2u * n; c += {{.Workgroup}}u) {
            let base = c / half * size;
            let at = c % half;
            exchange(base + at, base + size - 1u - at);
        }
        workgroupBarrier();
        for (var step = half / 2u; step > 0u; step /= 2u) {
            for (var c = lane; 2u * c < 2u * n; c += {{.Workgroup}}u) {
                let i = c / step * step + c;
                exchange(i, i + step);
            }
            workgroupBarrier();
        }
    }
}

@compute @workgroup_size({{.Workgroup}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let asked = p.first + linear_id(workgroup, grid);
    let task = min(asked, p.end - 1u);
    let row = task / p.parts;
    let start = (task - row * p.parts) * p.chunk;
    let stop = min(start + p.chunk, p.cols);
    for (var i = lane; i < room; i += {{.Workgroup}}u) {
        arena[i] = vec2<u32>();
    }
    if lane == 0u { atomicStore(&count, 0u); }
    var least = vec2<u32>();
    workgroupBarrier();
    for (var tile = start; tile < stop; tile += {{mul 2 .Workgroup}}u) {
        for (var j = 0u; j < 2u; j++) {
            let i = tile + lane + j * {{.Workgroup}}u;
            if i < stop {
                let v = x[row * p.cols + i - p.x_base];
                let pair = {{if .FromPairs}}v{{else}}vec2(order_key(v), ~i){{end}};
                if above(pair, least) {
                    arena[atomicAdd(&count, 1u)] = pair;
                }
            }
        }
        workgroupBarrier();
        if lane == 0u {
            known = atomicLoad(&count);
        }
        let n = workgroupUniformLoad(&known);
        if n + {{mul 2 .Workgroup}}u > room || tile + {{mul 2 .Workgroup}}u >= stop {
            sort(n, lane);
            least = arena[p.k - 1u];
            for (var i = p.k + lane; i < n; i += {{.Workgroup}}u) {
                arena[i] = vec2<u32>();
            }
            if lane == 0u {
                atomicStore(&count, min(n, p.k));
            }
            workgroupBarrier();
        }
    }
    if asked < p.end {
        for (var i = lane; i < p.k; i += {{.Workgroup}}u) {
            let pair = arena[i];
            let at = task * p.k + i - p.y_base;
{{- if .ToPairs}}
            pairs[at] = pair;
{{- else}}
            values[at] = order_value(pair.x);
            indices[at] = ~pair.y;
{{- end}}
        }
    }
}
