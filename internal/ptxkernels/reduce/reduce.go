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

// What kernels of sums do with the sum of a row.
const (
	plain = iota
	divided
	rooted
)

var (
	sumKernel = sums("sum", "elements", 1, func(x []scalar.Float) scalar.Float { return x[0] })
	absKernel = sums("sum_abs", "absolute values", 1, func(x []scalar.Float) scalar.Float { return x[0].Abs() })
	// Squares and products are rounded before they are added.
	squareKernel  = sums("sum_squares", "squares", 1, func(x []scalar.Float) scalar.Float { return x[0].Mul(x[0]) })
	productKernel = sums("sum_products", "products of operands", 2, func(x []scalar.Float) scalar.Float { return x[0].Mul(x[1]) })

	largestKernel    = reduceKernel("largest", "largest of sign·x, times sign; NaN if any is.", signed, largest)
	largestAbsKernel = reduceKernel("largest_abs", "largest |x|; NaN if any is.", bare, largestAbs)
	placeKernel      = reduceKernel("place", "place of the first of the largest sign·x, or of the first NaN.", signed, place)
)

// Parameters of kernels of one operand: with nothing else, or with a sign.
func bare() reduceParams { return reduceParams{Operands: make([]kit.Buffer, 1)} }
func signed() reduceParams {
	return reduceParams{Sign: make([]float32, 1), Operands: make([]kit.Buffer, 1)}
}

