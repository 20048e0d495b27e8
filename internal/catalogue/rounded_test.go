package catalogue_test

import (
	"math"
	"testing"

	"github.com/wavelane/wavelane/internal/testseed"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
)

// Rounded agrees with another implementation of halves on every half, between any two, and anywhere.
func TestRounded(t *testing.T) {
	check := func(v float32) {
		want := float64(float16.Fromfloat32(v).Float32())
		got := reference.Rounded(float64(v), compute.Float16)
		if math.Float64bits(want) != math.Float64bits(got) && !(want != want && got != got) {
			require.Failf(t, "another half", "%v becomes %v, want %v", v, got, want)
		}
	}
	for h := range uint16(0x7c00) {
		v := float16.Frombits(h).Float32()
		middle := (v + float16.Frombits(h+1).Float32()) / 2
		for _, x := range []float32{v, middle, math.Nextafter32(middle, 0), math.Nextafter32(middle, 1e6)} {
			check(x)
			check(-x)
		}
	}
	r := testseed.Rand(t)
	for range 100_000 {
		check(math.Float32frombits(r.Uint32()))
	}
	for _, v := range []float64{1.0000001, -0.1, 1e-50, 1e50, math.Inf(-1)} {
		require.Equal(t, float64(float32(v)), reference.Rounded(v, compute.Float32))
	}
	require.Equal(t, 1.0078125, reference.Rounded(1.005, compute.BFloat16))
	require.Equal(t, -7.0, reference.Rounded(-7, compute.Int32))
}
