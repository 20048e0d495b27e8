package norm

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

// l2Normalize accumulates the sum of squares.
func l2Normalize(t threadgroup.Group, eps scalar.Float) rowOp {
	return rowOp{
		Accumulator:  threadgroup.Sums[float32](1),
		partial:      func(x, _ []scalar.Float, _ rowTile) []scalar.Float { return []scalar.Float{sumOfProducts(x, x)} },
		coefficients: func(acc []scalar.Float) []scalar.Float { return []scalar.Float{acc[0].Add(eps).Rsqrt()} },
		apply:        func(x scalar.Float, of, _ []scalar.Float) scalar.Float { return x.Mul(of[0]) },
	}
}

func sumOfProducts(x, y []scalar.Float) scalar.Float {
	products := make([]scalar.Float, len(x))
	for i := range x {
		products[i] = x[i].Mul(y[i])
	}
	return scalar.SumOf(products)
}

// rmsNorm does so, too.
func rmsNorm(t threadgroup.Group, eps scalar.Float) rowOp {
	op, c := l2Normalize(t, eps), scalar.Math{K: t.K}
	root := op.coefficients
	op.coefficients = func(acc []scalar.Float) []scalar.Float {
		return root([]scalar.Float{acc[0].Mul(c.Inverse(ptx.Convert[float32](t.Cols)))})
	}
	op.apply = func(x scalar.Float, of, v []scalar.Float) scalar.Float { return x.Mul(of[0]).Mul(v[0]) }
	return op
}

// layerNorm accumulates count, mean and the sum of squared deviations: by two passes over the elements at hand, combined pairwise
// (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979).
func layerNorm(t threadgroup.Group, eps scalar.Float) rowOp {
	c := scalar.Math{K: t.K}
	return rowOp{
		Accumulator: threadgroup.Accumulator[float32]{Identity: make([]float32, 3), Combine: func(a, b []scalar.Float) []scalar.Float {
			n, d := a[0].Add(b[0]), b[1].Sub(a[1])
			w := c.Where(a[0].Eq(0), ptx.F32(1), b[0].Mul(c.Inverse(n)))
			return []scalar.Float{n, d.Fma(w, a[1]), d.Mul(d).Fma(a[0].Mul(w), a[2].Add(b[2]))}
		}},
		partial: func(x, _ []scalar.Float, l rowTile) []scalar.Float {
			deviations, squares := make([]scalar.Float, len(x)), make([]scalar.Float, len(x))
			n := ptx.Convert[float32](l.inside.And(uint32(1)<<len(x) - 1).Popc())
			each := c.Inverse(n.Max(1))
			mean := scalar.SumOf(x).Mul(each)
			for i, v := range x {
				deviations[i] = c.Where(l.Has(i), v.Sub(mean), ptx.F32(0))
				squares[i] = deviations[i].Mul(deviations[i])
			}
			rest := scalar.SumOf(deviations).Mul(each) // what rounding left out of the mean
			return []scalar.Float{n, mean.Add(rest), n.Mul(rest).Fma(rest.Neg(), scalar.SumOf(squares)).Abs()}
		},
		coefficients: func(acc []scalar.Float) []scalar.Float {
			return []scalar.Float{acc[1], acc[2].Fma(c.Inverse(acc[0]), eps).Rsqrt()}
		},
		apply: func(x scalar.Float, of, v []scalar.Float) scalar.Float {
			return x.Sub(of[0]).Mul(of[1]).Fma(v[0], v[1])
		},
	}
}

// rmsNormBackward accumulates the sums of squares and of products with g.
func rmsNormBackward(t threadgroup.Group, eps scalar.Float) rowOp {
	c := scalar.Math{K: t.K}
	return rowOp{
		Accumulator: threadgroup.Sums[float32](2),
		partial: func(x, g []scalar.Float, _ rowTile) []scalar.Float {
			return []scalar.Float{sumOfProducts(x, x), sumOfProducts(x, g)}
		},
		coefficients: func(acc []scalar.Float) []scalar.Float {
			each := c.Inverse(ptx.Convert[float32](t.Cols))
			r := acc[0].Fma(each, eps).Rsqrt()
			return []scalar.Float{ptx.F32(0), r, r.Mul(r).Mul(r.Mul(each)).Mul(acc[1])}
		},
		apply: func(x scalar.Float, of, g []scalar.Float) scalar.Float {
			return g[0].Fma(of[1], x.Mul(of[2]).Neg())
		},
	}
}

// layerNormBackward accumulates what [layerNorm] does, then the mean of g and the sum of the products of the deviations of x and g.
func layerNormBackward(t threadgroup.Group, eps scalar.Float) rowOp {
	c, forward := scalar.Math{K: t.K}, layerNorm(t, eps)
	return rowOp{
		Accumulator: threadgroup.Accumulator[float32]{Identity: make([]float32, 5), Combine: func(a, b []scalar.Float) []scalar.Float {
			n := a[0].Add(b[0])
			w := c.Where(a[0].Eq(0), ptx.F32(1), b[0].Mul(c.Inverse(n)))
			dx, dg := b[1].Sub(a[1]), b[3].Sub(a[3])
			return append(forward.Combine(a[:3], b[:3]), dg.Fma(w, a[3]), dx.Mul(dg).Fma(a[0].Mul(w), a[4].Add(b[4])))
		}},
		partial: func(x, g []scalar.Float, l rowTile) []scalar.Float {
			of := forward.partial(x, nil, l)
			each := c.Inverse(of[0].Max(1))
			mean := scalar.SumOf(g).Mul(each)
			deviations, products := make([]scalar.Float, len(x)), make([]scalar.Float, len(x))
			for i := range x {
				deviations[i] = c.Where(l.Has(i), g[i].Sub(mean), ptx.F32(0))
				products[i] = c.Where(l.Has(i), x[i].Sub(of[1]), ptx.F32(0)).Mul(deviations[i])
			}
			rest := scalar.SumOf(deviations).Mul(each) // the deviations of x sum up to nothing: it does not show in the products
			return append(of, mean.Add(rest), scalar.SumOf(products))
		},
		coefficients: func(acc []scalar.Float) []scalar.Float {
			of := forward.coefficients(acc[:3])
			r := of[1]
			return append(of, acc[3], r.Mul(r).Mul(r.Mul(c.Inverse(acc[0]))).Mul(acc[4]))
		},
		apply: func(x scalar.Float, of, g []scalar.Float) scalar.Float {
			return g[0].Sub(of[2]).Fma(of[1], x.Sub(of[0]).Mul(of[3]).Neg())
		},
	}
}
