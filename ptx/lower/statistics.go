package lower

import (
	"math"

	"github.com/wavelane/wavelane/ptx"
)

const rowsDoc = " Parameters: work; u32 stage; u32 units; "

var (
	softmaxKernel = rowsKernel("softmax", "exp(x − max)/Σexp(x − max) of rows."+rowsDoc+"f32* x, y, partial.", noSecond, 0,
		func(t team) statistic { return exponentials(t, false) })
	logSoftmaxKernel = rowsKernel("log_softmax", "x − max − log Σexp(x − max) of rows."+rowsDoc+"f32* x, y, partial.", noSecond, 0,
		func(t team) statistic { return exponentials(t, true) })
	layerNormKernel = rowsKernel("layer_norm", "(x − mean)/√(variance + eps)·v + w of rows."+rowsDoc+
		"f32 eps; f32* x, v, w, y, partial.", noSecond, 2, layerNorm)
	rmsNormKernel = rowsKernel("rms_norm", "x/√(mean(x²) + eps)·v of rows."+rowsDoc+"f32 eps; f32* x, v, y, partial.",
		noSecond, 1, rmsNorm)
	gatedRMSNormKernel = rowsKernel("gated_rms_norm", "x/√(mean(x²) + eps)·v·silu(m) of rows."+rowsDoc+
		"f32 eps; f32* x, m, v, y, partial.", gated, 1, rmsNorm)
	addRMSNormKernel = rowsKernel("add_rms_norm", "sum = x + m and sum/√(mean(sum²) + eps)·v of rows."+rowsDoc+
		"f32 eps; f32* x, m, v, sum, y, partial.", added, 1, rmsNorm)
	addLayerNormKernel = rowsKernel("add_layer_norm", "sum = x + m and (sum − mean)/√(variance + eps)·v + w of rows."+rowsDoc+
		"f32 eps; f32* x, m, v, w, sum, y, partial.", added, 2, layerNorm)
	rmsNormBackwardKernel = rowsKernel("rms_norm_backward", "The gradient of rms_norm for x, m being that of its result; norms "+
		"are 0 and 1/√(mean(x²) + eps) of each row."+rowsDoc+"f32 eps; f32* x, m, v, y, norms, partial.", gradient, 1, rmsNormBackward)
	layerNormBackwardKernel = rowsKernel("layer_norm_backward", "The gradient of layer_norm for x, m being that of its result; "+
		"norms are mean and 1/√(variance + eps) of each row."+rowsDoc+"f32 eps; f32* x, m, v, y, norms, partial.", gradient, 1,
		layerNormBackward)
	l2NormalizeKernel = rowsKernel("l2_normalize", "x/√(Σx² + eps) of rows."+rowsDoc+"f32 eps; f32* x, y, partial.", noSecond, 0, l2Normalize)
)

// exponentials has the maximum m of a row, at least −FLT_MAX so that −Inf − m never is NaN, and Σexp(x − m). NaN and +Inf make
// the sum NaN; it is 0 where there is nothing but −Inf, which makes NaN of every element. (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018.)
func exponentials(t team, log bool) statistic {
	k, c := t.k, calc{t.k}
	// The difference is taken before it is scaled: the error then grows with it, not with the elements.
	exp := func(x, m float) float { return c.smallExp2(c.mul(ptx.Sub(k, x, m), num(math.Log2E))) }
	s := statistic{neutral: math.Inf(-1), empty: []float32{-math.MaxFloat32, 0}}
	s.take = func(x, _ []float, _ rowTile) []float {
		m := num(-math.MaxFloat32)
		for _, v := range x {
			m = ptx.Max(k, v, m)
		}
		terms := make([]float, len(x))
		for i, v := range x {
			terms[i] = exp(v, m)
		}
		return []float{m, sumOf(c, terms)}
	}
	s.merge = func(a, b []float) []float {
		m := ptx.Max(k, a[0], b[0])
		return []float{m, c.fma(a[1], exp(a[0], m), c.mul(b[1], exp(b[0], m)))}
	}
	if log {
		s.coefficients = func(acc []float) []float {
			return []float{acc[0], c.mul(ptx.Lg2(k, acc[1]), num(math.Ln2))}
		}
		s.apply = func(x float, of, _ []float) float { return ptx.Sub(k, ptx.Sub(k, x, of[0]), of[1]) }
		return s
	}
	s.coefficients = func(acc []float) []float { return []float{acc[0], ptx.Rcp(k, acc[1], ptx.Approx)} }
	s.apply = func(x float, of, _ []float) float { return c.mul(exp(x, of[0]), of[1]) }
	return s
}

