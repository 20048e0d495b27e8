package kernels_test

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/kernels"
)

var update = flag.Bool("update", false, "write the table of what ptxas makes of the kernels")

// table is of Ampere, Ada, Hopper, what is special to it, and the newest target.
func table(t *testing.T) ptxtest.Table {
	x := ptxtest.Table{File: "testdata/ptxas.tsv", Targets: []string{"sm_80", "sm_89", "sm_90", "sm_90a"}, Newest: true}
	for _, k := range kernels.All() {
		m, err := k.Module()
		require.NoError(t, err)
		x.Modules = append(x.Modules, ptxtest.Module{Name: k.Name, Module: m})
	}
	return x
}

func TestPtxasTable(t *testing.T) { table(t).Fresh(t) }

func TestPtxas(t *testing.T) { table(t).Assemble(t, *update) }
