{{- /* Merges acc over the lanes of each task into that of lane 0. */ -}}
{{- if .Subgroups}}
    // Lanes of a task are neighbours: a subgroup has all of them, or nothing else. Sizes of subgroups are powers of two.
    let joined = min(subgroup_size, {{.Lanes}}u);
{{- if .Together}}
    acc = {{.Together}}(acc);
{{- else}}
    for (var d = 1u; d < joined; d *= 2u) {
        acc = merge(acc, of_lane(acc, subgroup_lane ^ d));
    }
    acc = of_lane(acc, subgroup_lane & ~(joined - 1u)); // so that all lanes have the same, to the last bit
{{- end}}
    if joined < {{.Lanes}}u {
        if local % joined == 0u {
            others[local / joined] = acc;
        }
        workgroupBarrier();
        let first = (local - lane) / joined;
        acc = others[first];
        for (var i = 1u; i < {{.Lanes}}u / joined; i++) {
            acc = merge(acc, others[first + i]);
        }
    }
{{- else if gt .Lanes 1}}
    // Four at a time, since barriers cost more than merges.
    others[local] = acc;
{{- $lanes := .Lanes}}
{{- range $stride := .Strides}}
    workgroupBarrier();
    if lane < {{$stride}}u {
        acc = merge(acc, others[local + {{$stride}}u]);
{{- if eq (div $lanes $stride) 4}}
        acc = merge(acc, merge(others[local + {{mul 2 $stride}}u], others[local + {{mul 3 $stride}}u]));
{{- end}}
        others[local] = acc;
    }
{{- $lanes = $stride}}
{{- end}}
{{- end}}
{{define "tree_head"}}
{{- if gt .Lanes 1 -}}
var<workgroup> others: array<{{.Acc}}, {{.Workgroup}}>;
{{end}}
{{- if .Subgroups}}
{{- if not .Together}}
fn of_lane(a: {{.Acc}}, lane: u32) -> {{.Acc}} {
{{- if eq .Acc "Moments"}}
    return Moments(subgroupShuffle(a.n, lane), subgroupShuffle(a.x, lane), subgroupShuffle(a.g, lane),
        subgroupShuffle(a.squares, lane), subgroupShuffle(a.products, lane));
{{- else}}
    return subgroupShuffle(a, lane);
{{- end}}
}
{{end}}
{{- end}}
{{end}}
{{define "tree_inputs"}}{{if .Subgroups}},
        @builtin(subgroup_size) subgroup_size: u32, @builtin(subgroup_invocation_id) subgroup_lane: u32{{end}}{{end}}
{{define "tree_all"}}
{{- if and (gt .Lanes 1) (not .Subgroups)}}
    workgroupBarrier();
    acc = others[local - lane];
{{- end}}
{{- end}}
