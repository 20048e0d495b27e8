package symbolic

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/testseed"
)

func TestText(t *testing.T) {
	h, w, odd := Named("h"), Named("w"), Named("h + 1")
	n := Of
	for want, x := range map[string]*Int{
		"0": n(0), "-3": n(-3), "h": h, "-h": n(0).Minus(h), "2*h": h.Plus(h), "h*w": w.Times(h), "h + w - 1": w.Plus(h).Plus(n(-1)),
		"1": h.Minus(h).Plus(n(1)), "2*h + h*w": h.Times(w.Plus(n(2))), "floor(h/2)": h.Over(2), "floor((h + 2)/4)": h.Plus(n(2)).Over(4),
		"floor((h + 1)/2) - 1": h.Plus(n(1)).Over(2).Plus(n(-1)), "floor((h + 3)/4)": h.Plus(n(-1)).Over(2).Over(2).Plus(n(1)),
		"floor((h + 2)/3)": h.Plus(n(-1)).Over(3).Plus(n(1)),
		"floor((h + 1)/6)": h.Plus(n(-1)).Over(2).Plus(n(1)).Over(3), "floor(w/2) + h": h.Plus(h).Plus(w).Over(2), "w": h.Times(w).OverExact(h),
		"2*w + 4": h.Times(w.Plus(n(2))).Times(n(6)).OverExact(h.Times(n(3))), "h + 1": odd, "2*(h + 1)": odd.Plus(odd), "?": nil,
		"floor((h + 1)/2)": h.Plus(h).Plus(n(3)).Over(4), "floor(2*h/3)": h.Plus(h).Over(3),
	} {
		require.Equal(t, want, x.String())
	}
	require.True(t, h.Plus(w).Same(w.Plus(h)))
	require.False(t, h.Same(w))
	require.False(t, (*Int)(nil).Same(nil), "two that are not known need not be equal")
	for _, unknown := range []*Int{h.Times(nil), Of(1 << 41), Of(1 << 39).Times(Of(1 << 39)), h.Over(0), h.OverExact(w), h.OverExact(h.Plus(w)), Named(strings.Repeat("n", 200))} {
		require.Nil(t, unknown)
	}
	big := h
	for range 20 {
		big = big.Times(h.Plus(w)).Plus(Of(1))
	}
	require.Nil(t, big)
}

// Whatever is computed has the value that the same arithmetic of numbers has.
func TestValues(t *testing.T) {
	random := testseed.Rand(t)
	for range 20_000 {
		names := map[string]int64{"a": random.Int64N(20), "b": random.Int64N(20), "c": random.Int64N(20)}
		x, want := Of(1), int64(1)
		for range random.IntN(8) {
			n := random.Int64N(13) - 6
			name := string("abc"[random.IntN(3)])
			switch random.IntN(6) {
			case 0:
				x, want = x.Plus(Of(n)), want+n
			case 1:
				x, want = x.Plus(Named(name)), want+names[name]
			case 2:
				x, want = Named(name).Minus(x), names[name]-want
			case 3:
				x, want = x.Times(Of(n)), want*n
			case 4:
				x, want = x.Over(max(n, 1)), floor(want, max(n, 1))
			case 5:
				x, want = x.Times(Named(name)), want*names[name]
			}
		}
		if x != nil {
			require.Equal(t, want, x.At(names), "%v with %v", x, names)
		}
	}
}
