package host

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
)

// Unique returns the different elements, or the different parts along an axis if that is not −1, in order or as they are found; for each the
// index where it is first; for each element which one it is; and how often each is there.
func Unique(t *Tensor, axis int, sorted bool) (y, first, inverse, counts *Tensor) {
	flat := t
	if axis < 0 {
		axis = 0
		flat = t.Reshaped(t.Len())
	}
	n := flat.Shape[axis]
	parts := rowsOfAxis(flat.Shape, axis)
	element := flat.order()
	compare := func(a, b int) int {
		for k := range parts[a] {
			if c := element(parts[a][k], parts[b][k]); c != 0 {
				return c
			}
		}
		return 0
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, compare)
	var groups [][]int
	for i, p := range order {
		if i == 0 || compare(order[i-1], p) != 0 {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], p)
	}
	if !sorted {
		slices.SortFunc(groups, func(a, b []int) int { return a[0] - b[0] })
	}
	f, inv, cnt := make([]int64, len(groups)), make([]int64, n), make([]int64, len(groups))
	for g, members := range groups {
		f[g], cnt[g] = int64(members[0]), int64(len(members))
		for _, m := range members {
			inv[m] = int64(g)
		}
	}
	index, _ := GatherIndex(flat.Shape, axis, OfInts(f, len(f))) // indices are those of parts
	return flat.Pick(index), OfInts(f, len(f)), OfInts(inv, n), OfInts(cnt, len(cnt))
}

// rowsOfAxis lists the elements of each part along an axis.
func rowsOfAxis(shape []int, axis int) [][]int {
	out := make([][]int, shape[axis])
	inner := Len(shape[axis+1:])
	for i := range Len(shape) {
		k := i / inner % shape[axis]
		out[k] = append(out[k], i)
	}
	return out
}

// BitCast reads the bits of elements as another type of the same size.
func BitCast(t *Tensor, to Kind) (*Tensor, error) {
	if !to.Known() || to.Bits() != t.Kind.Bits() || to == String || t.Kind == String {
		return nil, fmt.Errorf("bits of %v as %v: %w", t.Kind, to, compute.ErrDType)
	}
	words := make([]uint64, t.Len())
	switch s := t.Data.(type) {
	case []float32:
		for i, x := range s {
			words[i] = uint64(math.Float32bits(x))
		}
	case []float64:
		for i, x := range s {
			words[i] = math.Float64bits(x)
		}
	case []compute.F16:
		for i, x := range s {
			words[i] = uint64(x)
		}
	case []compute.BF16:
		for i, x := range s {
			words[i] = uint64(x)
		}
	case []uint8:
		for i, x := range s {
			words[i] = uint64(x)
		}
	default:
		for i, x := range t.Ints() {
			words[i] = uint64(x)
		}
	}
	out := New(to, t.Shape...)
	switch s := out.Data.(type) {
	case []float32:
		for i := range s {
			s[i] = math.Float32frombits(uint32(words[i]))
		}
	case []float64:
		for i := range s {
			s[i] = math.Float64frombits(words[i])
		}
	case []compute.F16:
		for i := range s {
			s[i] = compute.F16(words[i])
		}
	case []compute.BF16:
		for i := range s {
			s[i] = compute.BF16(words[i])
		}
	case []uint8:
		for i := range s {
			s[i] = uint8(words[i]) & (1<<to.Bits() - 1)
		}
	default:
		n := make([]int64, len(words))
		for i, w := range words {
			n[i] = int64(w)
		}
		return FromInts(to, n, t.Shape...), nil
	}
	return out, nil
}
