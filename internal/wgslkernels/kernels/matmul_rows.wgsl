{{template "product_head" .}}
{{template "product_load" .}}
{{- $p := .}}
// Dot products of the rows of lhs with the few rows of rhs, both contiguous along depth: a workgroup takes four rows of lhs and
// shares out the depth.
var<workgroup> sums: array<vec4<f32>, {{mul .Lanes .Vectors}}>;

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>{{if .Subgroups}}, @builtin(subgroup_size) subgroup_size: u32{{end}}) {
    let id = linear_id(workgroup, grid);
    if id >= p.total { return; }
    let row = id % p.tiles * 4u;
    let z = id / p.tiles;
    let base_a = p.a0 + z / p.splits * p.stride_a;
    let base_b = p.b0 + z / p.splits * p.stride_b;
    let first = z % p.splits * p.split;
    let end = min(first + p.split, p.depth);
{{- range $i := seq 4}}
    let at_a{{$i}} = base_a + min(row + {{$i}}u, p.rows - 1u) * p.lda;
{{- end}}
{{- range $v := seq .Vectors}}
    let at_b{{$v}} = base_b + min({{$v}}u, p.cols - 1u) * p.ldb;
    var s{{$v}} = vec4<f32>();
{{- end}}
    for (var k = first + local.x * 4u; k < end; k += {{mul .Lanes 4}}u) {
    {{- range $i := seq 4}}
        let a{{$i}} = load_a(at_a{{$i}}, k, p.depth);
    {{- end}}
    {{- range $v := seq .Vectors}}
        let b{{$v}} = load_b(at_b{{$v}}, k, p.depth);
        s{{$v}} += vec4<f32>(dot(a0, b{{$v}}), dot(a1, b{{$v}}), dot(a2, b{{$v}}), dot(a3, b{{$v}}));
    {{- end}}
    }
{{- if .Subgroups}}
    let joined = min(subgroup_size, {{.Lanes}}u);
{{- range $v := seq .Vectors}}
    s{{$v}} = subgroupAdd(s{{$v}});
{{- end}}
    if local.x % joined == 0u {
{{- range $v := seq .Vectors}}
        sums[{{mul $v $p.Lanes}}u + local.x / joined] = s{{$v}};
{{- end}}
    }
{{- else}}
{{- range $v := seq .Vectors}}
    sums[{{mul $v $p.Lanes}}u + local.x] = s{{$v}};
{{- end}}
    for (var half = {{div .Lanes 2}}u; half > 0u; half >>= 1u) {
        workgroupBarrier();
        if local.x < half {
        {{- range $v := seq .Vectors}}
            sums[{{mul $v $p.Lanes}}u + local.x] += sums[{{mul $v $p.Lanes}}u + local.x + half];
        {{- end}}
        }
    }
{{- end}}
    workgroupBarrier();
    for (var i = local.x; i < {{mul 4 .Vectors}}u; i += {{.Lanes}}u) {
        let r = row + i % 4u;
        let v = i / 4u;
        if r < p.rows && v < p.cols {
{{- if .Subgroups}}
            var x = sums[v * {{.Lanes}}u][i % 4u];
            for (var part = 1u; part < {{.Lanes}}u / joined; part++) {
                x += sums[v * {{.Lanes}}u + part][i % 4u];
            }
{{- else}}
            let x = sums[v * {{.Lanes}}u][i % 4u];
{{- end}}
        {{- if .Swap}}
            let o = p.c0 + z * p.stride_c + v * p.ldc + r;
            res[o] = finish(x, v, r, o);
        {{- else}}
            let o = p.c0 + z * p.stride_c + r * p.ldc + v;
            res[o] = finish(x, r, v, o);
        {{- end}}
        }
    }
}
