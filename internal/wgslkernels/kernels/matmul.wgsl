{{template "product_head" .}}
{{template "product_load" .}}
{{- $p := .}}
{{- $nv := div .TN 4}}
// A workgroup of {{.WX}}×{{.WY}} invocations computes a tile of {{.BM}} rows and {{.BN}} columns; each invocation {{.TM}} neighbouring rows
// and {{.TN}} columns that lie so that neighbouring invocations read and write side by side.
// Operands are read as vectors of four along the axis in which they lie in memory:
// lhs along {{if .TransA}}rows{{else}}depth{{end}}, rhs along {{if .TransB}}depth{{else}}columns{{end}}.
{{- if .KT}}
var<workgroup> tile_a: array<vec4<f32>, {{.SizeA}}>;
var<workgroup> tile_b: array<vec4<f32>, {{.SizeB}}>;
{{- end}}

fn store(row: u32, col: u32, at: u32, v: vec4<f32>) {
{{- if .VecC}}
    if row < p.rows && col < p.cols {
        let o = at + row * p.ldc + col;
        res[o >> 2u] = finish(v, row, col, o);
    }
{{- else}}
    if row < p.rows {
        let o = at + row * p.ldc;
    {{- range $j := seq 4}}
        let c{{$j}} = col + {{mul $j $p.Apart}}u;
        if c{{$j}} < p.cols { res[o + c{{$j}}] = finish(v[{{$j}}], row, c{{$j}}, o + c{{$j}}); }
    {{- end}}
    }
{{- end}}
}

