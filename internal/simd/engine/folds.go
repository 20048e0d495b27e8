package engine

import (
	"math"

	"github.com/wavelane/wavelane/internal/simd/kernels"
	"github.com/wavelane/wavelane/internal/simd/pool"
)

// Fold computes a P from all elements of one slice or two of one length: from each block, then from the blocks in order.
// Neither the number of threads nor the number of elements shows in the error of a sum: blocks are short and added in float64.
// P is free of pointers.
type Fold[P any] struct {
	Block func(a, b []float32, at int) P // at is the index of the block's first element; b is nil unless there are two slices
	Merge func(x, y P) P                 // x comes before y
	Cost  Cost
	// Times is how many times BlockLen a block has with AVX2 and AVX-512, 0 for once: twice if the kernel has eight accumulators, where
	// BlockLen counts on four, and more often if it rounds nothing.
	Times int
	tasks FreeList[folding[P]]
}

// BlockLen is the number of elements of a block. A kernel that adds up float32 numbers has an error of at most 2⁻²⁷ of the sum
// of the absolute values for each addition to a lane: 128 of them, and 256 of exponentials, which have half the lanes, keep within
// the catalogue's tolerance.
func BlockLen() int {
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

// size is the number of elements of a block. At the end of one, the processor has guessed wrong and begins to ask for lines anew, which
// costs 3 % of a block in L2.
func (f *Fold[P]) size() int {
	if t := kernels.Active(); f.Times > 0 && (t == kernels.AVX2 || t == kernels.AVX512) {
		return f.Times * BlockLen()
	}
	return BlockLen()
}

// cut is the elements lo to hi of a slice; a nil one stays nil.
func cut(x []float32, lo, hi int) []float32 {
	if x == nil {
		return nil
	}
	return x[lo:hi]
}

// Of folds slices, on several threads if they are long.
func (f *Fold[P]) Of(a, b []float32) P {
	size := f.size()
	if len(a) <= size {
		return f.Block(a, b, 0)
	}
	if n := f.Cost.threads(len(a)); n > 1 {
		return f.spread(a, b, size, n)
	}
	p := f.Block(a[:size], cut(b, 0, size), 0)
	for lo := size; lo < len(a); lo += size {
		hi := min(lo+size, len(a))
		p = f.Merge(p, f.Block(a[lo:hi], cut(b, lo, hi), lo))
	}
	return p
}

// folding is a fold on several threads. A part of it is a run of blocks.
type folding[P any] struct {
	f      *Fold[P]
	a, b   []float32
	size   int // of a block
	run    int // blocks
	blocks []P
}

func (t *folding[P]) Do(part int) {
	for i := part * t.run; i < min((part+1)*t.run, len(t.blocks)); i++ {
		lo := i * t.size
		hi := min(lo+t.size, len(t.a))
		t.blocks[i] = t.f.Block(t.a[lo:hi], cut(t.b, lo, hi), lo)
	}
}

func (f *Fold[P]) spread(a, b []float32, size, threads int) P {
	t := f.tasks.Take()
	defer f.tasks.Give(t)
	n := CeilDiv(len(a), size)
	t.f, t.a, t.b, t.size, t.run, t.blocks = f, a, b, size, max(1, f.Cost.part()/size), Resized(t.blocks, n)
	pool.Shared().EachN(t, CeilDiv(n, t.run), threads)
	t.a, t.b = nil, nil
	return f.Merged(t.blocks)
}

func Resized[P any](s []P, n int) []P {
	if cap(s) < n {
		return make([]P, n)
	}
	return s[:n]
}

func (f *Fold[P]) Merged(blocks []P) P {
	p := blocks[0]
	for _, q := range blocks[1:] {
		p = f.Merge(p, q)
	}
	return p
}

// kahanLanes pools memory for kernels whose arguments escape to the heap.
var kahanLanes FreeList[[2 * kernels.Lanes]float32]

func Add64(x, y float64) float64 { return x + y }

var (
	SumFold = Fold[float64]{Cost: Cost{0.4, 0.04}, Times: 2, Merge: Add64,
		Block: func(a, _ []float32, _ int) float64 { return float64(kernels.Sum(a)) }}
	SumAbsFold = Fold[float64]{Cost: Cost{0.5, 0.04}, Times: 2, Merge: Add64,
		Block: func(a, _ []float32, _ int) float64 { return float64(kernels.SumAbs(a)) }}
	SquaresFold = Fold[float64]{Cost: Cost{0.6, 0.04}, Times: 2, Merge: Add64,
		Block: func(a, _ []float32, _ int) float64 { return float64(kernels.SumSquares(a)) }}
	DotFold = Fold[float64]{Cost: Cost{0.6, 0.075}, Times: 2, Merge: Add64,
		Block: func(a, b []float32, _ int) float64 { return float64(kernels.Dot(a, b)) }}
	KahanFold = Fold[float64]{Cost: Cost{1.2, 0.11}, Merge: Add64,
		Block: func(a, _ []float32, _ int) float64 {
			lanes := kahanLanes.Take()
			defer kahanLanes.Give(lanes)
			clear(lanes[:])
			kernels.SumKahan(lanes, a)
			return kernels.KahanTotal(lanes)
		}}
	MaxAbsFold = Fold[float32]{Cost: Cost{0.6, 0.05}, Times: 16, Merge: func(x, y float32) float32 { return max(x, y) },
		Block: func(a, _ []float32, _ int) float32 { return kernels.MaxAbs(a) }}
	LargestFold = Fold[float32]{Cost: Cost{0.7, 0.05}, Times: 16, Merge: func(x, y float32) float32 { return max(x, y) },
		Block: func(a, _ []float32, _ int) float32 { return kernels.Max(a) }}
	SmallestFold = Fold[float32]{Cost: Cost{0.7, 0.05}, Times: 16, Merge: func(x, y float32) float32 { return min(x, y) },
		Block: func(a, _ []float32, _ int) float32 { return kernels.Min(a) }}
)

// First is an extreme value and the index where the first block of that extreme begins.
type First struct {
	Value float32
	At    int
}

// MaxFold and MinFold are LargestFold and SmallestFold with the block that an index is looked for in, which should be short. The first
// NaN stays, as does the first of equals.
var (
	MaxFold = Fold[First]{Cost: Cost{0.7, 0.05},
		Block: func(a, _ []float32, at int) First { return First{kernels.Max(a), at} },
		Merge: func(x, y First) First {
			if y.Value > x.Value || y.Value != y.Value && x.Value == x.Value {
				return y
			}
			return x
		}}
	MinFold = Fold[First]{Cost: Cost{0.7, 0.05},
		Block: func(a, _ []float32, at int) First { return First{kernels.Min(a), at} },
		Merge: func(x, y First) First {
			if y.Value < x.Value || y.Value != y.Value && x.Value == x.Value {
				return y
			}
			return x
		}}
)

// Index is the position of the value in a, which holds it.
func (p First) Index(a []float32) int { return p.At + p.Find(a[p.At:]) }

// Find is index in the elements from the block on.
func (p First) Find(a []float32) int {
	if p.Value != p.Value {
		return kernels.FindNaN(a)
	}
	return kernels.Find(a, p.Value)
}

// Norm2 makes squares beyond float32's range infinite, as the catalogue does.
func Norm2(squares float64) float32 { return float32(math.Sqrt(float64(float32(squares)))) }