func sums(name, what string, operands int, value func(x []scalar.Float) scalar.Float) *kit.Kernel {
	params := func() reduceParams {
		return reduceParams{Finish: make([]int, 1), Count: make([]float32, 1), Operands: make([]kit.Buffer, operands)}
	}
	return reduceKernel(name, "sums of "+what+".", params, func(t threadgroup.Group, at *reduceParams, epilogue finish) reduction[float32] {
		k := t.K
		finish, count := t.U32(&at.Finish[0]), kit.Read(t.Params, &at.Count[0])
		out := kit.Ptr[float32](t.Params, &at.Out)
		return reduction[float32]{
			Accumulator: threadgroup.Sums[float32](1), neutral: ptx.F32(0),
			value: func(x []scalar.Float, _ func() ptx.Reg[uint32]) []scalar.Float { return []scalar.Float{value(x)} },
			store: func(acc []scalar.Float) {
				y := ptx.VarOf(k, acc[0])
				k.If(finish.Eq(divided), func() { y.Set(y.Get().Div(count)) })
				k.If(finish.Eq(rooted), func() { y.Set(y.Get().Sqrt()) })
				out.At(t.Row).Store(epilogue(y.Get()))
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

func largest(t threadgroup.Group, at *reduceParams, epilogue finish) reduction[int32] {
	sign := kit.Read(t.Params, &at.Sign[0])
	out := kit.Ptr[float32](t.Params, &at.Out)
	return reduction[int32]{
		Accumulator: larger(lowestKey), neutral: sign.Mul(math.Inf(-1)),
		value: func(x []scalar.Float, _ func() ptx.Reg[uint32]) []ptx.Reg[int32] {
			return []ptx.Reg[int32]{orderKey(x[0], sign)}
		},
		store: func(acc []ptx.Reg[int32]) {
			out.At(t.Row).Store(epilogue(ptx.Bitcast[float32](ordered(acc[0])).Mul(sign)))
		},
	}
}

// largestAbs compares absolute values as integers, which puts NaN above all.
func largestAbs(t threadgroup.Group, at *reduceParams, epilogue finish) reduction[int32] {
	out := kit.Ptr[float32](t.Params, &at.Out)
	return reduction[int32]{
		Accumulator: larger(0), neutral: ptx.F32(0),
		value: func(x []scalar.Float, _ func() ptx.Reg[uint32]) []ptx.Reg[int32] {
			return []ptx.Reg[int32]{ptx.Bitcast[int32](x[0]).And(math.MaxInt32)}
		},
		store: func(acc []ptx.Reg[int32]) {
			out.At(t.Row).Store(epilogue(ptx.Bitcast[float32](acc[0])))
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

func place(t threadgroup.Group, at *reduceParams, _ finish) reduction[int32] {
	sign := kit.Read(t.Params, &at.Sign[0])
	out := kit.Ptr[int32](t.Params, &at.Out)
	return reduction[int32]{
		Accumulator: earlier, neutral: sign.Mul(math.Inf(-1)),
		value: func(x []scalar.Float, i func() ptx.Reg[uint32]) []ptx.Reg[int32] {
			return []ptx.Reg[int32]{orderKey(x[0], sign), ptx.Bitcast[int32](i())}
		},
		follow: func(a, b []ptx.Reg[int32]) []ptx.Reg[int32] { return choose(b[0].Gt(a[0]), b, a) },
		store:  func(acc []ptx.Reg[int32]) { out.At(t.Row).Store(acc[1]) },
	}
}

// reducing says how an entry reduces rows: by a kernel whose partial results take so many words, and what is told to it.
type reducing struct {
	*kit.Kernel
	words  int
	finish int
	sign   float32
}

// Reductions are the kernels of each entry.
var Reductions = map[*program.Entry]reducing{
	catalogue.Sum:        {sumKernel, 1, plain, 0},
	catalogue.Mean:       {sumKernel, 1, divided, 0},
	catalogue.NormL1:     {absKernel, 1, plain, 0},
	catalogue.NormL2:     {squareKernel, 1, rooted, 0},
	catalogue.SumSquares: {squareKernel, 1, plain, 0},
	catalogue.DotProduct: {productKernel, 1, plain, 0},
	catalogue.Max:        {largestKernel, 1, plain, 1},
	catalogue.Min:        {largestKernel, 1, plain, -1},
	catalogue.NormLInf:   {largestAbsKernel, 1, plain, 0},
	catalogue.ArgMax:     {placeKernel, 2, plain, 1},
	catalogue.ArgMin:     {placeKernel, 2, plain, -1},
	catalogue.Inspect:    {inspectKernel, 4, plain, 0},
}

// params are those for rows of cols elements.
func (r reducing) params(head stageParams, cols int, out kit.Buffer, operands ...kit.Buffer) reduceParams {
	p := reduceParams{stageParams: head, Out: out, Operands: operands}
	of := r.Params.(reduceParams)
	if len(of.Finish) > 0 {
		p.Finish, p.Count = []int{r.finish}, []float32{float32(cols)}
	}
	if len(of.Sign) > 0 {
		p.Sign = []float32{r.sign}
	}
	return p
}

// Reduce lowers a reduction of rows, in parts where rows are few or long.
func Reduce(s *kit.Step) error {
	r := Reductions[s.Entry]
	rows, cols := program.ReduceRows(s.Operands[0].Shape, s.Attr.Options.(compute.Axis))
	h, err := s.Prologue(rows, cols)
	if err != nil {
		return err
	}
	e, err := s.Epilogue(1, rows, 1)
	if err != nil {
		return err
	}
	w := taskLanes(s, threadgroup.Split(s, rows, cols, taskBlocks, longestTask), h)
	var operands []kit.Buffer
	for i := range s.Operands {
		operands = append(operands, kit.In(i))
	}
	launchStages(s, h, e, r.Kernel, w, r.words, true, func(head stageParams) any { return r.params(head, cols, kit.Out, operands...) })
	return nil
}

const taskBlocks = 8 // per multiprocessor

// taskLanes is w with what kernels of family reduce read by.
func taskLanes(s *kit.Step, w threadgroup.Partition, h *kit.Prologue) threadgroup.Partition {
	const (
		vectorLanes = 8  // that the kernels need at least to read vectors
		vectorCols  = 64 // elements for which that is worth while
	)
	if w.Vector = min(w.Chunk, w.Cols) >= vectorCols && !h.Shifted(w.Cols); w.Vector {
		w.Lanes = threadgroup.Lanes(s, w, vectorLanes, 4, threadgroup.Batch)
	} else {
		w.Lanes = threadgroup.Lanes(s, w, 1, 1, threadgroup.Batch)
	}
	return w
}
