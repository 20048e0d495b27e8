// Package trial holds kernels made at random, to execute what the backend makes of them. Its assembly and its map of functions
// are laid over it by the test that runs it.
package trial

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
	"github.com/wavelane/wavelane/internal/simd/asmgen/kernels"
)

// Kernels gives the kernels of a seed, and those of the project that store and do not fold. No result of theirs depends on
// the order of elements, on payloads of NaN or on what package ir leaves open.
func Kernels(seed uint64) []*ir.Kernel {
	r := rand.New(rand.NewPCG(seed, 0))
	ks := slices.Clone(forms)
	for i := range 40 {
		ks = append(ks, random(r, fmt.Sprintf("Random%d", i)))
	}
	for _, k := range kernels.All {
		if len(k.Build(ir.Features{FMA: true, Round: true}).Accumulators) == 0 {
			own := *k
			own.Name = "The" + k.Name
			ks = append(ks, &own)
		}
	}
	return ks
}

// forms are the forms that kernels have.
var forms = []*ir.Kernel{
	{Name: "Add", Inputs: []string{"a", "b"}, Unroll: 4, Body: func(b *ir.Builder) { b.Store(b.Add(b.Input(0), b.Input(1))) }},
	{Name: "Copy", Inputs: []string{"a"}, Unroll: 2, Body: func(b *ir.Builder) { b.Store(b.Input(0)) }},
	{Name: "Fill", Inputs: []string{"a"}, Params: []string{"s"}, Unroll: 4, Body: func(b *ir.Builder) { b.Store(b.Param(0)) }},
	{Name: "Seven", Inputs: []string{"a"}, Unroll: 4, Body: func(b *ir.Builder) { b.Store(b.Const(7)) }},
	{Name: "Lerp", Inputs: []string{"a", "b"}, Params: []string{"t"}, Unroll: 4, Body: func(b *ir.Builder) {
		b.Store(b.MulAdd(b.Sub(b.Input(1), b.Input(0)), b.Param(0), b.Input(0)))
	}},
	{Name: "Dot", Inputs: []string{"a", "b"}, Unroll: 4, Body: func(b *ir.Builder) {
		b.Accumulate(0, ir.MergeAdd, func(acc ir.F) ir.F { return b.MulAdd(small(b, b.Input(0)), small(b, b.Input(1)), acc) })
	}},
	{Name: "Range", Inputs: []string{"a"}, Unroll: 4, Body: func(b *ir.Builder) {
		b.Accumulate(math.Inf(1), ir.MergeMin, func(acc ir.F) ir.F { return b.MinNaN(acc, plus(b, b.Input(0))) })
		b.Accumulate(math.Inf(-1), ir.MergeMax, func(acc ir.F) ir.F { return b.MaxNaN(acc, plus(b, b.Input(0))) })
	}},
	{Name: "Kahan", Inputs: []string{"a"}, Unroll: 4, Body: func(b *ir.Builder) {
		x := small(b, b.Input(0))
		var y, sum ir.F
		b.Accumulate(0, ir.MergeNone, func(s ir.F) ir.F {
			y = b.Sub(x, b.Acc(1))
			sum = b.Add(s, y)
			return sum
		})
		b.Accumulate(0, ir.MergeNone, func(ir.F) ir.F { return b.Sub(b.Sub(sum, b.Acc(0)), y) })
	}},
	{Name: "Find", Inputs: []string{"a"}, Params: []string{"v"}, Unroll: 4, Body: func(b *ir.Builder) {
		b.Guard(b.EQ(b.Input(0), b.Param(0)))
	}},
	{Name: "FindNaN", Inputs: []string{"a"}, Unroll: 4, Body: func(b *ir.Builder) { b.Guard(b.IsNaN(b.Input(0))) }},
	{Name: "Guarded", Inputs: []string{"a"}, Unroll: 2, Body: func(b *ir.Builder) {
		x := b.Input(0)
		b.Accumulate(0, ir.MergeAdd, func(acc ir.F) ir.F { return b.Add(acc, small(b, x)) })
		b.Store(b.Sqrt(b.Abs(x)))
		b.Guard(b.And(b.LT(b.Const(100), b.Abs(x)), b.LT(b.Abs(x), b.Const(200))))
	}},
	{Name: "Pressure", Inputs: []string{"a", "b"}, Unroll: 4, Body: func(b *ir.Builder) {
		var terms []ir.F // all needed at the end
		x := b.Input(0)
		for i := range 40 {
			x = b.Add(b.Mul(x, b.Const(1/float64(i+2))), b.Input(1))
			terms = append(terms, x)
		}
		y := b.Const(0)
		for i := len(terms) - 1; i >= 0; i-- {
			y = b.Sub(terms[i], b.Mul(y, b.Const(0.25)))
		}
		b.Store(y)
	}},
	{Name: "Signs", Inputs: []string{"a", "b"}, Unroll: 2, Body: func(b *ir.Builder) {
		x, y := known(b, b.Input(0)), known(b, b.Input(1))
		b.Store(b.Add(b.CopySign(x, y), b.CopySign(b.Abs(y), b.Neg(x))))
	}},
}

