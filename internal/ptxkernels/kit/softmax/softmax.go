// Package softmax has online softmax: it keeps the maximum of the elements so far and the sum of their exponentials, and rescales what
// has been summed up where the maximum grows (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
package softmax

import (
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

// Online is the arithmetic of one kernel. A partial result is the maximum m of some elements x and Σexp(x − m).
type Online struct {
	scalar.Math
	lowest float64 // the maximum of nothing
	exp    func(x scalar.Float) scalar.Float
}

// OfRows is to base e. The maximum is at least −FLT_MAX so that −Inf − m never is NaN. NaN and +Inf make the sum NaN; it is 0 where
// there is nothing but −Inf.
func OfRows(k *ptx.Kernel) Online {
	c := scalar.Math{K: k}
	// The difference is taken before it is scaled: the error then grows with it, not with the elements.
	return Online{c, -math.MaxFloat32, func(x scalar.Float) scalar.Float { return c.SmallExp2(x.Mul(math.Log2E)) }}
}

// OfScores is to base 2, by exp2. The maximum of nothing but −Inf, which masked scores are, is −Inf, and the sum is 0.
func OfScores(k *ptx.Kernel, exp2 func(x scalar.Float) scalar.Float) Online {
	return Online{scalar.Math{K: k}, math.Inf(-1), exp2}
}

// Base is what is subtracted where m is the maximum: it is finite unless an element is not.
func (o Online) Base(m scalar.Float) scalar.Float {
	if math.IsInf(o.lowest, -1) {
		return o.Where(m.Eq(o.lowest), ptx.F32(0), m)
	}
	return m
}

// Exp is the weight of element x.
func (o Online) Exp(x, base scalar.Float) scalar.Float { return o.exp(x.Sub(base)) }

// Accumulator combines partial results.
func (o Online) Accumulator() threadgroup.Accumulator[float32] {
	return threadgroup.Accumulator[float32]{Identity: []float32{float32(o.lowest), 0}, Combine: o.Combine}
}

// Of is the partial result of elements.
func (o Online) Of(x []scalar.Float) []scalar.Float {
	m := ptx.F32(o.lowest)
	for _, v := range x {
		m = v.Max(m)
	}
	weights := make([]scalar.Float, len(x))
	for i, v := range x {
		weights[i] = o.Exp(v, m)
	}
	return []scalar.Float{m, scalar.SumOf(weights)}
}

// Combine makes one partial result of two.
func (o Online) Combine(a, b []scalar.Float) []scalar.Float {
	m, sum, _ := o.Merge(a, b)
	return []scalar.Float{m, sum}
}

// Merge makes one partial result of several; what has been summed up with the weights of each counts by a factor from now on.
func (o Online) Merge(partial ...[]scalar.Float) (m, sum scalar.Float, factors []scalar.Float) {
	m = partial[0][0]
	for _, p := range partial[1:] {
		m = m.Max(p[0])
	}
	base := o.Base(m)
	for _, p := range partial {
		factors = append(factors, o.Exp(p[0], base))
	}
	sum = partial[len(partial)-1][1].Mul(factors[len(partial)-1])
	for i := len(partial) - 2; i >= 0; i-- {
		sum = partial[i][1].Fma(factors[i], sum)
	}
	return m, sum, factors
}

// Running is the partial result of a row of which a kernel sees one tile after the other.
type Running struct {
	Online
	Max, Sum *ptx.Var[float32]
}

// Start is that of nothing.
func (o Online) Start() Running {
	return Running{o, ptx.VarOf(o.K, ptx.F32(o.lowest)), ptx.VarOf(o.K, ptx.F32(0))}
}

// Update takes in the maximum of a tile. The tile's weights are exp(x − base); what has been summed up before counts by the factor.
func (r Running) Update(m scalar.Float) (base, factor scalar.Float) {
	m = m.Max(r.Max.Get())
	base = r.Base(m)
	factor = r.Exp(r.Max.Get(), base)
	r.Max.Set(m)
	return base, factor
}

// Add takes in the tile's weights, with the factor of Update.
func (r Running) Add(factor scalar.Float, weights ...scalar.Float) {
	sum := weights[0]
	for _, w := range weights[1:] {
		sum = sum.Add(w)
	}
	r.Sum.Set(r.Sum.Get().Fma(factor, sum))
}

// Join takes in another partial result, with factors for what was summed up with the weights of this and of the other one.
func (r Running) Join(m, sum scalar.Float) (mine, its scalar.Float) {
	m, sum, factors := r.Merge([]scalar.Float{r.Max.Get(), r.Sum.Get()}, []scalar.Float{m, sum})
	r.Max.Set(m)
	r.Sum.Set(sum)
	return factors[0], factors[1]
}

// Rescale runs f, which multiplies what the warp has summed up by factors, unless all lanes' are 1: most tiles have no new maximum.
func (o Online) Rescale(factors []scalar.Float, f func()) {
	ones := factors[0].Eq(1)
	for _, x := range factors[1:] {
		ones = ones.And(x.Eq(1)) // not if it is NaN
	}
	o.K.If(o.K.VoteAll(ones, ptx.FullWarp()).Not(), f)
}

// Finish is what makes weights sum up to 1, given their sum: 1 where there are none, which none tells.
func (o Online) Finish(sum scalar.Float) (scale scalar.Float, none ptx.Reg[bool]) {
	none = sum.Eq(0)
	return o.Where(none, ptx.F32(1), sum).Rcp(), none
}
