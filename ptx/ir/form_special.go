package ir

import (
	"fmt"
	"strings"
)

// SpecialInfo is what is true of a special register.
type SpecialInfo struct {
	Type   Type // of each component
	Vector bool // has the components .x, .y and .z
	SM     int
	PTX    Version
}

// The special registers, as "type name… [sm ptx]"; a vector's name ends in "." here, and % is left out. %warpid and the like
// without a requirement exist since PTX 1.
const specialTable = `
u32 tid. ntid. ctaid. nctaid. | 20 1.0
u32 laneid warpid nwarpid smid nsmid | 20 2.0
u64 gridid | 20 3.0
u32 lanemask_eq lanemask_le lanemask_lt lanemask_ge lanemask_gt | 20 2.0
u32 clock | 20 1.0
u32 clock_hi | 20 5.0
u64 clock64 | 20 2.0
u32 pm0 pm1 pm2 pm3 pm4 pm5 pm6 pm7 | 20 3.0
u64 pm0_64 pm1_64 pm2_64 pm3_64 pm4_64 pm5_64 pm6_64 pm7_64 | 50 4.0
u64 globaltimer | 30 3.1
u32 globaltimer_lo globaltimer_hi | 30 3.1
u32 total_smem_size dynamic_smem_size | 20 4.1
u32 aggr_smem_size | 90 8.1
u32 reserved_smem_offset_begin reserved_smem_offset_end reserved_smem_offset_cap | 80 7.6
u32 reserved_smem_offset_0 reserved_smem_offset_1 | 80 7.6
u64 current_graph_exec | 50 8.0
pred is_explicit_cluster | 90 7.8
u32 clusterid. nclusterid. cluster_ctaid. cluster_nctaid. | 90 7.8
u32 cluster_ctarank cluster_nctarank | 90 7.8`

var specials = func() map[string]SpecialInfo {
	m := map[string]SpecialInfo{}
	for line := range strings.SplitSeq(strings.TrimSpace(specialTable), "\n") {
		names, need, _ := strings.Cut(line, " | ")
		words := strings.Fields(names)
		var info SpecialInfo
		info.Type, _ = TypeNamed(words[0])
		if _, err := fmt.Sscanf(need, "%d %d.%d", &info.SM, &info.PTX.Major, &info.PTX.Minor); err != nil {
			panic(line) // the table above is wrong
		}
		for _, w := range words[1:] {
			name, vector := strings.CutSuffix(w, ".")
			info.Vector = vector
			m["%"+name] = info
		}
	}
	for i := range 32 {
		m[fmt.Sprintf("%%envreg%d", i)] = SpecialInfo{Type: B32, SM: 20, PTX: Version{2, 1}}
	}
	return m
}()

// Special returns what is true of the special register with a name such as "%laneid" or "%tid.x".
func Special(name string) (SpecialInfo, bool) {
	base, component, dotted := strings.Cut(name, ".")
	info, ok := specials[base]
	if !ok || dotted != info.Vector || dotted && component != "x" && component != "y" && component != "z" && component != "w" {
		return SpecialInfo{}, false
	}
	return info, true
}

// Specials calls f with the names of all special registers, vectors without component, in no order.
func Specials(f func(name string, info SpecialInfo)) {
	for name, info := range specials {
		f(name, info)
	}
}
