{{/* Parts that the kernels of matmul share. */}}
{{define "product_head"}}
// One part of a product: res[z] = finish(lhs[z]·rhs[z]) over rows × cols with inner length depth. Offsets, row lengths (ld)
// and distances between matrices (stride) count elements.
struct Params {
    rows: u32, cols: u32, depth: u32, total: u32,
    lda: u32, ldb: u32, ldc: u32, tiles: u32,
    a0: u32, b0: u32, c0: u32, tiles_across: u32,
    stride_a: u32, stride_b: u32, stride_c: u32, row0: u32,
    splits: u32, split: u32, // parts of the inner loop, and their length
    col0: u32, inf: u32,
{{- template "finish_scalars" .Finish}}
}

@group(0) @binding(0) var<storage, read> lhs: array<{{.TypeA}}>;
{{- if .RHS}}
@group(0) @binding({{.RHS}}) var<storage, read> rhs: array<{{.TypeB}}>;
{{- end}}
@group(0) @binding({{sub .Uniform 1}}) var<storage, read_write> res: array<{{if .VecC}}vec4<f32>{{else}}f32{{end}}>;
@group(0) @binding({{.Uniform}}) var<uniform> p: Params;

{{template "finish" .Finish}}
{{end}}

{{define "product_element"}}
{{- if and .Half (not .F16)}}
// A pair of {{.Half}} in a word.
fn halves(word: u32) -> vec2<f32> {
{{- if eq .Half "f16"}}
    return unpack2x16float(word);
{{- else}}
    return vec2<f32>(bitcast<f32>(word << 16u), bitcast<f32>(word & 0xffff0000u));
{{- end}}
}
{{end}}
{{- if not .VecA}}
fn at_a(i: u32) -> f32 {
    return {{if not .HalfA}}lhs[i]{{else if .F16}}f32(lhs[i]){{else}}halves(lhs[i >> 1u])[i & 1u]{{end}};
}
{{end}}
{{- if not .VecB}}
fn at_b(i: u32) -> f32 {
    return {{if not .HalfB}}rhs[i]{{else if .F16}}f32(rhs[i]){{else}}halves(rhs[i >> 1u])[i & 1u]{{end}};
}
{{end}}
{{end}}

{{define "product_load"}}
{{template "product_element" .}}
{{- if .Format}}{{template "quant_head" .Blocks}}{{template "quant_run" .Blocks}}{{end}}
// Four elements of the matrix row that starts at element row, from column j on; columns from width on read as zero, whatever
// lies there.
fn load_a(row: u32, j: u32, width: u32) -> vec4<f32> {
{{- if and .VecA .HalfA .F16}}
    return vec4<f32>(lhs[(row + j) >> 2u]);
{{- else if and .VecA .HalfA}}
    let w = lhs[(row + j) >> 2u];
    return vec4<f32>(halves(w.x), halves(w.y));
{{- else if .VecA}}
    return lhs[(row + j) >> 2u];
{{- else}}
    let e = width - 1u;
    let v = vec4<f32>(at_a(row + j), at_a(row + min(j + 1u, e)), at_a(row + min(j + 2u, e)), at_a(row + min(j + 3u, e)));
    return select(v, vec4<f32>(), vec4<u32>(j, j + 1u, j + 2u, j + 3u) > vec4<u32>(e));
{{- end}}
}

fn load_b(row: u32, j: u32, width: u32) -> vec4<f32> {
{{- if .Format}}
    let r = rhs_run(row, width / {{if .Blocks.Long}}256{{else}}32{{end}}u, j >> 4u, (j >> 2u) & 3u);
    return values(r.q, r.s, {{.Blocks.Offset}}.0, r.m);
{{- else if and .VecB .HalfB .F16}}
    return vec4<f32>(rhs[(row + j) >> 2u]);
{{- else if and .VecB .HalfB}}
    let w = rhs[(row + j) >> 2u];
    return vec4<f32>(halves(w.x), halves(w.y));
{{- else if .VecB}}
    return rhs[(row + j) >> 2u];
{{- else}}
    let e = width - 1u;
    let v = vec4<f32>(at_b(row + j), at_b(row + min(j + 1u, e)), at_b(row + min(j + 2u, e)), at_b(row + min(j + 3u, e)));
    return select(v, vec4<f32>(), vec4<u32>(j, j + 1u, j + 2u, j + 3u) > vec4<u32>(e));
{{- end}}
}
{{end}}
