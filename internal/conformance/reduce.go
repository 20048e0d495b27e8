package conformance

import (
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

func init() {
	byClass[program.Reduce] = reduceCases
	byClass[program.Rows] = rowCases
}

// exactOnIntegers are the reductions whose results on small integers no rounding may touch.
var exactOnIntegers = []string{"sum", "dot", "norm_l1"}

func reduceCases(b *builder) {
	all, last := program.Attr{Options: compute.AllAxes}, program.Attr{Options: compute.LastAxis}
	both := []program.Attr{all, last}
	repeat := func(s []int) [][]int { return slices.Repeat([][]int{s}, len(b.Inputs)) }
	legal := func(a program.Attr, s []int) bool {
		in := make([]program.Type, len(b.Inputs))
		for i := range in {
			in[i] = program.F32(s...)
		}
		_, err := b.Check(in, a)
		return err == nil // nothing to choose from in an empty row; tested with the shape rules
	}
	for i, n := range lengths {
		for j, a := range both {
			if legal(a, []int{n}) && (j == 0 || i%3 == 0) {
				b.random("", a, repeat([]int{n})...)
			}
		}
	}
	for _, s := range [][]int{{}, {1, 1}, {5, 1}, {1, 5}, {70000, 3}, {3, 1000}, {1000, 1}, {257, 255}, {65537, 2}, {2, 65537}, {33, 64},
		{7, 129}, {300, 17}, {2, 3, 4, 5}, {2, 1, 3, 1, 2, 1, 2, 3}, {0}, {0, 5}, {5, 0}, {2, 0, 3}} {
		for _, a := range both {
			if legal(a, s) {
				b.random("", a, repeat(s)...)
			}
		}
	}
	integers := func(a program.Attr, s []int) {
		b.add("small integers", a, func(r *source) []operand {
			in := make([]operand, len(b.Inputs))
			for i := range in {
				in[i] = r.integers(-8, 8, s...)
			}
			return in
		}).exact = slices.Contains(exactOnIntegers, b.Name)
	}
	for _, s := range [][]int{{1000}, {100003}, {7, 1031}, {1025, 3}} { // with many ties, too
		integers(all, s)
		integers(last, s)
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	special := func(note string, n int, change func(x operand) operand) {
		for _, shape := range [][]int{{n}, {3, n}} {
			for _, a := range both {
				b.add(note, a, func(r *source) []operand {
					in := []operand{r.integers(-8, 8, shape...)}
					in[0] = change(in[0])
					for range len(b.Inputs) - 1 {
						in = append(in, r.integers(1, 8, shape...))
					}
					return in
				})
			}
		}
	}
	for _, n := range []int{1, 5, 300, 2049} {
		for _, at := range []int{0, n / 2, n - 1} {
			special("a NaN", n, func(x operand) operand { return x.set(nan, at) })
		}
		special("two NaNs, Inf before", n, func(x operand) operand { return x.set(nan, n-1, n/2).set(inf, 0) })
		special("+Inf", n, func(x operand) operand { return x.set(inf, n/2) })
		special("-Inf", n, func(x operand) operand { return x.set(-inf, n-1) })
		special("both infinities", n, func(x operand) operand { return x.set(inf, 0).set(-inf, n-1) })
		special("all -Inf", n, func(x operand) operand { return fillWith(x, -inf) })
		special("all +Inf", n, func(x operand) operand { return fillWith(x, inf) })
		special("all equal", n, func(x operand) operand { return fillWith(x, 3) })
		special("zeros of both signs", n, func(x operand) operand {
			return fillWith(x, 0).set(float32(math.Copysign(0, -1)), 0, n-1)
		})
		special("ties for the largest and the smallest", n, func(x operand) operand { return x.set(9, n/3, n/2, n-1).set(-9, n/4, n-1-n/4) })
		special("subnormals", n, func(x operand) operand { return fillWith(x, 1e-40).set(2e-40, n/2).set(-1e-40, n/3) })
	}
	if slices.Contains([]string{"max", "min", "argmax", "argmin", "norm_linf"}, b.Name) {
		special("FLT_MAX", 300, func(x operand) operand { return x.set(math.MaxFloat32, 17, 299).set(-math.MaxFloat32, 16, 298) })
	}
	if b.Name == "norm_l2" {
		special("squares beyond range", 300, func(x operand) operand { return x.set(1e20, 17) })
	}
	b.random("", all, repeat([]int{3, 100})...).same = true
	c := b.random("", last, repeat([]int{65, 3})...)
	if !slices.Contains([]string{"argmax", "argmin", "inspect"}, b.Name) { // slices of two types do not overlap
		b.again(c, inPlace)
		b.again(c, shifted)
	}
}

func fillWith(x operand, v float32) operand {
	for i := range x.data.([]float32) {
		x.data.([]float32)[i] = v
	}
	return x
}

func rowCases(b *builder) {
	all := attrs(b.Entry, nil)
	base := all[0]
	shapes := func(s []int) [][]int { // the operands after the first are vectors
		in := [][]int{s}
		for range len(b.Inputs) - 1 {
			in = append(in, []int{s[len(s)-1]})
		}
		return in
	}
	for i, n := range lengths {
		b.random("", base, shapes([]int{n})...)
		if i%2 == 0 && n < 2000 {
			b.random("", base, shapes([]int{3, n})...)
		}
	}
	for _, a := range all {
		for _, s := range [][]int{{70000, 3}, {1000, 1}, {65537, 2}, {3, 65537}, {129, 257}, {2, 3, 4, 5}, {2, 1, 3, 1, 2, 1, 2, 3}, {0, 4}, {4, 0}, {2, 0, 3}} {
			b.random("", a, shapes(s)...)
		}
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	special := func(note string, n int, change func(row []float32)) {
		b.add(note, base, func(r *source) []operand {
			in := []operand{r.domain(b.Entry, 3, n)} // the rows around it must stay as they are
			for range len(b.Inputs) - 1 {
				in = append(in, r.floats(-2, 2, n))
			}
			change(in[0].data.([]float32)[n : 2*n])
			return in
		})
	}
	all1 := func(v float32) func([]float32) {
		return func(row []float32) {
			for i := range row {
				row[i] = v
			}
		}
	}
	for _, n := range []int{1, 5, 64, 300, 2049} {
		special("a NaN", n, func(row []float32) { row[n-1] = nan })
		special("one +Inf", n, func(row []float32) { row[n/2] = inf })
		special("one -Inf", n, func(row []float32) { row[n/2] = -inf })
		special("both infinities", n, func(row []float32) { row[0], row[n-1] = inf, -inf })
		special("all -Inf", n, all1(-inf))
		special("all +Inf", n, all1(inf))
		special("constant", n, all1(0.1))
		special("constant, large", n, all1(-12345.678))
		special("zeros", n, all1(0))
		special("large base, small spread", n, func(row []float32) {
			for i := range row {
				row[i] = 1e4 + row[i]
			}
		})
		special("wide", n, func(row []float32) {
			for i := range row {
				row[i] *= 1000
			}
		})
		special("subnormals", n, all1(1e-40))
	}
	if len(b.Inputs) == 1 { // norms square their inputs
		special("FLT_MAX", 70, func(row []float32) { row[3], row[4] = math.MaxFloat32, -math.MaxFloat32 })
	}
	c := b.random("", base, shapes([]int{5, 129})...)
	b.again(c, inPlace)
	b.again(c, shifted)
	if len(b.Inputs) > 1 {
		b.random("one value for all operands", base, shapes([]int{65})...).same = true
	}
}
