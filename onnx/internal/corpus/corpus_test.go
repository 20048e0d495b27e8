package corpus

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cpu"
)

var groups = []string{"node", "light", "simple", "pytorch-operator", "pytorch-converted"}

// Every case passes on the CPU device, but for those of testdata/lacks.tsv, none of which passes.
func TestCases(t *testing.T) {
	dev, err := cpu.Open(t.Context())
	require.NoError(t, err)
	defer dev.Close()
	known := lacks(t)
	only := os.Getenv("WAVELANE_ONNX_ONLY")
	var report bytes.Buffer
	for _, group := range groups {
		passed, all := 0, 0
		for _, name := range list(t, group) {
			if only != "" && !strings.Contains(name, only) {
				continue
			}
			all++
			o := run(context.Background(), filepath.Join(cases(t), group, name), dev)
			key := group + "/" + name
			reason, expected := known[key]
			switch {
			case o.err == nil && expected:
				t.Errorf("%s passes: take it off the list (%s)", key, reason)
			case o.err != nil && !expected:
				t.Errorf("%s: %v", key, o.err)
			}
			if o.err == nil {
				passed++
			} else {
				fmt.Fprintf(&report, "%s\t%s\n", key, strings.ReplaceAll(o.err.Error(), "\n", " "))
			}
			if only != "" {
				t.Logf("%s\n%s", key, o.trace)
			}
		}
		t.Logf("%s: %d of %d pass", group, passed, all)
	}
	if file := os.Getenv("WAVELANE_ONNX_REPORT"); file != "" {
		lines := strings.Split(strings.TrimSpace(report.String()), "\n")
		sort.Strings(lines)
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	}
}
