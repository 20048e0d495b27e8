package catalogue_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

// The known answers that come with Random123, the authors' implementation.
func TestPhilox(t *testing.T) {
	const all = math.MaxUint32
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{all, all, all, all}, [2]uint32{all, all}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		require.Equal(t, c.want, reference.Philox(c.counter, c.key))
	}
}

func TestRandomArguments(t *testing.T) {
	seed := program.Type{DType: compute.Uint32, Shape: []int{2}}
	check := func(seed program.Type, o compute.RandomOptions) error {
		_, err := catalogue.RandomUniform.Check([]program.Type{seed}, program.Attr{Options: o})
		return err
	}
	require.NoError(t, check(seed, compute.RandomOptions{Shape: []int{3, 0}, Stream: math.MaxInt32}))
	require.ErrorIs(t, check(program.F32(2), compute.RandomOptions{}), compute.ErrDType)
	require.ErrorIs(t, check(program.Type{DType: compute.Uint32, Shape: []int{4}}, compute.RandomOptions{}), compute.ErrShape)
	require.ErrorIs(t, check(seed, compute.RandomOptions{Stream: -1}), compute.ErrArgument)
	require.ErrorIs(t, check(seed, compute.RandomOptions{Shape: []int{-1}}), compute.ErrShape)
	require.ErrorIs(t, check(seed, compute.RandomOptions{Shape: []int{1 << 20, 1 << 20}}), compute.ErrTooLarge)
	require.ErrorIs(t, check(seed, compute.RandomOptions{Shape: make([]int, program.MaxRank+1)}), compute.ErrShape)
}

// Five deviations are one chance in two million.
func TestRandomStatistics(t *testing.T) {
	const n = 1 << 20
	draw := func(e *program.Entry, stream int) []float64 {
		o := program.Attr{Options: compute.RandomOptions{Shape: []int{n}, Stream: stream}}
		return reference.Of(e, []reference.Array{vec(2026, 11)}, o, []program.Type{program.F32(n)})[0].Data
	}
	for _, c := range []struct {
		e              *program.Entry
		mean, variance float64
		fourth         float64 // central moment
		below          func(x float64) float64
	}{
		{catalogue.RandomUniform, 0.5 - 0x1p-25, 1.0 / 12, 1.0 / 80, func(x float64) float64 { return x }},
		{catalogue.RandomNormal, 0, 1, 3, func(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }},
	} {
		x, other := draw(c.e, 0), draw(c.e, 1)
		var sum, squares, neighbours, streams float64
		const buckets = 64
		var counts [buckets]float64
		for i, v := range x {
			d := v - c.mean
			sum += d
			squares += d * d
			neighbours += d * (x[(i+1)%n] - c.mean)
			streams += d * (other[i] - c.mean)
			counts[min(buckets-1, int(buckets*c.below(v)))]++
		}
		require.InDelta(t, 0, sum/n, 5*math.Sqrt(c.variance/n), c.e.Name)
		require.InDelta(t, c.variance, squares/n, 5*math.Sqrt((c.fourth-c.variance*c.variance)/n), c.e.Name)
		require.InDelta(t, 0, neighbours/n, 5*c.variance/math.Sqrt(n), "%s: neighbours", c.e.Name)
		require.InDelta(t, 0, streams/n, 5*c.variance/math.Sqrt(n), "%s: streams", c.e.Name)
		chi := 0.0
		for _, k := range counts {
			chi += (k - n/buckets) * (k - n/buckets) / (n / buckets)
		}
		require.InDelta(t, buckets-1, chi, 5*math.Sqrt(2*(buckets-1)), "%s: buckets", c.e.Name)
	}
}
