package ptxkernels

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
)

//go:generate go test -count=1 -run ^(TestUses|TestVerdicts)$ . -update

// Compiled is what NVIDIA's assembler made of a kernel for a target: registers of a thread, everything else in bytes.
type Compiled struct {
	Target      string `json:"target"` // "sm_90"
	Registers   int    `json:"registers"`
	Shared      int    `json:"shared"` // of a block
	Stack       int    `json:"stack"`
	SpillStores int    `json:"spill_stores"`
	SpillLoads  int    `json:"spill_loads"`
}

// Use is what is known of a kernel without executing it.
type Use struct {
	// Entries of the catalogue whose code launches it.
	Entries []string
	// Target is the least that its code runs on.
	Target string
	// Intensity is its operations per byte of global memory, loops of unknown length counted once; 0 where there is nothing
	// to count. Bound is what that makes the limit of an H200: "memory" or "compute".
	Intensity float64
	Bound     string
}

var (
	//go:embed testdata/ptxas.tsv
	compiledTable string
	//go:embed testdata/uses.tsv
	usesTable string
)

// compiled are the rows of the table of ptxas by kernel.
var compiled = sync.OnceValue(func() map[string][]Compiled {
	all := map[string][]Compiled{}
	for _, f := range tableRows(compiledTable, 8) {
		n := [5]int{}
		for i := range n {
			n[i], _ = strconv.Atoi(f[3+i])
		}
		all[f[0]] = append(all[f[0]], Compiled{f[2], n[0], n[1], n[2], n[3], n[4]})
	}
	return all
})

// CompiledOf returns a kernel's registers and memory on each target that they are known for; none if it is newer than the table.
func CompiledOf(k *kit.Kernel) []Compiled { return compiled()[k.Name] }

var uses = sync.OnceValue(func() map[string]Use {
	all := map[string]Use{}
	for _, f := range tableRows(usesTable, 5) {
		intensity, _ := strconv.ParseFloat(f[3], 64)
		all[f[0]] = Use{strings.Fields(f[1]), f[2], intensity, f[4]}
	}
	return all
})

// UseOf returns what is known of a kernel; the zero value if it is newer than the table.
func UseOf(k *kit.Kernel) Use { return uses()[k.Name] }

// tableRows are the lines of a table with so many columns.
func tableRows(table string, columns int) (rows [][]string) {
	for line := range strings.Lines(table) {
		if f := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(f) == columns {
			rows = append(rows, f)
		}
	}
	return rows
}
