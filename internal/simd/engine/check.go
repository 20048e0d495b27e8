package engine

import (
	"fmt"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
)

// MustLen panics unless got is want.
func MustLen(name string, got, want int) {
	if got != want {
		wrongLen(name, got, want)
	}
}

//go:noinline // keeps mustLen small
func wrongLen(name string, got, want int) {
	panic(fmt.Errorf("simd.%s: %d elements where %d belong: %w", name, got, want, compute.ErrShape))
}

// MustApart panics if a destination shares elements with an operand.
func MustApart[D, X any](name string, dst []D, x []X) {
	if overlaps(dst, x) {
		panic(fmt.Errorf("simd.%s: the destination overlaps an operand: %w", name, compute.ErrArgument))
	}
}

// MustFit checks an operand of an elementwise function: it has the destination's length, and if they share elements it does
// not begin before the destination.
func MustFit(name string, dst, x []float32) {
	if !fits(dst, x) {
		misfit(name, dst, x)
	}
}

//go:noinline // keeps its callers small
func misfit(name string, dst, x []float32) {
	MustLen(name, len(x), len(dst))
	panic(fmt.Errorf("simd.%s: an operand begins before the destination and reaches into it: %w", name, compute.ErrArgument))
}

// fits reports whether MustFit returns. It is small enough to be inlined.
func fits(dst, x []float32) bool { return len(x) == len(dst) && !ahead(x, dst) }

// ahead reports whether x begins before y and reaches into it.
func ahead(x, y []float32) bool {
	d := Address(y) - Address(x)
	return d != 0 && d < uintptr(4*len(x))
}

func overlaps[X, Y any](x []X, y []Y) bool {
	return len(x) > 0 && len(y) > 0 && (Address(y)-Address(x) < uintptr(len(x))*unsafe.Sizeof(x[0]) ||
		Address(x)-Address(y) < uintptr(len(y))*unsafe.Sizeof(y[0]))
}

func Address[X any](x []X) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(x))) }
