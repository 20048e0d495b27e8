package reduce

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

// What kernels of sums do with the sum of a task.
const (
	plain uint32 = iota
	divided
	rooted
)

var (
	sumKernel = sums("sum", "elements", 1, func(x []scalar.Float) scalar.Float { return x[0] })
	absKernel = sums("sum_abs", "absolute values", 1, func(x []scalar.Float) scalar.Float { return x[0].Abs() })
	// Squares and products are rounded before they are added.
	squareKernel  = sums("sum_squares", "squares", 1, func(x []scalar.Float) scalar.Float { return x[0].Mul(x[0]) })
	productKernel = sums("sum_products", "products of operands", 2, func(x []scalar.Float) scalar.Float { return x[0].Mul(x[1]) })

	largestKernel = reduceKernel("largest", "largest of sign·x, times sign; NaN if any is. Parameters: work; f32 sign, "+
		"1 or -1; f32* out, one per task; f32* x.", 1, largest)
	largestAbsKernel = reduceKernel("largest_abs", "largest |x|; NaN if any is. Parameters: work; f32* out, one per task; "+
		"f32* x.", 1, largestAbs)
	placeKernel = reduceKernel("place", "place of the first of the largest sign·x, or of the first NaN. Parameters: work; "+
		"f32 sign, 1 or -1; u32 partial; i32* out: one place per task or, if partial is not 0, pairs of order key and place; "+
		"f32* x.", 1, place)
	placeJoinKernel = joinKernel("place_join", "place of the first of the largest. Parameters: work; i32* out, one place per task; "+
		"i32* pairs of order key and place.", earlier, func(t threadgroup.Group, out ptx.Ptr[ptx.Global, int32], acc []ptx.Reg[int32]) {
		out.At(t.Task).Store(acc[1])
	})
)

func sums(name, what string, operands int, value func(x []scalar.Float) scalar.Float) *kit.Kernel {
	doc := "sums of " + what + ". Parameters: work; u32 finish: 0 nothing, 1 divides by count, 2 takes the root; f32 count; " +
		"f32* out, one per task; the operands."
	return reduceKernel(name, doc, operands, func(t threadgroup.Group, epilogue finish) reduction[float32] {
		k := t.K
		finish, count := ptx.Param[uint32](k, "finish"), ptx.Param[float32](k, "count")
		out := ptx.PointerParam[float32](k, "out")
		return reduction[float32]{
			Accumulator: threadgroup.Sums[float32](1), neutral: ptx.F32(0),
			value: func(x []scalar.Float, _ func() ptx.Reg[uint32]) []scalar.Float { return []scalar.Float{value(x)} },
			store: func(acc []scalar.Float) {
				y := ptx.VarOf(k, acc[0])
				k.If(finish.Eq(divided), func() { y.Set(y.Get().Div(count)) })
				k.If(finish.Eq(rooted), func() { y.Set(y.Get().Sqrt()) })
				out.At(t.Task).Store(epilogue(y.Get()))
			},
		}
	})
}

const lowestKey = math.MinInt32 // below the key of every float

// orderKey maps sign·x to integers in the same order, NaN above all. Zeros have one bit pattern, and so has NaN: arithmetic makes
// +0 of −0 + 0, and its NaN is 0x7fffffff.
func orderKey(x, sign scalar.Float) ptx.Reg[int32] {
	return ordered(ptx.Bitcast[int32](x.Fma(sign, 0)))
}

// ordered makes an order key of a number's bits, and the bits of the key.
func ordered(b ptx.Reg[int32]) ptx.Reg[int32] {
	return b.Xor(b.Shr(31).And(math.MaxInt32))
}

// larger accumulates the largest number.
func larger(identity int32) threadgroup.Accumulator[int32] {
	return threadgroup.Accumulator[int32]{Identity: []int32{identity}, Combine: func(a, b []ptx.Reg[int32]) []ptx.Reg[int32] {
		return []ptx.Reg[int32]{a[0].Max(b[0])}
	}}
}

func largest(t threadgroup.Group, epilogue finish) reduction[int32] {
	sign := ptx.Param[float32](t.K, "sign")
	out := ptx.PointerParam[float32](t.K, "out")
	return reduction[int32]{
		Accumulator: larger(lowestKey), neutral: sign.Mul(math.Inf(-1)),
		value: func(x []scalar.Float, _ func() ptx.Reg[uint32]) []ptx.Reg[int32] {
			return []ptx.Reg[int32]{orderKey(x[0], sign)}
		},
		store: func(acc []ptx.Reg[int32]) {
			out.At(t.Task).Store(epilogue(ptx.Bitcast[float32](ordered(acc[0])).Mul(sign)))
		},
	}
}

// largestAbs compares absolute values as integers, which puts NaN above all.
func largestAbs(t threadgroup.Group, epilogue finish) reduction[int32] {
	out := ptx.PointerParam[float32](t.K, "out")
	return reduction[int32]{
		Accumulator: larger(0), neutral: ptx.F32(0),
		value: func(x []scalar.Float, _ func() ptx.Reg[uint32]) []ptx.Reg[int32] {
			return []ptx.Reg[int32]{ptx.Bitcast[int32](x[0]).And(math.MaxInt32)}
		},
		store: func(acc []ptx.Reg[int32]) {
			out.At(t.Task).Store(epilogue(ptx.Bitcast[float32](acc[0])))
		},
	}
}

// earlier accumulates pairs of key and place: the larger key wins, among equals the lower place.
var earlier = threadgroup.Accumulator[int32]{Identity: []int32{lowestKey, math.MaxInt32},
	Combine: func(a, b []ptx.Reg[int32]) []ptx.Reg[int32] {
		tie := b[1].SetPWith(ptx.LT, a[1], ptx.OpAnd, b[0].Eq(a[0]))
		return choose(b[0].SetPWith(ptx.GT, a[0], ptx.OpOr, tie), b, a)
	}}

