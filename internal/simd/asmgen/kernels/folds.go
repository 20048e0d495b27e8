package kernels

import (
	"math"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

// fold is a kernel with one accumulator and without a store. Four copies of it hide the latency of an addition.
func fold(name, operands, statement string, init float64, m ir.Merge, next func(b *builder, acc f) f,
	notes ...string) *ir.Kernel {
	in, params := operandNames(operands)
	doc := name + " returns r of\n\n\tfor i := range " + in[0] + " {\n\t\t" + statement + "\n\t}"
	for _, n := range notes {
		doc += "\n\n" + n
	}
	return &ir.Kernel{Name: name, Inputs: in, Params: params, Unroll: 4, Doc: doc, Body: func(b *builder) {
		b.Accumulate(init, m, func(acc f) f { return next(b, acc) })
	}}
}

func sum(name, operands, statement string, next func(b *builder, acc f) f) *ir.Kernel {
	return fold(name, operands, statement, 0, ir.MergeAdd, next, "in another order and with or without rounded products.")
}

// wasmFrom says from how many elements on a kernel beats its portable fallback on wasm.
func wasmFrom(n int, k *ir.Kernel) *ir.Kernel {
	k.Wasm = n
	return k
}

var folds = []*ir.Kernel{
	sum("Sum", "x", "r += x[i]", func(b *builder, acc f) f { return b.Add(acc, b.Input(0)) }),
	sum("SumAbs", "x", "r += abs(x[i])", func(b *builder, acc f) f { return b.Add(acc, b.Abs(b.Input(0))) }),
	sum("SumSquares", "x", "r += x[i] * x[i]", func(b *builder, acc f) f {
		return b.MulAdd(b.Input(0), b.Input(0), acc)
	}),
	sum("Dot", "a b", "r += a[i] * b[i]", func(b *builder, acc f) f { return b.MulAdd(b.Input(0), b.Input(1), acc) }),
	sum("SumSqDiff", "x; mean", "r += (x[i] - mean) * (x[i] - mean)", func(b *builder, acc f) f {
		d := b.Sub(b.Input(0), b.Param(0))
		return b.MulAdd(d, d, acc)
	}),
	sum("SumProdDiff", "a b; ma mb", "r += (a[i] - ma) * (b[i] - mb)", func(b *builder, acc f) f {
		return b.MulAdd(b.Sub(b.Input(0), b.Param(0)), b.Sub(b.Input(1), b.Param(1)), acc)
	}),
	fold("Max", "x", "r = max(r, x[i]) // from -Inf", math.Inf(-1), ir.MergeMax, func(b *builder, acc f) f {
		return b.MaxNaN(acc, b.Input(0))
	}, "NaN if there is one."),
	fold("Min", "x", "r = min(r, x[i]) // from +Inf", math.Inf(1), ir.MergeMin, func(b *builder, acc f) f {
		return b.MinNaN(acc, b.Input(0))
	}, "NaN if there is one."),
	wasmFrom(96, fold("MaxAbs", "x", "r = max(r, abs(x[i]))", 0, ir.MergeMax, func(b *builder, acc f) f {
		return b.MaxNaN(acc, b.Abs(b.Input(0)))
	}, "NaN if there is one.")), // its portable fallback compares integers
	{
		Name: "SumKahan", Inputs: []string{"x"}, Unroll: 4,
		Doc: `SumKahan computes, in every lane with its share of x,

	for i := range x {
		t := s + x[i]
		d := t - s
		c += (s - (t - d)) + (x[i] - d)
		s = t
	}

Accumulator 0 is s, 1 is c; s + c is the sum as if in twice the precision. The loop is Neumaier's with Knuth's branch-free
exact addition. Where s is not finite it is the sum, and c means nothing.`,
		Body: func(b *builder) {
			x, s := b.Input(0), b.Acc(0)
			t, lost := twoSum(b, s, x)
			b.Accumulate(0, ir.MergeNone, func(f) f { return t })
			b.Accumulate(0, ir.MergeNone, func(c f) f { return b.Add(c, lost) })
		},
	},
}

var searches = []*ir.Kernel{
	{
		Name: "Find", Inputs: []string{"x"}, Params: []string{"v"}, Unroll: 4,
		Doc:  "Find stops at the step in which an x[i] equals v, else at len(x).",
		Body: func(b *builder) { b.Guard(b.EQ(b.Input(0), b.Param(0))) },
	},
	{
		Name: "FindNaN", Inputs: []string{"x"}, Unroll: 4,
		Doc:  "FindNaN stops at the step in which an x[i] is NaN, else at len(x).",
		Body: func(b *builder) { b.Guard(b.IsNaN(b.Input(0))) },
	},
}

var normalisations = []*ir.Kernel{
	elementwise("Normalize", "x; mean rstd", "(x[i] - mean) * rstd", 4, func(b *builder) f {
		return b.Mul(b.Sub(b.Input(0), b.Param(0)), b.Param(1))
	}),
	elementwise("NormAffine", "x gamma beta; mean rstd", "(x[i]-mean)*rstd*gamma[i] + beta[i]", 4, func(b *builder) f {
		return b.MulAdd(b.Mul(b.Sub(b.Input(0), b.Param(0)), b.Param(1)), b.Input(1), b.Input(2))
	}, fused),
	elementwise("NormScale", "x gamma; f", "x[i] * f * gamma[i]", 4, func(b *builder) f {
		return b.Mul(b.Mul(b.Input(0), b.Param(0)), b.Input(1))
	}),
}
