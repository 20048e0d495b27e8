package kernels

import (
	"fmt"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Assembly finds the fields of a link here.
func TestLinkLayout(t *testing.T) {
	require.Equal(t, []uintptr{0, 8, 16, 24},
		[]uintptr{unsafe.Offsetof(Link{}.code), unsafe.Offsetof(Link{}.at), unsafe.Offsetof(Link{}.p), unsafe.Sizeof(Link{})})
}

// onLinks runs a test on each tier with links.
func onLinks(t *testing.T, f func(t *testing.T)) {
	before := Active()
	defer func() { require.NoError(t, SetTier(before)) }()
	for _, tier := range Available() {
		require.NoError(t, SetTier(tier))
		require.Equal(t, tier == AVX2 || tier == AVX512, ChainWidth() > 0, "%s", tier)
		if ChainWidth() > 0 {
			t.Run(tier.String(), f)
		}
	}
}

// linkTo returns a link with an address.
func linkTo(op LinkOp, x []float32) Link {
	l := NewLink(op, [2]float32{})
	l.At(&x[0])
	return l
}

// Links have the bits of kernels, wherever operands come from; any NaN equals any other.
func TestLinksAreKernels(t *testing.T) {
	r := random(t)
	loads := []LinkOp{LinkLoadA, LinkLoadB, LinkLoadC}
	fills := []LinkOp{LinkFillA, LinkFillB, LinkFillC}
	recalls := []LinkOp{LinkRecallA, LinkRecallB, LinkRecallC}
	onLinks(t, func(t *testing.T) {
		n := 3 * ChainWidth()
		seen := 0
		for i := range table {
			k := &table[i]
			op, ok := linkNames[k.name]
			if !ok {
				continue
			}
			seen++
			for m := range mixes {
				c := newTrial(t, k, r, n, m).want
				if k.name == "Clip" && (c.p[0] != c.p[0] || c.p[1] != c.p[1]) {
					c.p = [2]float32{-1, 1}
				}
				var chain []Link
				for a := k.inputs - 1; a >= 0; a-- {
					switch x := c.in[a]; r.IntN(3) {
					case 0:
						for j := range x {
							x[j] = x[0]
						}
						chain = append(chain, linkTo(fills[a], x))
					case 1:
						kept := make([]float32, ChainWidth())
						chain = append(chain, linkTo(LinkLoadA, x), linkTo(LinkKeep, kept), linkTo(recalls[a], kept))
					default:
						chain = append(chain, linkTo(loads[a], x))
					}
				}
				got := make([]float32, n)
				chain = append(chain, NewLink(op, c.p), linkTo(LinkStore, got), NewLink(LinkAgain, c.p))
				RunChain(chain, n)
				k.run(&c)
				requireSame(t, c.y, got, "%s of %v %v", k.name, c.in, c.p)
			}
		}
		require.Equal(t, len(linkNames), seen)
	})
}

func requireSame(t *testing.T, want, got []float32, format string, args ...any) {
	t.Helper()
	for i, w := range want {
		if g := got[i]; math.Float32bits(w) != math.Float32bits(g) && (w == w || g == g) {
			require.Fail(t, "other bits", "element %d is %v, not %v: %s", i, g, w, fmt.Sprintf(format, args...))
		}
	}
}

// The last result may be a second or third operand, and chains write nothing but their elements.
func TestChainCopiesAndEnds(t *testing.T) {
	r := random(t)
	onLinks(t, func(t *testing.T) {
		width := ChainWidth()
		x, y := make([]float32, 2*width), make([]float32, 3*width)
		fill(r, x, ordinary, -10, 10)
		RunChain([]Link{linkTo(LinkLoadA, x), NewLink(LinkCopyB, [2]float32{}), NewLink(LinkCopyC, [2]float32{}),
			NewLink(LinkMulAdd, [2]float32{}), linkTo(LinkStore, y[width:]), NewLink(LinkAgain, [2]float32{})}, width)
		want := make([]float32, width)
		MulAdd(want, x, x, x)
		require.Equal(t, want, y[width:2*width])
		require.Equal(t, make([]float32, width), y[:width])
		require.Equal(t, make([]float32, width), y[2*width:])
		RunChain(nil, 0)
	})
}