func choose(p ptx.Reg[bool], a, b []ptx.Reg[int32]) []ptx.Reg[int32] {
	return []ptx.Reg[int32]{ptx.Select(p, a[0], b[0]), ptx.Select(p, a[1], b[1])}
}

func place(t threadgroup.Group, _ finish) reduction[int32] {
	k := t.K
	sign, partial := ptx.Param[float32](k, "sign"), ptx.Param[uint32](k, "partial")
	out := ptx.PointerParam[int32](k, "out")
	return reduction[int32]{
		Accumulator: earlier, neutral: sign.Mul(math.Inf(-1)),
		value: func(x []scalar.Float, i func() ptx.Reg[uint32]) []ptx.Reg[int32] {
			return []ptx.Reg[int32]{orderKey(x[0], sign), ptx.Bitcast[int32](i())}
		},
		follow: func(a, b []ptx.Reg[int32]) []ptx.Reg[int32] { return choose(b[0].Gt(a[0]), b, a) },
		store: func(acc []ptx.Reg[int32]) {
			k.If(partial.Ne(0), func() {
				out.Bytes(t.Task.MulWide(8)).Store2([2]ptx.Reg[int32](acc))
			}, func() {
				out.At(t.Task).Store(acc[1])
			})
		},
	}
}

// reducing says how an entry reduces rows: by kernel or, where rows have parts, by join from the parts' partial results of so
// many bytes, which kernel left.
type reducing struct {
	Kernel, Join   *kit.Kernel
	bytes          int
	args, joinArgs arguments
}

// arguments are those between work and out of a kernel: of the last one or of one for partial results, for rows of count
// elements.
type arguments func(last bool, count int) []any

func none(bool, int) []any { return nil }

func finishing(finish uint32) arguments {
	return func(last bool, count int) []any {
		if last {
			return []any{finish, float32(count)}
		}
		return []any{plain, float32(count)}
	}
}

func summing(k *kit.Kernel, finish uint32) reducing {
	return reducing{k, sumKernel, 4, finishing(finish), finishing(finish)}
}

func extreme(sign float32) reducing {
	args := func(bool, int) []any { return []any{sign} }
	return reducing{largestKernel, largestKernel, 4, args, args}
}

func placing(sign float32) reducing {
	return reducing{placeKernel, placeJoinKernel, 8, func(last bool, _ int) []any {
		if last {
			return []any{sign, uint32(0)}
		}
		return []any{sign, uint32(1)}
	}, none}
}

// Reductions are the kernels of each entry.
var Reductions = map[*program.Entry]reducing{
	catalogue.Sum:        summing(sumKernel, plain),
	catalogue.Mean:       summing(sumKernel, divided),
	catalogue.NormL1:     summing(absKernel, plain),
	catalogue.NormL2:     summing(squareKernel, rooted),
	catalogue.SumSquares: summing(squareKernel, plain),
	catalogue.DotProduct: summing(productKernel, plain),
	catalogue.Max:        extreme(1),
	catalogue.Min:        extreme(-1),
	catalogue.NormLInf:   {largestAbsKernel, largestAbsKernel, 4, none, none},
	catalogue.ArgMax:     placing(1),
	catalogue.ArgMin:     placing(-1),
	catalogue.Inspect:    {inspectKernel, inspectJoinKernel, 16, none, none},
}

// Reduce lowers a reduction of rows, in parts where rows are few or long.
func Reduce(s *kit.Step) error {
	r := Reductions[s.Entry]
	rows, cols := program.ReduceRows(s.Operands[0].Shape, s.Attr.Options.(compute.Axis))
	h, err := s.Prologue(rows, cols)
	if err != nil {
		return err
	}
	t, err := s.Epilogue(1, rows, 1)
	if err != nil {
		return err
	}
	const blocks = 8 // per multiprocessor
	w := threadgroup.Split(s, rows, cols, blocks, longestTask)
	operands := s.Tensors()[:len(s.Operands)]
	if w.Parts == 1 {
		reduceTasks(s, h, t, r.Kernel, w, r.args(true, cols), kit.Out, operands)
		return nil
	}
	partial := s.NewScratch(w.Tasks() * r.bytes)
	reduceTasks(s, h, nil, r.Kernel, w, r.args(false, cols), partial, operands)
	w = threadgroup.Partition{Rows: rows, Cols: w.Parts, Parts: 1, Chunk: w.Parts}
	reduceTasks(s, nil, t, r.Join, w, r.joinArgs(true, cols), kit.Out, []any{partial})
	return nil
}

// reduceTasks launches a kernel of family reduce.
func reduceTasks(s *kit.Step, h *kit.Prologue, t *kit.Epilogue, k *kit.Kernel, w threadgroup.Partition, args []any, out kit.Buffer, operands []any) {
	const (
		vectorLanes = 8  // that the kernels need at least to read vectors
		vectorCols  = 64 // elements for which that is worth while
	)
	if w.Vector = min(w.Chunk, w.Cols) >= vectorCols && !h.Shifted(w.Cols); w.Vector {
		w.Lanes = threadgroup.Lanes(s, w, vectorLanes, 4, threadgroup.Batch)
	} else {
		w.Lanes = threadgroup.Lanes(s, w, 1, 1, threadgroup.Batch)
	}
	arguments := append([]any{w.Args()}, args...)
	arguments = append(append(arguments, out), operands...)
	s.LaunchWith(h, t, k, w.Grid(), arguments...)
}
