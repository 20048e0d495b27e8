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
}

{{range $i, $name := .Operands -}}
@group(0) @binding({{$i}}) var<storage, read> x{{$i}}: array<{{$.Element}}>;
{{end -}}
@group(0) @binding({{len .Operands}}) var<storage, read_write> y: array<{{.Out}}>;
@group(0) @binding({{add (len .Operands) 1}}) var<uniform> p: Params;

{{template "tree_head" .}}
{{.Functions}}
fn value({{range $i, $name := .Operands}}{{$name}}: {{$.Scalar}}, {{end}}i: u32) -> {{.Acc}} {
    return {{.Value}};
}

fn merge(a: {{.Acc}}, b: {{.Acc}}) -> {{.Acc}} {
    return {{.Merge}};
}

fn finish(a: {{.Acc}}) -> {{.Out}} {
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
            acc0 = merge(acc0, value({{range $o, $name := .Operands}}x{{$o}}[e / 4u][e % 4u], {{end}}e - origin));
        }
        for (var e = full_high + lane; e < high; e += {{.Lanes}}u) {
            acc0 = merge(acc0, value({{range $o, $name := .Operands}}x{{$o}}[e / 4u][e % 4u], {{end}}e - origin));
        }
{{- end}}
        var unit = full_low / {{.Width}}u + lane;
        let last = full_high / {{.Width}}u;
        while unit < last {
{{- range $c, $lane := .Columns}}
            var run{{$c}} = {{$.Acc}}({{$.Identity}});
{{- end}}
            for (var k = 0u; k < {{.Run}}u && unit < last; k++) {
{{- range $o, $name := .Operands}}
                let {{$name}} = x{{$o}}[unit];
{{- end}}
{{- range $c, $lane := .Columns}}
                run{{$c}} = merge(run{{$c}}, value({{range $.Operands}}{{.}}{{$lane}}, {{end}}unit * {{$.Width}}u + {{$c}}u - origin));
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
        y[task - p.out_base] = finish(acc);
    }
}
