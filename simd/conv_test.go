package simd_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/simdtest"
	"github.com/wavelane/wavelane/simd"
)

func array(t program.Type, x []float32) reference.Array {
	a := reference.Array{Shape: t.Shape, Data: make([]float64, len(x))}
	for i, v := range x {
		a.Data[i] = float64(v)
	}
	return a
}

// convCase is a convolution of random sizes.
type convCase struct {
	x, w [4]int
	o    compute.Conv2DOptions
	out  [4]int
}

// newConvCase makes a convolution that is possible, of at most about half a million multiplications.
func newConvCase(r *rand.Rand) convCase {
	for {
		var c convCase
		c.o.Groups = 1 + r.IntN(1+r.IntN(4))
		perGroup := r.IntN(1 + r.IntN(1+r.IntN(70)))
		outs := r.IntN(1 + r.IntN(1+r.IntN(70)))
		c.x = [4]int{r.IntN(4), perGroup * c.o.Groups, r.IntN(40), r.IntN(60)}
		c.w = [4]int{outs * c.o.Groups, perGroup, 1 + r.IntN(1+r.IntN(7)), 1 + r.IntN(1+r.IntN(7))}
		for i := range 2 {
			c.o.Stride[i], c.o.Dilation[i], c.o.Pad[i] = r.IntN(1+r.IntN(5)), r.IntN(1+r.IntN(4)), r.IntN(1+r.IntN(6))
		}
		if r.IntN(3) == 0 {
			c.o.Act = compute.ReLU
		}
		var err error
		if c.out, err = simd.Conv2DShape(c.x, c.w, c.o); err == nil && product(c.out)*perGroup*c.w[2]*c.w[3] < 500_000 {
			return c
		}
	}
}

func product(shape [4]int) int { return shape[0] * shape[1] * shape[2] * shape[3] }

// check runs a convolution and compares it with the reference.
func (c *convCase) check(t *testing.T, x, w, bias, dst []float32) {
	t.Helper()
	want, size := c.reference(x, w, bias)
	c.compare(t, want, size, x, w, bias, dst)
}

// reference returns the result in float64 and the sums of the absolute values of what is added up.
func (c *convCase) reference(x, w, bias []float32) (want, size []float64) {
	in := []reference.Array{array(program.F32(c.x[:]...), x), array(program.F32(c.w[:]...), w)}
	if bias != nil {
		in = append(in, array(program.F32(len(bias)), bias))
	}
	a, out := program.Attr{Options: c.o}, []program.Type{program.F32(c.out[:]...)}
	return reference.Of(catalogue.Conv2D, in, a, out)[0].Data, reference.Magnitudes(catalogue.Conv2D, in, a, out)[0]
}

func (c *convCase) compare(t *testing.T, want, size []float64, x, w, bias, dst []float32) {
	t.Helper()
	simd.Conv2D(dst, x, w, bias, c.x, c.w, c.o)
	for i, v := range want {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			same(t, rounded(want[i:i+1]), dst[i:i+1], c)
		} else if d := math.Abs(v - float64(dst[i])); !(d <= 2e-6*size[i]+1e-30) {
			require.Failf(t, "differs", "%+v: element %d is %v, want %v", c, i, dst[i], v)
		}
	}
}

func testConvolution(t *testing.T, r *rand.Rand) {
	c := newConvCase(r)
	x, w, dst := numbers(r, product(c.x), r.IntN(8) == 0), numbers(r, product(c.w), r.IntN(8) == 0), poisoned(product(c.out))
	var bias []float32
	if r.IntN(2) == 0 {
		bias = numbers(r, c.w[0], false)
	}
	c.check(t, x, w, bias, dst)
}

func TestConv2D(t *testing.T) {
	r := newRand(t)
	manyThreads(t, 0) // as before afterwards
	simdtest.OnEveryTier(t, func(t *testing.T) {
		rounds := 300
		if testing.Short() {
			rounds = 40
		}
		for i := range rounds {
			simd.SetThreads(i % 4)
			testConvolution(t, r)
		}
	})
}

