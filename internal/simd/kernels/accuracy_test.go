package kernels

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Elements against their formula in float64: of all floats evenly, and of ordinary arguments. The portable fallbacks are tested too.
func TestAccuracy(t *testing.T) {
	count := 1 << 16 // others by each seed
	if testing.Short() {
		count = 1 << 12
	}
	before := Active()
	defer func() { require.NoError(t, SetTier(before)) }()
	for _, tier := range Available() {
		require.NoError(t, SetTier(tier))
		t.Run(tier.String(), func(t *testing.T) {
			for i := range table {
				k := &table[i]
				if k.store {
					t.Run(k.name, func(t *testing.T) {
						t.Parallel()
						testAccuracy(t, k, count)
					})
				}
			}
		})
	}
}

func testAccuracy(t *testing.T, k *kernel, count int) {
	s, r := specOf(t, k), random(t)
	limit := s.ulp
	if Active() == Scalar && limit >= 2 && s.magnitude == nil {
		limit = 0.52 // portable fallbacks round once
	}
	const block = 1 << 12
	var c call
	c.y = make([]float32, block)
	for j := range k.inputs {
		c.in[j] = make([]float32, block)
	}
	worst, at := 0.0, [3]float64{}
	for done := 0; done < count; done += block {
		for j := range k.inputs {
			switch {
			case done%(2*block) == 0:
				fill(r, c.in[j], ordinary, s.low, s.high)
			case j == 0: // evenly over all bit patterns
				first, step := r.Uint32(), uint32(1<<32/block+1)
				for i := range c.in[0] {
					c.in[0][i] = math.Float32frombits(first + uint32(i)*step)
				}
			default:
				fill(r, c.in[j], anyBits, 0, 0)
			}
		}
		if s.params != nil {
			c.p = s.params(r)
		}
		if s.domain != nil {
			s.domain(c.in[0], &c.p)
		}
		k.run(&c)
		for i, got := range c.y {
			var x [3]float64
			for j := range k.inputs {
				x[j] = float64(c.in[j][i])
			}
			p := [2]float64{float64(c.p[0]), float64(c.p[1])}
			want := s.ref(x, p)
			if s.magnitude != nil || s.rel > 0 || want != want || got != got {
				require.True(t, s.accepts(got, float32(want), x, p), "%s of %v, %v is %v, want %v", k.name, x, p, got, want)
				continue
			}
			if e := inULP(float64(got), want); e > worst {
				worst, at = e, x
			}
			if !s.looseZero && got == 0 {
				require.Equal(t, math.Signbit(want), math.Signbit(float64(got)), "%s of %v, %v is %v, want %v", k.name, x, p, got, want)
			}
		}
	}
	t.Logf("largest error %.3f ULP, of %v", worst, at)
	require.LessOrEqual(t, worst, limit, "ULP, of %v", at)
}

// inULP is the error of got in units of the last place of a float32 like want; infinity stands for 2¹²⁸.
func inULP(got, want float64) float64 {
	limit := func(x float64) float64 { return max(min(x, 0x1p128), -0x1p128) }
	got, want = limit(got), limit(want)
	_, e := math.Frexp(min(math.Abs(want), math.MaxFloat32))
	return math.Abs(got-want) / math.Ldexp(1, max(e-24, -149))
}
