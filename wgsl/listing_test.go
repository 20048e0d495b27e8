package wgsl_test

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/wgslkernels"
	"github.com/wavelane/wavelane/wgsl"
)

var update = flag.Bool("update", false, "write the list of kernels")

// The list has every kernel that the suite's calls make, in every variant.
func TestListing(t *testing.T) {
	kernels, users := map[string]*wgsl.Kernel{}, map[string]map[string]bool{}
	for _, e := range catalogue.All() {
		calls, err := conformance.Calls(e)
		require.NoError(t, err)
		for _, c := range calls {
			out, err := e.Check(c.In, c.Attr)
			require.NoError(t, err)
			for variant, variants := 0, 1; variant < variants; variant++ {
				l, err := wgslkernels.Lower(&program.Step{Entry: e, Attr: c.Attr}, c.In, out, &wgsl.DefaultCaps, func(_, _ string, names []string) int {
					variants = max(variants, len(names))
					return min(variant, len(names)-1)
				})
				require.NoError(t, err)
				for _, a := range l.Actions {
					if a.Launch == nil {
						continue
					}
					k := a.Launch.Kernel
					kernels[k.Key] = k
					if users[k.Key] == nil {
						users[k.Key] = map[string]bool{}
					}
					users[k.Key][e.Name] = true
				}
			}
		}
	}
	now := []wgsl.Listed{}
	for _, key := range slices.Sorted(maps.Keys(kernels)) {
		k := kernels[key]
		name, _, _ := strings.Cut(key, "/")
		x := wgsl.Listed{Name: name, Kernels: 1, Workgroup: k.Workgroup, Bindings: []string{}, Uniform: k.Uniform, Shared: k.Shared,
			Entries: slices.Sorted(maps.Keys(users[key]))}
		for _, b := range k.Bindings {
			x.Bindings = append(x.Bindings, map[wgsl.Access]string{wgsl.Read: "read", wgsl.ReadWrite: "read_write"}[b])
		}
		if i := slices.IndexFunc(now, func(o wgsl.Listed) bool { return alike(o, x) }); i >= 0 {
			now[i].Kernels++
			now[i].Entries = slices.Compact(slices.Sorted(slices.Values(append(now[i].Entries, x.Entries...))))
			continue
		}
		now = append(now, x)
	}
	if *update {
		lines := make([]string, len(now))
		for i := range now {
			line, err := json.Marshal(now[i])
			require.NoError(t, err)
			lines[i] = "  " + string(line)
		}
		require.NoError(t, os.WriteFile("testdata/kernels.json", []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o644))
		return
	}
	list, err := wgsl.List()
	require.NoError(t, err)
	require.Equal(t, now, list, "testdata/kernels.json is stale: go generate ./wgsl")
}

// alike tells whether two kernels differ in nothing that is listed.
func alike(a, b wgsl.Listed) bool {
	return a.Name == b.Name && a.Workgroup == b.Workgroup && slices.Equal(a.Bindings, b.Bindings) && a.Uniform == b.Uniform &&
		a.Shared == b.Shared
}
