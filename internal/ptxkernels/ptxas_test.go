package ptxkernels

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxtest"
)

var update = flag.Bool("update", false, "write the table of what ptxas makes of the kernels")

// ptxasTable is of the oldest target, and of those that most work is done on.
func ptxasTable(t *testing.T) ptxtest.Table {
	x := ptxtest.Table{File: "testdata/ptxas.tsv", Targets: []string{"sm_50", "sm_80", "sm_90", "sm_90a"}}
	for _, f := range kit.Families() {
		m, err := f.Module()
		require.NoError(t, err)
		x.Modules = append(x.Modules, ptxtest.Module{Name: f.Name, Module: m})
	}
	return x
}

func TestPtxasTable(t *testing.T) { ptxasTable(t).Fresh(t) }

func TestPtxas(t *testing.T) { ptxasTable(t).Assemble(t, *update) }