@compute @workgroup_size({{.WX}}, {{.WY}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let id = linear_id(workgroup, grid);
    if id >= p.total { return; }
    let tile = id % p.tiles;
    let z = id / p.tiles;
    let base_a = p.a0 + z / p.splits * p.stride_a;
    let base_b = p.b0 + z / p.splits * p.stride_b;
    let first = z % p.splits * p.split;
    let end = min(first + p.split, p.depth);
    let tile_row = tile / p.tiles_across * {{.BM}}u;
    let tile_col = tile % p.tiles_across * {{.BN}}u;
    let row = tile_row + local.y * {{.TM}}u;
    {{- if .TransB}}
    let col = tile_col + local.x;
    {{- else}}
    let col = tile_col + local.x * 4u;
    {{- end}}
{{- range $i := seq .TM}}{{range $j := seq $nv}}
    var s{{$i}}_{{$j}} = vec4<f32>();
{{- end}}{{end}}
{{if .KT}}
    let lane = local.y * {{.WX}}u + local.x;
    for (var start = first; start < end; start += {{.KT}}u) {
        for (var i = lane; i < {{.VecsA}}u; i += {{.Lanes}}u) {
            let r = i / {{.WideA}}u;
            let q = i % {{.WideA}}u * 4u;
            var v = vec4<f32>();
        {{- if .TransA}}
            if start + r < end { v = load_a(base_a + (start + r) * p.lda, min(tile_row + q, (p.rows - 1u) & ~3u), p.rows); }
        {{- else}}
            if start + q < end { v = load_a(base_a + min(tile_row + r, p.rows - 1u) * p.lda, start + q, p.depth); }
        {{- end}}
            tile_a[r * {{.PitchA}}u + i % {{.WideA}}u] = v;
        }
        for (var i = lane; i < {{.VecsB}}u; i += {{.Lanes}}u) {
            let r = i / {{.WideB}}u;
            let q = i % {{.WideB}}u * 4u;
            var v = vec4<f32>();
        {{- if .TransB}}
            if start + q < end { v = load_b(base_b + min(tile_col + r, p.cols - 1u) * p.ldb, start + q, p.depth); }
        {{- else}}
            if start + r < end { v = load_b(base_b + (start + r) * p.ldb, min(tile_col + q, (p.cols - 1u) & ~3u), p.cols); }
        {{- end}}
            tile_b[r * {{.PitchB}}u + i % {{.WideB}}u] = v;
        }
        workgroupBarrier();
        for (var k = 0u; k < {{.KT}}u; k += 4u) {
        {{- if not .TransA}}{{range $i := seq .TM}}
            let a{{$i}} = tile_a[(local.y * {{$p.TM}}u + {{$i}}u) * {{$p.PitchA}}u + (k >> 2u)];
        {{- end}}{{end}}
        {{- if .TransB}}{{range $j := seq .TN}}
            let b{{$j}} = tile_b[(local.x + {{mul $j $p.WX}}u) * {{$p.PitchB}}u + (k >> 2u)];
        {{- end}}{{end}}
        {{- range $k := seq 4}}
            {
            {{- if $p.TransA}}{{range $i := seq (div $p.TM 4)}}
                let a{{$i}} = tile_a[(k + {{$k}}u) * {{$p.PitchA}}u + local.y * {{div $p.TM 4}}u + {{$i}}u];
            {{- end}}{{end}}
            {{- range $j := seq $nv}}
                {{- if $p.TransB}}
                let c{{$j}} = vec4<f32>(b{{mul $j 4}}[{{$k}}], b{{add (mul $j 4) 1}}[{{$k}}], b{{add (mul $j 4) 2}}[{{$k}}], b{{add (mul $j 4) 3}}[{{$k}}]);
                {{- else}}
                let c{{$j}} = tile_b[(k + {{$k}}u) * {{$p.PitchB}}u + {{mul $j $p.WX}}u + local.x];
                {{- end}}
            {{- end}}
            {{- range $i := seq $p.TM}}{{range $j := seq $nv}}
                s{{$i}}_{{$j}} += {{if $p.TransA}}a{{div $i 4}}[{{rem $i 4}}]{{else}}a{{$i}}[{{$k}}]{{end}} * c{{$j}};
            {{- end}}{{end}}
            }
        {{- end}}
        }
        workgroupBarrier();
    }
{{else}}
    if row >= p.rows || col >= p.cols { return; }
    {{- if .TransA}}{{range $i := seq .FragA}}
    let at_a{{$i}} = min(row + {{mul $i 4}}u, (p.rows - 1u) & ~3u);
    {{- end}}{{else}}{{range $i := seq .TM}}
    let at_a{{$i}} = base_a + min(row + {{$i}}u, p.rows - 1u) * p.lda;
    {{- end}}{{end}}
    {{- if .TransB}}{{range $j := seq .TN}}
    let at_b{{$j}} = base_b + min(col + {{mul $j $p.WX}}u, p.cols - 1u) * p.ldb;
    {{- end}}{{else}}{{range $j := seq $nv}}
    let at_b{{$j}} = min(col + {{mul $j (mul $p.WX 4)}}u, (p.cols - 1u) & ~3u);
    {{- end}}{{end}}
    for (var k = first; k < end; k += 4u) {
    {{- if not .TransA}}{{range $i := seq .TM}}
        let a{{$i}} = load_a(at_a{{$i}}, k, p.depth);
    {{- end}}{{end}}
    {{- if .TransB}}{{range $j := seq .TN}}
        let b{{$j}} = load_b(at_b{{$j}}, k, p.depth);
    {{- end}}{{end}}
    {{- range $k := seq 4}}
        {
        {{- if $p.Tail}}
            let l = min(k + {{$k}}u, p.depth - 1u);
            let beyond = k + {{$k}}u >= p.depth;
        {{- else}}
            let l = k + {{$k}}u;
        {{- end}}
        {{- if $p.TransA}}{{range $i := seq $p.FragA}}
            let a{{$i}} = {{if $p.Tail}}select({{end}}load_a(base_a + l * p.lda, at_a{{$i}}, p.rows){{if $p.Tail}}, vec4<f32>(), beyond){{end}};
        {{- end}}{{end}}
        {{- range $j := seq $nv}}
            {{- if $p.TransB}}
            let c{{$j}} = vec4<f32>(b{{mul $j 4}}[{{$k}}], b{{add (mul $j 4) 1}}[{{$k}}], b{{add (mul $j 4) 2}}[{{$k}}], b{{add (mul $j 4) 3}}[{{$k}}]);
            {{- else}}
            let c{{$j}} = {{if $p.Tail}}select({{end}}load_b(base_b + l * p.ldb, at_b{{$j}}, p.cols){{if $p.Tail}}, vec4<f32>(), beyond){{end}};
            {{- end}}
        {{- end}}
        {{- range $i := seq $p.TM}}{{range $j := seq $nv}}
            s{{$i}}_{{$j}} += {{if $p.TransA}}a{{div $i 4}}[{{rem $i 4}}]{{else}}a{{$i}}[{{$k}}]{{end}} * c{{$j}};
        {{- end}}{{end}}
        }
    {{- end}}
    }
{{end}}
    let at = p.c0 + z * p.stride_c;
{{- range $i := seq .TM}}{{range $j := seq $nv}}
    store(row + {{$i}}u, col + {{mul $j (mul $p.WX 4)}}u, at, s{{$i}}_{{$j}});
{{- end}}{{end}}
}
