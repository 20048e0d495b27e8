// Reduces rows to one value each. A row is cut into parts; each task reduces one part with Lanes threads, and a workgroup
// holds as many tasks as fit. Where rows have several parts, a second dispatch reduces the values of their tasks.
// Sums are formed in blocks, then by a tree: the error grows with the length of a run, not of the row.
struct Params {
    first: u32, // task of this dispatch
    end: u32,   // one past its last task
    cols: u32,
    parts: u32, // tasks per row
    chunk: u32, // elements per part
    in_base: u32,  // element at which the bound part of the operands begins
    out_base: u32, // task at which the bound part of the result begins
    inf: u32,
    count: f32, // elements of a row, before any was reduced
    vector_base: u32, // element at which the bound part of operands begins that are as long as a row
    row_base: u32, // row at which that of operands begins with an element for each row
{{- range $i := seq .Scalars}}
    s{{$i}}: f32,
{{- end}}
}

{{range $i, $b := .In -}}
@group(0) @binding({{$i}}) var<storage, read> {{$b.Name}}: array<{{$b.Type}}>;
{{end -}}
@group(0) @binding({{.Result}}) var<storage, read_write> y: array<{{.Out}}>;
@group(0) @binding({{add .Result 1}}) var<uniform> p: Params;

{{template "tree_head" .}}
{{if .Epilogue.Function}}{{template "finish" .Epilogue}}{{else}}{{.Epilogue.Functions}}{{end}}
{{- if eq .Width 4}}
fn element(e: u32, row: u32, origin: u32) -> f32 {
{{- range $i, $reach := .Reads}}
    let v{{$i}} = x{{$i}}
    {{- if eq $reach "each"}}[e / 4u][e % 4u];
    {{- else if eq $reach "column"}}[e - (origin + p.vector_base)];
    {{- else if eq $reach "row"}}[row - p.row_base];
    {{- else}}[0];
    {{- end}}
{{- end}}
    return {{.One}};
}

fn four(unit: u32, row: u32, origin: u32) -> vec4<f32> {
    let j = 4u * unit - (origin + p.vector_base);
{{- range $i, $reach := .Reads}}
    let v{{$i}} =
    {{- if eq $reach "each"}} x{{$i}}[unit];
    {{- else if eq $reach "column"}} vec4(x{{$i}}[j], x{{$i}}[j + 1u], x{{$i}}[j + 2u], x{{$i}}[j + 3u]);
    {{- else if eq $reach "row"}} vec4(x{{$i}}[row - p.row_base]);
    {{- else}} vec4(x{{$i}}[0]);
    {{- end}}
{{- end}}
    return {{.Four}};
}
{{end}}
fn value(a: {{.Scalar}}, {{if .Other}}b: {{.Scalar}}, {{end}}i: u32) -> {{.Acc}} {
    return {{.Value}};
}

fn merge(a: {{.Acc}}, b: {{.Acc}}) -> {{.Acc}} {
    return {{.Merge}};
}

fn outcome(a: {{.Acc}}) -> {{.Out}} {
    return {{.Finish}};
}

@compute @workgroup_size({{.Workgroup}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_index) local: u32{{template "tree_inputs" .}}) {
    let task = p.first + linear_id(workgroup, grid) * {{div .Workgroup .Lanes}}u + local / {{.Lanes}}u;
    let lane = local % {{.Lanes}}u;
{{- range $c, $lane := .Columns}}
    var acc{{$c}} = {{$.Acc}}({{$.Identity}});
{{- end}}
    if task < p.end {
        let row = task / p.parts;
        let start = (task - row * p.parts) * p.chunk;
        let origin = row * p.cols - p.in_base; // where the row begins in the binding; it may lie before it
        let low = origin + start;
        let high = origin + min(start + p.chunk, p.cols);
{{- if eq .Width 1}}
        let full_low = low;
        let full_high = high;
{{- else}}
        // Whole vec4 from full_low to full_high, single elements before and after.
        let full_low = min((low + 3u) & ~3u, high);
        let full_high = max(high & ~3u, full_low);
        for (var e = low + lane; e < full_low; e += {{.Lanes}}u) {
            acc0 = merge(acc0, value(element(e, row, origin), {{if .Other}}other[e / 4u][e % 4u], {{end}}e - origin));
        }
        for (var e = full_high + lane; e < high; e += {{.Lanes}}u) {
            acc0 = merge(acc0, value(element(e, row, origin), {{if .Other}}other[e / 4u][e % 4u], {{end}}e - origin));
        }
{{- end}}
        var unit = full_low / {{.Width}}u + lane;
        let last = full_high / {{.Width}}u;
        while unit < last {
{{- range $c, $lane := .Columns}}
            var run{{$c}} = {{$.Acc}}({{$.Identity}});
{{- end}}
            for (var k = 0u; k < {{.Run}}u && unit < last; k++) {
                let a = {{if eq .Width 4}}four(unit, row, origin){{else}}x0[unit]{{end}};
{{- if .Other}}
                let b = other[unit];
{{- end}}
{{- range $c, $lane := .Columns}}
                run{{$c}} = merge(run{{$c}}, value(a{{$lane}}, {{if $.Other}}b{{$lane}}, {{end}}unit * {{$.Width}}u + {{$c}}u - origin));
{{- end}}
                unit += {{.Lanes}}u;
            }
{{- range $c, $lane := .Columns}}
            acc{{$c}} = merge(acc{{$c}}, run{{$c}});
{{- end}}
        }
    }
    var acc = {{if gt .Width 1}}merge(merge(acc0, acc1), merge(acc2, acc3)){{else}}acc0{{end}};
{{- template "tree.wgsl" .}}    if lane == 0u && task < p.end {
        let at = task - p.out_base;
        y[at] = {{if .Epilogue.Function}}finish(outcome(acc), 0u, 0u, at){{else}}outcome(acc){{end}};
    }
}
