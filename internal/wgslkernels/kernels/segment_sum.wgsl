{{- $word := "f32"}}{{if .Vec}}{{$word = "vec4<f32>"}}{{end -}}
// Adds rows of x, whose keys ascend, to the rows of y that the keys name; keys beyond the rows of y do not count. The rows of x are
// cut into pieces of {{.Piece}}: rows of one key and piece are summed by one invocation for each unit of {{if .Vec}}four words{{else}}a word{{end}}.
{{- if not .Last}} The sums of
// a piece's first and last key, which may go on in its neighbours, become two rows of the next stage's x.{{end}}
struct Params {
    total: u32, // units of all invocations
    width: u32, // units of a row
    count: u32, // rows of x
    rows: u32, // of y
    span: u32, // rows of x that an invocation looks at for where keys begin; divides {{.Piece}}
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
@group(0) @binding({{add $next 2}}) var<storage, read_write> ends: array<u32>; // the next stage's keys
@group(0) @binding({{add $next 3}}) var<storage, read_write> sums: array<{{$word}}>; // and its x
{{- $next = add $next 2}}{{end}}
@group(0) @binding({{add $next 2}}) var<uniform> p: Params;
{{- if not .Last}}

fn put(slot: u32, col: u32, key: u32, sum: {{$word}}) {
    sums[slot * p.width + col] = sum;
    if col == 0u { ends[slot] = key; }
}
{{- end}}

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let i = linear_id(workgroup, grid) * {{.Lanes}}u + local.x;
    if i >= p.total { return; }
    let col = i % p.width;
    var at = i / p.width * p.span;
    let stop = min(at + p.span, p.count);
    let piece = at / {{.Piece}}u;
    let begin = piece * {{.Piece}}u;
    let end = min(begin + {{.Piece}}u, p.count);
    while at < stop {
        let key = keys[at];
        let first = at == begin;
        if !first && keys[at - 1u] == key {
            at++;
            continue;
        }
        var sum = {{$word}}();
        let row = p.y0 + key * p.width + col;
        for (; at < end && keys[at] == key; at++) {
            if key < p.rows { sum += x[p.x0 + {{if .First}}order[at]{{else}}at{{end}} * p.width + col]; }
        }
{{- if .Last}}
        if key < p.rows { y[row] += sum; }
{{- else}}
        if first { put(2u * piece, col, key, sum); }
        if at == end {
            put(2u * piece + 1u, col, key, select(sum, {{$word}}(), first));
        } else if !first && key < p.rows {
            y[row] += sum;
        }
{{- end}}
    }
}
