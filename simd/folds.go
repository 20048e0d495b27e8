package simd

import (
	"math"

	"github.com/wavelane/wavelane/simd/internal/kernels"
	"github.com/wavelane/wavelane/simd/internal/pool"
)

// fold computes a P from all elements of one slice or two of one length: from each block, then from the blocks in order.
// Neither the number of threads nor the number of elements shows in the error of a sum: blocks are short and added in float64.
// P is free of pointers.
type fold[P any] struct {
	block func(a, b []float32, at int) P // at is the index of the block's first element; b is nil unless there are two slices
	merge func(x, y P) P                 // x comes before y
	cost  cost
	tasks freeList[folding[P]]
}

// blockLen is the number of elements of a block. A kernel that adds up float32 numbers has an error of at most 2⁻²⁷ of the sum
// of the absolute values for each addition to a lane: 128 of them, and 256 of exponentials, which have half the lanes, keep within
// the catalogue's tolerance.
func blockLen() int {
	const additions = 128
	switch kernels.Active() {
	case kernels.AVX512:
		return additions * 64
	case kernels.AVX2:
		return additions * 32
	case kernels.SSE, kernels.NEON, kernels.SIMD128:
		return additions * 16
	}
	return 8192 // sums in float64
}

// cut is the elements lo to hi of a slice; a nil one stays nil.
func cut(x []float32, lo, hi int) []float32 {
	if x == nil {
		return nil
	}
	return x[lo:hi]
}

// of folds slices, on several threads if they are long.
func (f *fold[P]) of(a, b []float32) P {
	size := blockLen()
	if len(a) <= size {
		return f.block(a, b, 0)
	}
	if n := f.cost.threads(len(a)); n > 1 {
		return f.spread(a, b, size, n)
	}
	p := f.block(a[:size], cut(b, 0, size), 0)
	for lo := size; lo < len(a); lo += size {
		hi := min(lo+size, len(a))
		p = f.merge(p, f.block(a[lo:hi], cut(b, lo, hi), lo))
	}
	return p
}

// folding is a fold on several threads. A part of it is a run of blocks.
type folding[P any] struct {
	f      *fold[P]
	a, b   []float32
	size   int // of a block
	run    int // blocks
	blocks []P
}

func (t *folding[P]) Do(part int) {
	for i := part * t.run; i < min((part+1)*t.run, len(t.blocks)); i++ {
		lo := i * t.size
		hi := min(lo+t.size, len(t.a))
		t.blocks[i] = t.f.block(t.a[lo:hi], cut(t.b, lo, hi), lo)
	}
}

func (f *fold[P]) spread(a, b []float32, size, threads int) P {
	t := f.tasks.take()
	defer f.tasks.give(t)
	n := ceilDiv(len(a), size)
	t.f, t.a, t.b, t.size, t.run, t.blocks = f, a, b, size, max(1, f.cost.part()/size), resized(t.blocks, n)
	pool.Shared().EachN(t, ceilDiv(n, t.run), threads)
	t.a, t.b = nil, nil
	return f.merged(t.blocks)
}

func resized[P any](s []P, n int) []P {
	if cap(s) < n {
		return make([]P, n)
	}
	return s[:n]
}

func (f *fold[P]) merged(blocks []P) P {
	p := blocks[0]
	for _, q := range blocks[1:] {
		p = f.merge(p, q)
	}
	return p
}

// kahanLanes are for kernels that do not let their memory lie on the stack.
var kahanLanes freeList[[2 * kernels.Lanes]float32]

func add64(x, y float64) float64 { return x + y }

var (
	sumFold = fold[float64]{cost: cost{0.4, 0.04}, merge: add64,
		block: func(a, _ []float32, _ int) float64 { return float64(kernels.Sum(a)) }}
	sumAbsFold = fold[float64]{cost: cost{0.5, 0.04}, merge: add64,
		block: func(a, _ []float32, _ int) float64 { return float64(kernels.SumAbs(a)) }}
	squaresFold = fold[float64]{cost: cost{0.6, 0.04}, merge: add64,
		block: func(a, _ []float32, _ int) float64 { return float64(kernels.SumSquares(a)) }}
	dotFold = fold[float64]{cost: cost{0.6, 0.075}, merge: add64,
		block: func(a, b []float32, _ int) float64 { return float64(kernels.Dot(a, b)) }}
	kahanFold = fold[float64]{cost: cost{1.2, 0.11}, merge: add64,
		block: func(a, _ []float32, _ int) float64 {
			lanes := kahanLanes.take()
			defer kahanLanes.give(lanes)
			clear(lanes[:])
			kernels.SumKahan(lanes, a)
			return kernels.KahanTotal(lanes)
		}}
	maxAbsFold = fold[float32]{cost: cost{0.6, 0.05}, merge: func(x, y float32) float32 { return max(x, y) },
		block: func(a, _ []float32, _ int) float32 { return kernels.MaxAbs(a) }}
)

// first is an extreme value and the index where the first block of that extreme begins.
type first struct {
	value float32
	at    int
}

// The first NaN stays, as does the first of equals.
var (
	maxFold = fold[first]{cost: cost{0.7, 0.05},
		block: func(a, _ []float32, at int) first { return first{kernels.Max(a), at} },
		merge: func(x, y first) first {
			if y.value > x.value || y.value != y.value && x.value == x.value {
				return y
			}
			return x
		}}
	minFold = fold[first]{cost: cost{0.7, 0.05},
		block: func(a, _ []float32, at int) first { return first{kernels.Min(a), at} },
		merge: func(x, y first) first {
			if y.value < x.value || y.value != y.value && x.value == x.value {
				return y
			}
			return x
		}}
)

// index is the position of the value in a, which holds it.
func (p first) index(a []float32) int { return p.at + p.find(a[p.at:]) }

// find is index in the elements from the block on.
func (p first) find(a []float32) int {
	if p.value != p.value {
		return kernels.FindNaN(a)
	}
	return kernels.Find(a, p.value)
}

// norm2 makes squares beyond float32's range infinite, as the catalogue does.
func norm2(squares float64) float32 { return float32(math.Sqrt(float64(float32(squares)))) }
