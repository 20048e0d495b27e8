// Sums of the elements of a task up to each one, from those of the parts of its row before it. A row is cut into parts, of which
// each is a task of Lanes threads; a workgroup holds as many tasks as fit. The task is walked over in tiles: a thread sums four
// neighbours, the threads' sums are summed up by doubling distances, and the sum of all goes on to the next tile. Backwards, the
// last tile is first, and so is the last element.
struct Params {
    first: u32, // task of this dispatch
    end: u32,   // one past its last task
    cols: u32,
    parts: u32, // tasks per row
    chunk: u32, // elements per part
    x_base: u32, // element at which the bound part of x begins
    y_base: u32,
    before_base: u32, // task at which the bound part of the sums before tasks begins
    exclusive: u32,
    backwards: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
{{- if .Before}}
@group(0) @binding(2) var<storage, read> before: array<f32>;
{{- end}}
@group(0) @binding({{if .Before}}3{{else}}2{{end}}) var<uniform> p: Params;

var<workgroup> sums: array<f32, {{.Workgroup}}>;

@compute @workgroup_size({{.Workgroup}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let lane = local % {{.Lanes}}u;
    let asked = p.first + linear_id(workgroup, grid) * {{div .Workgroup .Lanes}}u + local / {{.Lanes}}u;
    let task = min(asked, p.end - 1u); // threads beyond the end repeat the last task without writing
    let row = task / p.parts;
    let start = (task - row * p.parts) * p.chunk;
    let length = min(p.chunk, p.cols - start);
    let origin = row * p.cols + start;
    var carry = {{if .Before}}before[task - p.before_base]{{else}}0.0{{end}};
    let longest = min(p.chunk, p.cols); // of any task, so that all threads of the workgroup walk over as many tiles
    for (var tile = 0u; tile < longest; tile += {{mul 4 .Lanes}}u) {
        // Places 4·lane … of the tile, counted from where the sums begin.
        let place = vec4(tile + 4u * lane) + vec4(0u, 1u, 2u, 3u);
        let inside = place < vec4(length);
        let reached = min(place, vec4(length - 1u));
        let e = origin + select(reached, length - 1u - reached, p.backwards != 0u);
        let i = e - p.x_base;
        var v = select(vec4<f32>(), vec4(x[i.x], x[i.y], x[i.z], x[i.w]), inside);
        v.y += v.x;
        v.z += v.y;
        v.w += v.z;
        var sum = v.w; // of lanes up to this one
{{- range .Distances}}
        sums[local] = sum;
        workgroupBarrier();
        if lane >= {{.}}u {
            sum = sums[local - {{.}}u] + sum;
        }
        workgroupBarrier();
{{- end}}
        sums[local] = sum;
        workgroupBarrier();
        let others = carry + select(0.0, sums[max(local, 1u) - 1u], lane > 0u);
        carry += sums[local - lane + {{sub .Lanes 1}}u];
        workgroupBarrier();
        let r = others + select(v, vec4(0.0, v.xyz), p.exclusive != 0u);
        if asked < p.end {
            let o = e - p.y_base;
{{- range $c := .Components}}
            if inside.{{$c}} {
                y[o.{{$c}}] = r.{{$c}};
            }
{{- end}}
        }
    }
}
