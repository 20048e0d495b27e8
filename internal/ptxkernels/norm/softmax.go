package norm

import (
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/softmax"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

// expNormalize is softmax of a row; every element is NaN where there is nothing but −Inf.
func expNormalize(t threadgroup.Group, _ scalar.Float) rowOp {
	o := softmax.OfRows(t.K)
	return rowOp{
		Accumulator: o.Accumulator(), neutral: math.Inf(-1),
		partial: func(x, _ []scalar.Float, _ rowTile) []scalar.Float { return o.Of(x) },
		coefficients: func(acc []scalar.Float) []scalar.Float {
			return []scalar.Float{acc[0], acc[1].Rcp(ptx.Approx)}
		},
		apply: func(x scalar.Float, of, _ []scalar.Float) scalar.Float { return o.Exp(x, of[0]).Mul(of[1]) },
	}
}

// logExpNormalize is its logarithm.
func logExpNormalize(t threadgroup.Group, _ scalar.Float) rowOp {
	op := expNormalize(t, scalar.Float{})
	op.coefficients = func(acc []scalar.Float) []scalar.Float {
		return []scalar.Float{acc[0], acc[1].Lg2().Mul(math.Ln2)}
	}
	op.apply = func(x scalar.Float, of, _ []scalar.Float) scalar.Float { return x.Sub(of[0]).Sub(of[1]) }
	return op
}
