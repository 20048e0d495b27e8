//go:build !js

package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/wavelane/wavelane/ptx/ir"
)

// tolerance is NumPy's: got and want agree if |got − want| ≤ abs + rel·|want|, or both are NaN.
type tolerance struct{ rel, abs float64 }

// compare says where elements differ from those wanted, nil if nowhere. The types may differ: a reference may be in double precision.
func (tol tolerance) compare(name string, got *value, want *value, file string) error {
	n, m := len(got.bytes)/got.typ.Size(), len(want.bytes)/want.typ.Size()
	if n != m {
		return fmt.Errorf("%s has %d elements, and %s has %d", name, n, file, m)
	}
	exact := got.typ == want.typ && !got.typ.IsFloat() && tol.rel == 0 && tol.abs == 0
	count, first, largest, worst := 0, 0, 0.0, 0
	for i := range n {
		a, b := got.at(i), want.at(i)
		x, y := float(got.typ, load(a)), float(want.typ, load(b))
		switch {
		case exact && bytes.Equal(a, b), !exact && tol.agree(x, y):
			continue
		case count == 0:
			first, worst, largest = i, i, math.Abs(x-y)
		case math.Abs(x-y) > largest:
			worst, largest = i, math.Abs(x-y)
		}
		count++
	}
	if count == 0 {
		return nil
	}
	show := func(i int) string {
		return fmt.Sprintf("%s%v is %v, want %v", name, position(i, got.shape), element(got.typ, load(got.at(i))), element(want.typ, load(want.at(i))))
	}
	return fmt.Errorf("%d of %d elements of %s differ from %s by more than %g + %g·|want|: %s; the largest difference is %.3g, %s", count, n, name,
		file, tol.abs, tol.rel, show(first), largest, show(worst))
}

func (v *value) at(i int) []byte {
	n := v.typ.Size()
	return v.bytes[i*n : (i+1)*n]
}

func (tol tolerance) agree(x, y float64) bool {
	switch {
	case x == y || math.IsNaN(x) && math.IsNaN(y):
		return true
	case math.IsInf(x, 0) || math.IsInf(y, 0):
		return false
	}
	return math.Abs(x-y) <= tol.abs+tol.rel*math.Abs(y)
}

// position is the index of an element in a shape.
func position(i int, shape []int) []int {
	at := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		at[d], i = i%shape[d], i/shape[d]
	}
	return at
}

// numberType is how a number without a type is read for a parameter.
func numberType(t ir.Type, text string) ir.Type {
	integer := isInteger(text)
	switch {
	case t.IsFloat() || t.Class() == ir.Bits && !integer:
		return map[int]ir.Type{2: ir.F16, 4: ir.F32, 8: ir.F64}[t.Size()]
	case strings.HasPrefix(text, "-"): // compilers call all integers unsigned
		return map[int]ir.Type{1: ir.S8, 2: ir.S16, 4: ir.S32, 8: ir.S64}[t.Size()]
	}
	return map[int]ir.Type{1: ir.U8, 2: ir.U16, 4: ir.U32, 8: ir.U64}[t.Size()]
}
