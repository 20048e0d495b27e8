package norm

import (
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

const rowsDoc = " Parameters: work; u32 stage; u32 units; "

var (
	softmaxKernel = rowsKernel("softmax", "exp(x − max)/Σexp(x − max) of rows."+rowsDoc+"f32* x, y, partial.", noSecond, 0,
		func(t threadgroup.Group) statistic { return exponentials(t, false) })
	logSoftmaxKernel = rowsKernel("log_softmax", "x − max − log Σexp(x − max) of rows."+rowsDoc+"f32* x, y, partial.", noSecond, 0,
		func(t threadgroup.Group) statistic { return exponentials(t, true) })
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
		"are 0 and 1/√(mean(x²) + eps) of each row."+rowsDoc+"f32 eps; f32* x, m, v, y, norms, partial.", Gradient, 1, rmsNormBackward)
	layerNormBackwardKernel = rowsKernel("layer_norm_backward", "The gradient of layer_norm for x, m being that of its result; "+
		"norms are mean and 1/√(variance + eps) of each row."+rowsDoc+"f32 eps; f32* x, m, v, y, norms, partial.", Gradient, 1,
		layerNormBackward)
	l2NormalizeKernel = rowsKernel("l2_normalize", "x/√(Σx² + eps) of rows."+rowsDoc+"f32 eps; f32* x, y, partial.", noSecond, 0, l2Normalize)
)

// exponentials has the maximum m of a row, at least −FLT_MAX so that −Inf − m never is NaN, and Σexp(x − m). NaN and +Inf make
// the sum NaN; it is 0 where there is nothing but −Inf, which makes NaN of every element. (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018.)
func exponentials(t threadgroup.Group, log bool) statistic {
	c := scalar.Math{K: t.K}
	// The difference is taken before it is scaled: the error then grows with it, not with the elements.
	exp := func(x, m scalar.Float) scalar.Float {
		return c.SmallExp2(x.Sub(m).Mul(math.Log2E))
	}
	s := statistic{neutral: math.Inf(-1), empty: []float32{-math.MaxFloat32, 0}}
	s.take = func(x, _ []scalar.Float, _ rowTile) []scalar.Float {
		m := ptx.F32(-math.MaxFloat32)
		for _, v := range x {
			m = v.Max(m)
		}
		terms := make([]scalar.Float, len(x))
		for i, v := range x {
			terms[i] = exp(v, m)
		}
		return []scalar.Float{m, scalar.SumOf(c, terms)}
	}
	s.merge = func(a, b []scalar.Float) []scalar.Float {
		m := a[0].Max(b[0])
		return []scalar.Float{m, a[1].Fma(exp(a[0], m), b[1].Mul(exp(b[0], m)))}
	}
	if log {
		s.coefficients = func(acc []scalar.Float) []scalar.Float {
			return []scalar.Float{acc[0], acc[1].Lg2().Mul(math.Ln2)}
		}
		s.apply = func(x scalar.Float, of, _ []scalar.Float) scalar.Float {
			return x.Sub(of[0]).Sub(of[1])
		}
		return s
	}
	s.coefficients = func(acc []scalar.Float) []scalar.Float { return []scalar.Float{acc[0], acc[1].Rcp(ptx.Approx)} }
	s.apply = func(x scalar.Float, of, _ []scalar.Float) scalar.Float { return exp(x, of[0]).Mul(of[1]) }
	return s
}

// layerNorm has count, mean and the sum of squared deviations: by two passes over the elements at hand, and joined pairwise
// (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979).
func layerNorm(t threadgroup.Group) statistic {
	k, c := t.K, scalar.Math{K: t.K}
	eps := ptx.Param[float32](k, "eps")
	return statistic{
		empty: []float32{0, 0, 0},
		take: func(x, _ []scalar.Float, l rowTile) []scalar.Float {
			deviations, squares := make([]scalar.Float, len(x)), make([]scalar.Float, len(x))
			n := ptx.Convert[float32](l.inside.And(uint32(1)<<len(x) - 1).Popc())
			each := c.Inverse(n.Max(1))
			mean := scalar.SumOf(c, x).Mul(each)
			for i, v := range x {
				deviations[i] = c.Where(l.Has(i), v.Sub(mean), ptx.F32(0))
				squares[i] = deviations[i].Mul(deviations[i])
			}
			rest := scalar.SumOf(c, deviations).Mul(each) // what rounding left out of the mean
			return []scalar.Float{n, mean.Add(rest), n.Mul(rest).Fma(rest.Neg(), scalar.SumOf(c, squares)).Abs()}
		},
		merge: func(a, b []scalar.Float) []scalar.Float {
			n, d := a[0].Add(b[0]), b[1].Sub(a[1])
			w := c.Where(a[0].Eq(0), ptx.F32(1), b[0].Mul(c.Inverse(n)))
			return []scalar.Float{n, d.Fma(w, a[1]), d.Mul(d).Fma(a[0].Mul(w), a[2].Add(b[2]))}
		},
		coefficients: func(acc []scalar.Float) []scalar.Float {
			return []scalar.Float{acc[1], acc[2].Fma(c.Inverse(acc[0]), eps).Rsqrt()}
		},
		apply: func(x scalar.Float, of, v []scalar.Float) scalar.Float {
			return x.Sub(of[0]).Mul(of[1]).Fma(v[0], v[1])
		},
	}
}

// rmsNorm has the sum of squares.
func rmsNorm(t threadgroup.Group) statistic {
	s, c := l2Normalize(t), scalar.Math{K: t.K}
	root := s.coefficients
	s.coefficients = func(acc []scalar.Float) []scalar.Float {
		return root([]scalar.Float{acc[0].Mul(c.Inverse(ptx.Convert[float32](t.Cols)))})
	}
	s.apply = func(x scalar.Float, of, v []scalar.Float) scalar.Float { return x.Mul(of[0]).Mul(v[0]) }
	return s
}

// l2Normalize has it, too.
func l2Normalize(t threadgroup.Group) statistic {
	k, c := t.K, scalar.Math{K: t.K}
	eps := ptx.Param[float32](k, "eps")
	return statistic{
		empty: []float32{0},
		take: func(x, _ []scalar.Float, _ rowTile) []scalar.Float {
			squares := make([]scalar.Float, len(x))
			for i, v := range x {
				squares[i] = v.Mul(v)
			}
			return []scalar.Float{scalar.SumOf(c, squares)}
		},
		merge:        func(a, b []scalar.Float) []scalar.Float { return []scalar.Float{a[0].Add(b[0])} },
		coefficients: func(acc []scalar.Float) []scalar.Float { return []scalar.Float{acc[0].Add(eps).Rsqrt()} },
		apply:        func(x scalar.Float, of, _ []scalar.Float) scalar.Float { return x.Mul(of[0]) },
	}
}