// layerNorm has count, mean and the sum of squared deviations: by two passes over the elements at hand, and joined pairwise
// (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979).
func layerNorm(t team) statistic {
	k, c := t.k, calc{t.k}
	eps := ptx.Param[float32](k, "eps")
	return statistic{
		empty: []float32{0, 0, 0},
		take: func(x, _ []float, l rowTile) []float {
			deviations, squares := make([]float, len(x)), make([]float, len(x))
			n := ptx.Convert[float32](k, ptx.Popc(k, ptx.And(k, l.inside, ptx.Imm(uint32(1)<<len(x)-1))))
			each := c.inverse(ptx.Max(k, n, num(1)))
			mean := c.mul(sumOf(c, x), each)
			for i, v := range x {
				deviations[i] = c.where(l.has(i), ptx.Sub(k, v, mean), num(0))
				squares[i] = c.mul(deviations[i], deviations[i])
			}
			rest := c.mul(sumOf(c, deviations), each) // what rounding left out of the mean
			return []float{n, c.add(mean, rest), c.abs(c.fma(c.mul(n, rest), c.neg(rest), sumOf(c, squares)))}
		},
		merge: func(a, b []float) []float {
			n, d := c.add(a[0], b[0]), ptx.Sub(k, b[1], a[1])
			w := c.where(ptx.Eq(k, a[0], num(0)), num(1), c.mul(b[0], c.inverse(n)))
			return []float{n, c.fma(d, w, a[1]), c.fma(c.mul(d, d), c.mul(a[0], w), c.add(a[2], b[2]))}
		},
		coefficients: func(acc []float) []float {
			return []float{acc[1], ptx.Rsqrt(k, c.fma(acc[2], c.inverse(acc[0]), eps))}
		},
		apply: func(x float, of, v []float) float {
			return c.fma(c.mul(ptx.Sub(k, x, of[0]), of[1]), v[0], v[1])
		},
	}
}

// rmsNorm has the sum of squares.
func rmsNorm(t team) statistic {
	s, k, c := l2Normalize(t), t.k, calc{t.k}
	root := s.coefficients
	s.coefficients = func(acc []float) []float {
		return root([]float{c.mul(acc[0], c.inverse(ptx.Convert[float32](k, t.cols)))})
	}
	s.apply = func(x float, of, v []float) float { return c.mul(c.mul(x, of[0]), v[0]) }
	return s
}

// l2Normalize has it, too.
func l2Normalize(t team) statistic {
	k, c := t.k, calc{t.k}
	eps := ptx.Param[float32](k, "eps")
	return statistic{
		empty: []float32{0},
		take: func(x, _ []float, _ rowTile) []float {
			squares := make([]float, len(x))
			for i, v := range x {
				squares[i] = c.mul(v, v)
			}
			return []float{sumOf(c, squares)}
		},
		merge:        func(a, b []float) []float { return []float{c.add(a[0], b[0])} },
		coefficients: func(acc []float) []float { return []float{ptx.Rsqrt(k, c.add(acc[0], eps))} },
		apply:        func(x float, of, _ []float) float { return c.mul(x, of[0]) },
	}
}
