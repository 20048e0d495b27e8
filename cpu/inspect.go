package cpu

import (
	"math"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// special is a result of inspect: the numbers of NaN and Inf, and the indices of the first ones.
type special [catalogue.InspectWords]int32

// specialFold looks at elements one by one only where the largest absolute value of a block is not finite.
var specialFold = engine.Fold[special]{Cost: engine.MaxAbsFold.Cost,
	Block: func(a, _ []float32, at int) special {
		s := special{2: -1, 3: -1}
		if kernels.MaxAbs(a) <= math.MaxFloat32 {
			return s
		}
		for i, v := range a {
			kind := 0
			switch {
			case v-v == 0:
				continue
			case v == v:
				kind = 1
			}
			if s[kind]++; s[2+kind] < 0 {
				s[2+kind] = int32(at + i)
			}
		}
		return s
	},
	Merge: func(x, y special) special {
		for kind := range 2 {
			if x[kind] == 0 {
				x[2+kind] = y[2+kind]
			}
			x[kind] += y[kind]
		}
		return x
	}}

func specialIn(s special, _ *reducedRow) special { return s }
