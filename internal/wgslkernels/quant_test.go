package wgslkernels

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/testseed"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/wgsl"
)

var blockFormats = []compute.BlockFormat{compute.Q4_0, compute.Q4_1, compute.Q5_0, compute.Q5_1, compute.Q8_0, compute.Q2_K,
	compute.Q3_K, compute.Q4_K, compute.Q5_K, compute.Q6_K}

// packedType is the type of weights of given rows and columns.
func packedType(t *testing.T, f compute.BlockFormat, rows, cols int) program.Type {
	words, err := quant.PackedWords(quant.Type(f), cols)
	require.NoError(t, err)
	return program.Type{DType: compute.Uint32, Shape: []int{rows, words}}
}

// Every format in every entry, by devices with room for much and for little.
func TestQuantisedLowering(t *testing.T) {
	r := testseed.Rand(t)
	for capsName, caps := range someCaps() {
		t.Run(capsName, func(t *testing.T) {
			seen, least := texts{}, 0
			formats := r.Perm(len(blockFormats))
			if !testseed.Whole() {
				formats = formats[:4]
			}
			for _, i := range formats {
				f := blockFormats[i]
				w := func(rows, cols int) program.Type { return packedType(t, f, rows, cols) }
				for _, q8 := range []bool{false, true} {
					o := compute.QuantOptions{Format: f, Q8: q8}
					for _, m := range []int{0, 1, 3, 8, 9, 40} {
						seen.variants(t, catalogue.QuantMatMulRowMajor, o, caps, program.F32(m, 512), w(33, 512))
						seen.variants(t, catalogue.QuantMatMulRowMajor, o, caps, program.F32(m, 256), w(3000, 256))
						seen.variants(t, catalogue.QuantRMSNormMatVec, o, caps, program.F32(m, 512), program.F32(512), w(33, 512))
						seen.variants(t, catalogue.QuantGateUpSwiGLU, o, caps, program.F32(m, 512), w(33, 512), w(33, 512))
						three := compute.QuantQKVOptions{Q: f, K: compute.Q8_0, V: compute.Q6_K, Q8: q8}
						in := []program.Type{program.F32(m, 512), w(33, 512), packedType(t, compute.Q8_0, 5, 512), packedType(t, compute.Q6_K, 7, 512),
							program.F32(33), program.F32(5), program.F32(7)}
						seen.variants(t, catalogue.QuantQKV, three, caps, in[:4]...)
						seen.variants(t, catalogue.QuantQKV, three, caps, in...)
						seen.variants(t, catalogue.QuantMatMulRowMajor, o, caps, program.F32(m, 0), w(3, 0))
						if !q8 {
							seen.variants(t, catalogue.QuantMatMulColMajor, o, caps, program.F32(m, 70), w(70, 512))
						}
					}
				}
				for _, d := range []compute.DType{compute.Float32, compute.Float16} {
					o := compute.DequantizeOptions{Format: f, Result: d}
					for _, n := range []int{0, 3, 500} {
						seen.variants(t, catalogue.Dequantize, o, caps, w(n, 768))
						seen.variants(t, catalogue.Dequantize, o, caps, w(n, 256), program.Type{DType: compute.Int32, Shape: []int{2, 70}})
					}
				}
				least += 5 // two of results, and of one row: plain, norm, gate
			}
			require.Greater(t, len(seen), least)
		})
	}
}

// Few rows of x read weights in one dispatch; what no binding holds is cut.
func TestQuantisedDispatches(t *testing.T) {
	caps := wgsl.DefaultCaps
	count := func(m, n, k int) int {
		in := []program.Type{program.F32(m, k), packedType(t, compute.Q4_K, n, k)}
		a := program.Attr{Options: compute.QuantOptions{Format: compute.Q4_K, Q8: true}}
		out, err := catalogue.QuantMatMulRowMajor.Check(in, a)
		require.NoError(t, err)
		l, err := Lower(&program.Step{Entry: catalogue.QuantMatMulRowMajor, Attr: a}, in, out, &caps, nil)
		require.NoError(t, err)
		texts{}.check(t, l, &caps, in, out)
		return len(l.Actions)
	}
	require.Equal(t, 1, count(1, 4096, 4096))
	require.Equal(t, 1, count(8, 128_256, 1024))
	require.Equal(t, 3, count(1, 152_064, 4096), "of 350 MB")
	require.Equal(t, 3, count(64, 4096, 4096), "two of which find Inf and NaN")
	caps.IntegerDots = true
	require.Equal(t, 2, count(8, 4096, 4096), "one of which rounds x")
}

// Three products with one x are one dispatch, of two where biases take more buffers than there are.
func TestQuantisedTogether(t *testing.T) {
	caps := wgsl.DefaultCaps
	count := func(q8, biased bool, m, n int) int {
		w := func(f compute.BlockFormat, n int) program.Type { return packedType(t, f, n, 512) }
		in := []program.Type{program.F32(m, 512), w(compute.Q4_K, n), w(compute.Q5_K, 40), w(compute.Q6_K, 40)}
		if biased {
			in = append(in, program.F32(n), program.F32(40), program.F32(40))
		}
		a := program.Attr{Options: compute.QuantQKVOptions{Q: compute.Q4_K, K: compute.Q5_K, V: compute.Q6_K, Q8: q8}}
		out, err := catalogue.QuantQKV.Check(in, a)
		require.NoError(t, err)
		l, err := Lower(&program.Step{Entry: catalogue.QuantQKV, Attr: a}, in, out, &caps, nil)
		require.NoError(t, err)
		texts{}.check(t, l, &caps, in, out)
		return len(l.Actions)
	}
	for _, m := range []int{1, 8} {
		for _, q8 := range []bool{false, true} {
			require.Equal(t, 1, count(q8, false, m, 120))
			require.Equal(t, 2, count(q8, true, m, 120))
		}
	}
	require.Equal(t, 4, count(false, false, 2, 600_000), "of which two have the many rows")
	caps.MaxStorageBuffers, caps.IntegerDots = 10, true
	require.Equal(t, 1, count(false, true, 5, 120))
	require.Equal(t, 2, count(true, true, 5, 120), "one of which rounds x")
}