// Shapes that take the ways that random ones of small size do not: several blocks of steps, of rows, and of output rows.
func TestConv2DLarge(t *testing.T) {
	r := newRand(t)
	manyThreads(t, 0)
	for _, c := range []convCase{
		{x: [4]int{1, 64, 20, 23}, w: [4]int{64, 64, 3, 3}, o: compute.Conv2DOptions{Pad: [2]int{1, 1}}},
		{x: [4]int{1, 40, 9, 9}, w: [4]int{300, 40, 3, 3}, o: compute.Conv2DOptions{Pad: [2]int{1, 1}, Stride: [2]int{2, 2}}},
		{x: [4]int{1, 3, 400, 401}, w: [4]int{5, 3, 2, 2}},
		{x: [4]int{1, 2, 700, 300}, w: [4]int{2, 1, 3, 3}, o: compute.Conv2DOptions{Pad: [2]int{1, 1}, Groups: 2}},
		{x: [4]int{2, 70, 5, 6}, w: [4]int{33, 70, 1, 1}},
	} {
		var err error
		c.out, err = simd.Conv2DShape(c.x, c.w, c.o)
		require.NoError(t, err)
		if simdtest.Racing && product(c.out)*product(c.w)/c.w[0] > 3_000_000 { // which takes it long
			continue
		}
		x, w, bias := numbers(r, product(c.x), false), numbers(r, product(c.w), false), numbers(r, c.w[0], false)
		want, size := c.reference(x, w, bias)
		simdtest.OnEveryTier(t, func(t *testing.T) {
			for _, threads := range []int{1, 3} {
				simd.SetThreads(threads)
				c.compare(t, want, size, x, w, bias, poisoned(product(c.out)))
			}
		})
	}
}

func FuzzConv2D(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) { testConvolution(t, rand.New(rand.NewPCG(a, b))) })
}

func TestConv2DErrors(t *testing.T) {
	x, w := [4]int{1, 2, 4, 4}, [4]int{3, 2, 3, 3}
	type options = compute.Conv2DOptions
	a := make([]float32, 200)
	for _, c := range []struct {
		want error
		f    func()
	}{
		{compute.ErrShape, func() { simd.Conv2D(a[:13], a[100:132], a[132:186], nil, x, w, compute.Conv2DOptions{}) }},
		{compute.ErrShape, func() { simd.Conv2D(a[:12], a[100:131], a[132:186], nil, x, w, compute.Conv2DOptions{}) }},
		{compute.ErrShape, func() { simd.Conv2D(a[:12], a[100:132], a[132:187], nil, x, w, compute.Conv2DOptions{}) }},
		{compute.ErrShape, func() { simd.Conv2D(a[:12], a[100:132], a[132:186], a[90:94], x, w, compute.Conv2DOptions{}) }},
		{compute.ErrShape, func() {
			simd.Conv2D(a[:12], a[100:132], a[132:186], nil, x, [4]int{3, 1, 3, 6}, compute.Conv2DOptions{})
		}},
		{compute.ErrShape, func() { simd.Conv2D(nil, nil, nil, nil, [4]int{-1, 2, 4, 4}, w, compute.Conv2DOptions{}) }},
		{compute.ErrShape, func() {
			simd.Conv2D(nil, nil, nil, nil, [4]int{1 << 40, 2, 1 << 20, 1 << 20}, w, compute.Conv2DOptions{})
		}},
		{compute.ErrArgument, func() {
			simd.Conv2D(a[:12], a[100:132], a[132:186], nil, x, w, compute.Conv2DOptions{Stride: [2]int{-1, 1}})
		}},
		{compute.ErrArgument, func() { simd.Conv2D(a[:12], a[100:132], a[132:186], nil, x, w, options{Act: 99}) }},
		{compute.ErrArgument, func() { simd.Conv2D(a[95:107], a[100:132], a[132:186], nil, x, w, compute.Conv2DOptions{}) }},
		{compute.ErrArgument, func() { simd.Conv2D(a[:12], a[100:132], a[132:186], a[11:14], x, w, compute.Conv2DOptions{}) }},
	} {
		requirePanic(t, "Conv2D", c.want, c.f)
	}
	_, err := simd.Conv2DShape(x, w, compute.Conv2DOptions{Groups: 3})
	require.ErrorIs(t, err, compute.ErrArgument)
}
