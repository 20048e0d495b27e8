package ptxtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx"
)

// module has kernels that store a number each, and with local, one that needs local memory.
func module(t *testing.T, number uint32, local bool, names ...string) ptxtest.Module {
	m := ptx.NewModule()
	for _, name := range names {
		k := m.Kernel(name)
		p := ptx.PointerParam[uint32](k, "p")
		p.Store(number)
		if local {
			own := ptx.LocalArray[uint32](k, "own", 64)
			i := p.At(1).Load()
			own.At(i).Store(i)
			p.Store(own.At(p.At(2).Load()).Load())
		}
	}
	out, err := m.Build()
	require.NoError(t, err)
	return ptxtest.Module{Name: "module", Module: out}
}

const head = "ptxas V0\nkernel\tsha256 of the PTX, beginning\ttarget\tregisters\tshared\tstack\tspill stores\tspill loads\n"

// Every way in which a table can be out of date is found without ptxas.
func TestTableIsFresh(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.tsv")
	fresh := func(text string, modules ...ptxtest.Module) *outcome {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return run(t, func(t testing.TB) { ptxtest.Table{File: file, Modules: modules}.Fresh(t) })
	}
	m := module(t, 1, false, "a", "b")
	rest := "\t" + ptxtest.Hash(m.Module) + "\tsm_80\t8\t0\t0\t0\t0\n"
	good := head + "a" + rest + "b" + rest
	require.False(t, fresh(good, m).failed)
	for text, want := range map[string]string{
		"":                                    "no table",
		strings.TrimSpace(head):               "no table",
		"a\nb\nc\n":                           "no table",
		head + "a\tb\n":                       "no row",
		good + "c\tx\tsm_80\t8\t0\t0\t0\t0\n": "c, which is no kernel any more",
		strings.Replace(good, "\t0\nb", "\t4\nb", 1): "stack and spills of a on sm_80",
		strings.Replace(good, "b\t", "c\t", 1):       "b of module has changed",
	} {
		o := fresh(text, m)
		require.True(t, o.failed, text)
		require.Contains(t, o.log, want)
	}
	o := fresh(good, module(t, 2, false, "a", "b"))
	require.True(t, o.failed)
	require.Contains(t, o.log, "a of module has changed")
	require.NoError(t, os.Remove(file))
	require.True(t, run(t, func(t testing.TB) { ptxtest.Table{File: file}.Fresh(t) }).failed)
}

// What ptxas says is written, read back, compared; what it complains of fails the test.
func TestPtxasTable(t *testing.T) {
	ptxtest.Ptxas(t)
	x := ptxtest.Table{File: filepath.Join(t.TempDir(), "table.tsv"), Modules: []ptxtest.Module{module(t, 1, false, "a", "b")},
		Targets: []string{"sm_80", "sm_90"}}
	assemble := func(x ptxtest.Table, write bool) *outcome {
		return run(t, func(t testing.TB) { x.Assemble(t, write) })
	}
	o := assemble(x, true)
	require.False(t, o.failed, o.log)
	text, err := os.ReadFile(x.File)
	require.NoError(t, err)
	require.Equal(t, 6, strings.Count(string(text), "\n"), "%s", text)
	require.False(t, assemble(x, false).failed)
	require.False(t, run(t, func(t testing.TB) { x.Fresh(t) }).failed)

	x.Newest = true
	o = assemble(x, false)
	require.True(t, o.failed, "a target more")
	require.Contains(t, o.log, "there are 6")
	x.Newest, x.Targets = false, []string{"sm_80", "sm_1"} // older than the module's own
	require.True(t, assemble(x, false).failed)
	x.Targets = []string{"sm_40"}
	require.Contains(t, assemble(x, false).log, "assembled for no target")
	x.Targets = []string{"sm_9999"}
	require.Contains(t, assemble(x, false).log, "does not know sm_9999")
	require.True(t, assemble(x, true).failed, "a table of less than was asked for")
	x.Targets = []string{"sm_80", "sm_90"}
	require.NoError(t, os.WriteFile(x.File, []byte(strings.Replace(string(text), "sm_90\t", "sm_90\t9", 1)), 0o600))
	o = assemble(x, false)
	require.True(t, o.failed)
	require.Contains(t, o.log, "not in "+x.File)

	x.Modules = []ptxtest.Module{module(t, 1, true, "c")}
	o = assemble(x, true)
	require.True(t, o.failed)
	require.Contains(t, o.log, "Local memory used for function 'c'")
	require.NotContains(t, o.log, "ptxas info")
	unchanged, err := os.ReadFile(x.File)
	require.NoError(t, err)
	require.NotContains(t, string(unchanged), "\nc\t")
}

func TestTableWithoutAssembler(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("PTXAS", "")
	require.True(t, run(t, func(t testing.TB) { ptxtest.Table{}.Assemble(t, true) }).failed)
	require.True(t, run(t, func(t testing.TB) { ptxtest.Table{}.Assemble(t, false) }).skipped)
}
