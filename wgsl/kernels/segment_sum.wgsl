{{- $word := "f32"}}{{if .Vec}}{{$word = "vec4<f32>"}}{{end -}}
// Adds rows of x, whose keys ascend, to the rows of y that the keys name; keys beyond the rows of y do not count. Each piece of {{.Piece}} rows of x is one invocation's
// for each unit of {{if .Vec}}four words{{else}}a word{{end}}.
{{- if not .Last}} The first and the last key of a piece may go on in its neighbours: their sums
// become two rows of the next stage's x.{{end}}
struct Params {
    total: u32, // units of all pieces
    width: u32, // units of a row
    count: u32, // rows of x
    rows: u32, // of y
    x0: u32, y0: u32,
}

{{$next := 1 -}}
@group(0) @binding(0) var<storage, read> keys: array<u32>;
{{- if .First}}
@group(0) @binding(1) var<storage, read> order: array<u32>; // where the rows of x lie
{{- $next = 2}}{{end}}
@group(0) @binding({{$next}}) var<storage, read> x: array<{{$word}}>;
@group(0) @binding({{add $next 1}}) var<storage, read_write> y: array<{{$word}}>;
{{- if not .Last}}
@group(0) @binding({{add $next 2}}) var<storage, read_write> ends: array<u32>; // keys of sums
@group(0) @binding({{add $next 3}}) var<storage, read_write> sums: array<{{$word}}>;
{{- $next = add $next 2}}{{end}}
@group(0) @binding({{add $next 2}}) var<uniform> p: Params;

const none = 0xffffffffu;

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let i = linear_id(workgroup, grid) * {{.Lanes}}u + local.x;
    if i >= p.total { return; }
    let piece = i / p.width;
    let col = i % p.width;
    let end = min((piece + 1u) * {{.Piece}}u, p.count);
    var now = none;
    var sum = {{$word}}();
{{- if not .Last}}
    let slot = 2u * piece;
    var first = none;
{{- end}}
    for (var at = piece * {{.Piece}}u; at < end; at++) {
        let key = keys[at];
        if key >= p.rows { continue; }
        if key != now {
            if now != none {
{{- if .Last}}
                y[p.y0 + now * p.width + col] += sum;
{{- else}}
                if first == none {
                    first = now;
                    sums[slot * p.width + col] = sum;
                } else {
                    y[p.y0 + now * p.width + col] += sum;
                }
{{- end}}
            }
            now = key;
            sum = {{$word}}();
        }
        sum += x[p.x0 + {{if .First}}order[at]{{else}}at{{end}} * p.width + col];
    }
{{- if .Last}}
    if now != none { y[p.y0 + now * p.width + col] += sum; }
{{- else}}
    sums[(slot + select(1u, 0u, first == none)) * p.width + col] = sum;
    if col == 0u {
        ends[slot] = select(first, now, first == none);
        ends[slot + 1u] = select(now, none, first == none);
    }
{{- end}}
}
