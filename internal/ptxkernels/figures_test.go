package ptxkernels

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/ptx/ir"
)

const usesHead = "kernel\tentries\ttarget\tflops per byte\tbound\n"

// usesNow is the table of uses as it should be.
func usesNow(t *testing.T) string {
	trials, err := trialsOf()
	require.NoError(t, err)
	var s strings.Builder
	s.WriteString(usesHead)
	for _, f := range kit.Families() {
		v := verdictOf(t, f)
		m, err := f.Module()
		require.NoError(t, err)
		for _, k := range slices.SortedFunc(slices.Values(f.Kernels), func(a, b *kit.Kernel) int { return strings.Compare(a.Name, b.Name) }) {
			entries := map[string]bool{}
			for _, c := range trials[k] {
				entries[c.Entry.Name] = true
			}
			alone := *m
			alone.Funcs = slices.DeleteFunc(slices.Clone(m.Funcs), func(fn *ir.Func) bool { return fn.Entry && fn.Name != k.Name })
			_, target, err := ir.Requires(&alone)
			require.NoError(t, err)
			fmt.Fprintf(&s, "%s\t%s\t%v\t%s\n", k.Name, strings.Join(slices.Sorted(maps.Keys(entries)), " "),
				ir.Target{SM: max(50, target.SM), Suffix: target.Suffix}, v.place[k.Name])
		}
	}
	return s.String()
}

// The table of uses is what lowerings and the analyser say.
func TestUses(t *testing.T) {
	now := usesNow(t)
	if *update {
		require.NoError(t, os.WriteFile("testdata/uses.tsv", []byte(now), 0o644))
		return
	}
	require.Equal(t, now, usesTable, "testdata/uses.tsv is stale: go generate ./internal/ptxkernels")
	for _, k := range all() {
		require.NotEmpty(t, UseOf(k).Entries, k.Name)
		require.NotEmpty(t, UseOf(k).Target, k.Name)
	}
	sum := kit.FamilyOf("reduce").Kernels[0]
	require.NotEmpty(t, CompiledOf(sum))
	for _, c := range CompiledOf(sum) {
		require.Positive(t, c.Registers)
		require.Zero(t, c.Stack+c.SpillStores+c.SpillLoads)
	}
	require.Nil(t, CompiledOf(&kit.Kernel{Name: "none"}))
	require.Zero(t, UseOf(&kit.Kernel{Name: "none"}))
}
