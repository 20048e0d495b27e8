package softgpu

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCheckedModulesAreBounded loads more text than is kept.
func TestCheckedModulesAreBounded(t *testing.T) {
	pad := strings.Repeat("// nothing to see here, move along\n", maxChecked/4/35)
	var first *checkedModule
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		text := []byte(".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry " + name + "()\n{\n\tret;\n}\n" + pad)
		m, err := check(text)
		require.NoError(t, err)
		again, err := check(text)
		require.NoError(t, err)
		require.Same(t, m, again)
		if first == nil {
			first = m
		}
		c := &checkedModules
		require.LessOrEqual(t, c.bytes, maxChecked)
		require.Len(t, c.by, len(c.order))
	}
	for _, m := range checkedModules.by {
		require.NotSame(t, first, m)
	}
	clear(checkedModules.by)
	checkedModules.order, checkedModules.bytes = nil, 0
}