// known is x, or 5 for NaN, whose bits are not the same everywhere.
func known(b *ir.Builder, x ir.F) ir.F { return b.Select(b.IsNaN(x), b.Const(5), x) }

// plus is x, with +0 for −0: which zero is the larger one is open.
func plus(b *ir.Builder, x ir.F) ir.F { return b.Add(x, b.Const(0)) }

// within is x where it can become an integer, else 3.
func within(b *ir.Builder, x ir.F) ir.F {
	return b.Select(b.LT(b.Abs(x), b.Const(1<<30)), x, b.Const(3))
}

// small is a whole number from 0 to 7, of which any sum over a test's elements is exact.
func small(b *ir.Builder, x ir.F) ir.F {
	return b.FromInt(b.AndI(b.ToInt(within(b, x)), b.ConstInt(7)))
}

// random makes a kernel of all operations.
func random(r *rand.Rand, name string) *ir.Kernel {
	k := &ir.Kernel{Name: name, Unroll: 1 << r.IntN(3), Params: []string{"p", "q"}[:r.IntN(3)]}
	k.Inputs = []string{"a", "b", "c"}[:1+r.IntN(3)]
	size, folds := 5+r.IntN(60), r.IntN(3)
	stores, guards := folds == 0 || r.IntN(2) == 0, r.IntN(4) == 0
	seed := r.Uint64()
	k.Body = func(b *ir.Builder) { randomBody(b, rand.New(rand.NewPCG(seed, 1)), k, size, folds, stores, guards) }
	return k
}

