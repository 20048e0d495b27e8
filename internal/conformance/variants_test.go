package conformance

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/tune"
)

// lowerFunc lowers a step for the device of a test.
type lowerFunc func(s *program.Step, in, out []program.Type, choose tune.Chooser) error

// runVariants forces every variant that is ever offered and asked for, by class and name, on cases that offer it: none exists that
// is not tested. Of activations there is one: the others have the same text, and compiling takes most of the time. It returns how
// many variants each class has besides the default.
func runVariants(t *testing.T, device string, asked func(v [2]string) bool, lower lowerFunc,
	open func(t *testing.T, v [2]string) program.Executor) map[string]int {
	offered := map[[2]string][]*testCase{} // by class and variant
	classes := map[string]int{}
	for _, e := range catalogue.All() {
		cases, err := casesOf(e)
		require.NoError(t, err)
		for _, c := range cases {
			if act := c.attr.Activation(); act != compute.NoActivation && act != compute.ReLU {
				continue
			}
			for v := range variants(t, c, lower) {
				if !asked(v) {
					continue
				}
				if offered[v] == nil {
					classes[v[0]]++
				}
				offered[v] = append(offered[v], c)
			}
		}
	}
	all := newDevice(fmt.Sprintf("%s, each of %d variants forced", device, len(offered)), nil)
	for _, v := range slices.SortedFunc(maps.Keys(offered), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		t.Run(v[0]+"/"+v[1], func(t *testing.T) {
			t.Parallel()
			d := &testDevice{Executor: open(t, v), name: fmt.Sprintf("%s, %s by %s", device, v[0], v[1]), count: all.count}
			d.cases(t, sample(offered[v], again))
		})
	}
	return classes
}

// variants lists what the lowering of a case may choose from, besides the default, which the suite takes anyway.
func variants(t *testing.T, c *testCase, lower lowerFunc) map[[2]string]bool {
	in := types(c.inputs(newSource(Seed(), c.entry.Name, c.number)))
	out, err := c.entry.Check(in, c.attr)
	require.NoError(t, err)
	times, found := map[string]int{}, map[[2]string]int{}
	err = lower(&program.Step{Entry: c.entry, Attr: c.attr}, in, out, func(class, _ string, candidates []string) int {
		times[class]++
		for _, v := range candidates[1:] {
			found[[2]string{class, v}]++
		}
		return 0
	})
	require.NoError(t, err, c.entry.Name)
	everywhere := map[[2]string]bool{}
	for v, n := range found {
		if n == times[v[0]] { // operations made of others ask several times: all of them can have it
			everywhere[v] = true
		}
	}
	return everywhere
}
