package wgslkernels

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

// shortLoops are entries whose kernels have loops, none of which is as long as data.
var shortLoops = map[*program.Entry]string{
	catalogue.Transpose:     "a tile of 16 rows",
	catalogue.LZ4Compress:   "a page of 4,096 bytes",
	catalogue.LZ4Decompress: "a page of 4,096 bytes",
	catalogue.KVAppend:      "a block of 32 values, and what aligns a packed row",
	catalogue.KVAppendPaged: "a block of 32 values, and what aligns a packed row",
}

// sameLoops are entries whose kernels are those of another one, which has long cases.
var sameLoops = map[*program.Entry]*program.Entry{
	catalogue.QuantRMSNormMatVec: catalogue.QuantMatMulRowMajor, catalogue.QuantQKV: catalogue.QuantMatMulRowMajor,
	catalogue.QuantGateUpSwiGLU: catalogue.QuantMatMulRowMajor, catalogue.RopeBackward: catalogue.Rope,
}

var (
	comments = regexp.MustCompile(`//.*`)
	loops    = regexp.MustCompile(`\b(for|while|loop)\b`)
)

// Loops that are as long as data must keep to loopBudget, and whether they do is seen by their results on llvmpipe: every entry with
// loops has long cases in package conformance, or a reason why it needs none.
func TestLoopsAreTested(t *testing.T) {
	found := map[*program.Entry]string{}
	for _, e := range catalogue.All() {
		calls, err := conformance.Calls(e)
		require.NoError(t, err)
		for _, c := range calls {
			out, err := e.Check(c.In, c.Attr)
			require.NoError(t, err)
			l, err := Lower(&program.Step{Entry: e, Attr: c.Attr}, c.In, out, &wgsl.DefaultCaps, nil)
			require.NoError(t, err)
			for _, a := range l.Actions {
				if a.Launch != nil && loops.MatchString(comments.ReplaceAllString(a.Launch.Kernel.Source, "")) {
					found[e] = a.Launch.Kernel.Key
				}
			}
		}
	}
	for e, kernel := range found {
		if other := sameLoops[e]; shortLoops[e] == "" && !conformance.HasLongCases(e) && (other == nil || !conformance.HasLongCases(other)) {
			t.Errorf("%s has loops, in %s, and no long cases", e.Name, kernel)
		}
	}
	for e := range shortLoops {
		require.NotEmpty(t, found[e], "%s has no loops", e.Name)
		require.False(t, conformance.HasLongCases(e), e.Name)
	}
}
