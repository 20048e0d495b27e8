{{- /* Merges acc over the lanes of each task into that of lane 0, four at a time, since barriers cost more than merges. */ -}}
{{- if gt .Lanes 1}}
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