func randomBody(b *ir.Builder, r *rand.Rand, k *ir.Kernel, size, folds int, stores, guards bool) {
	fs := []ir.F{b.Const(0), b.Const(1.5), b.Const(-3)}
	is := []ir.I{b.ConstInt(12345), b.ConstInt(-1)}
	for i := range k.Inputs {
		fs = append(fs, b.Input(i))
	}
	for i := range k.Params {
		fs = append(fs, b.Param(i))
	}
	ms := []ir.M{b.LT(fs[3], b.Const(2))}
	f := func() ir.F { // later values more often, so that chains grow
		if r.IntN(3) == 0 {
			return fs[r.IntN(len(fs))]
		}
		return fs[len(fs)-1-r.IntN(min(len(fs), 4))]
	}
	i := func() ir.I { return is[len(is)-1-r.IntN(min(len(is), 6))] }
	m := func() ir.M { return ms[len(ms)-1-r.IntN(min(len(ms), 5))] }
	float := []func() ir.F{
		func() ir.F { return b.Add(f(), f()) }, func() ir.F { return b.Sub(f(), f()) },
		func() ir.F { return b.Mul(f(), f()) }, func() ir.F { return b.Div(f(), f()) },
		func() ir.F { return b.Sqrt(f()) }, func() ir.F { return b.MulAdd(f(), f(), f()) },
		func() ir.F { return b.NegMulAdd(f(), f(), f()) }, func() ir.F { return b.MulAdd(f(), f(), b.Const(float64(r.IntN(9)))) },
		func() ir.F { return b.Min(b.Abs(known(b, f())), b.Abs(known(b, f()))) },
		func() ir.F { return b.Max(b.Abs(known(b, f())), b.Abs(known(b, f()))) },
		func() ir.F { return b.MinNaN(plus(b, f()), plus(b, f())) }, func() ir.F { return b.MaxNaN(plus(b, f()), plus(b, f())) },
		func() ir.F { return b.Floor(f()) }, func() ir.F { return b.Ceil(f()) },
		func() ir.F { return b.Trunc(f()) }, func() ir.F { return b.Nearest(f()) },
		func() ir.F { return b.Select(m(), f(), f()) }, func() ir.F { return b.Select(m(), f(), b.Const(0)) },
		func() ir.F { return b.Select(m(), b.Const(0), f()) }, func() ir.F { return known(b, b.Float(i())) },
		func() ir.F { return b.FromInt(i()) }, func() ir.F { return b.Neg(f()) }, func() ir.F { return b.Abs(f()) },
		func() ir.F { return b.CopySign(f(), known(b, f())) },
		func() ir.F {
			return b.Float(b.OrI(b.Bits(b.Abs(f())), b.AndI(b.Bits(known(b, f())), b.ConstInt(math.MinInt32))))
		},
	}
	integer := []func() ir.I{
		func() ir.I { return b.Bits(known(b, f())) }, func() ir.I { return b.AndI(i(), i()) },
		func() ir.I { return b.OrI(i(), i()) }, func() ir.I { return b.XorI(i(), i()) },
		func() ir.I { return b.AndNotI(i(), i()) }, func() ir.I { return b.AddI(i(), i()) },
		func() ir.I { return b.SubI(i(), i()) }, func() ir.I { return b.Shl(i(), 1+r.IntN(31)) },
		func() ir.I { return b.ShrL(i(), 1+r.IntN(31)) }, func() ir.I { return b.ShrA(i(), 1+r.IntN(31)) },
		func() ir.I { return b.ToInt(within(b, f())) }, func() ir.I { return b.TruncToInt(within(b, f())) },
		func() ir.I { return b.SelectI(m(), i(), i()) },
	}
	mask := []func() ir.M{
		func() ir.M { return b.LT(f(), f()) }, func() ir.M { return b.LE(f(), f()) },
		func() ir.M { return b.EQ(f(), f()) }, func() ir.M { return b.NE(f(), f()) },
		func() ir.M { return b.And(m(), m()) }, func() ir.M { return b.Or(m(), m()) },
		func() ir.M { return b.Not(m()) }, func() ir.M { return b.GTI(i(), i()) }, func() ir.M { return b.EQI(i(), i()) },
	}
	for range size {
		switch r.IntN(5) {
		case 0:
			is = append(is, integer[r.IntN(len(integer))]())
		case 1:
			ms = append(ms, mask[r.IntN(len(mask))]())
		default:
			fs = append(fs, float[r.IntN(len(float))]())
		}
	}
	if stores {
		b.Store(f())
	}
	if guards { // seldom true
		b.Guard(b.EQI(b.AndI(b.Bits(known(b, f())), b.ConstInt(0x3f00)), b.ConstInt(0x1500)))
	}
	for range folds {
		switch r.IntN(4) {
		case 0:
			b.Accumulate(math.Inf(-1), ir.MergeMax, func(acc ir.F) ir.F { return b.MaxNaN(plus(b, f()), acc) })
		case 1:
			b.Accumulate(math.Inf(1), ir.MergeMin, func(acc ir.F) ir.F { return b.Select(m(), b.MinNaN(acc, plus(b, f())), acc) })
		case 2:
			b.Accumulate(0, ir.MergeAdd, func(acc ir.F) ir.F { return b.Add(small(b, f()), acc) })
		case 3:
			b.Accumulate(0, ir.MergeAdd, func(acc ir.F) ir.F { return b.NegMulAdd(small(b, f()), small(b, f()), acc) })
		}
	}
}
