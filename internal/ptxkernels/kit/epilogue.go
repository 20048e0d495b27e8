package kit

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
)

// Epilogue is an epilogue as kernels need it: what becomes of each result before it stays in memory. No operand of it may
// lie where the result does: that is written before it is final.
type Epilogue struct {
	scalar.Body // its first operand is the result
	Text        string
	values      []float32 // of the scalars
	// strides of the further operands from product to product, from row to row and from column to column of the result.
	Strides [][3]int
	swapped bool // rows of the kernel are columns of the result
}

const (
	// Registers are short where results are written: sums of other results may still be in them. These are the most with which no
	// kernel spills any.
	EpilogueOperands  = 2 // beside the result
	EpilogueRegisters = 4 // values at a time
)

// Epilogue is the step's epilogue after so many products of rows × cols; nil if it has none.
func (s *Step) Epilogue(products, rows, cols int) (*Epilogue, error) {
	x := &s.Parts.Epilogue
	if x.None() {
		return nil, nil
	}
	f, err := scalar.BodyOf(x)
	if err != nil {
		return nil, err
	}
	if x.Inputs > 1+EpilogueOperands || scalar.Pressure(x) > EpilogueRegisters {
		return nil, fmt.Errorf("epilogue %v takes %d operands and %d registers, at most %d and %d are possible: %w", x, x.Inputs,
			scalar.Pressure(x), 1+EpilogueOperands, EpilogueRegisters, compute.ErrUnsupported)
	}
	t := &Epilogue{Body: f, Text: x.String(), values: s.Parts.EpilogueScalars}
	for _, in := range s.Parts.EpilogueIn {
		strides, ok := regroup(s.Result.Shape, program.BroadcastStrides(in.Shape, s.Result.Shape), []int{products, rows, cols})
		if !ok {
			return nil, fmt.Errorf("epilogue %v: %v is repeated along other axes than those of %d products of %d×%d: %w", x, in,
				products, rows, cols, compute.ErrUnsupported)
		}
		t.Strides = append(t.Strides, [3]int(strides))
	}
	return t, nil
}

// regroup is strides along axes of those sizes, which are the shape's joined; there may be none.
func regroup(shape, strides, sizes []int) (joined []int, ok bool) {
	joined = make([]int, len(sizes))
	d := len(shape) - 1
	for g := len(sizes) - 1; g >= 0; g-- {
		for size := 1; size < sizes[g]; d-- {
			switch {
			case d < 0:
				return nil, false
			case shape[d] == 1:
				continue
			case size == 1:
				joined[g] = strides[d]
			case strides[d] != joined[g]*size:
				return nil, false
			}
			if size *= shape[d]; size > sizes[g] {
				return nil, false
			}
		}
	}
	return joined, true
}

// EpilogueWords is the words of an operand in the array of a kernel: its strides, and whether it may be read by fours.
const EpilogueWords = 4

// LaunchEpilogue is Launch for a kernel of products that takes an epilogue. With swapped, its rows are columns of the result.
func (s *Step) LaunchEpilogue(t *Epilogue, swapped bool, k *Kernel, grid [3]int, params any) {
	if t != nil && swapped {
		turned := *t
		turned.swapped = true
		t = &turned
	}
	s.LaunchWith(nil, t, k, grid, params)
}

// arguments are those after the kernel's own.
func (t *Epilogue) arguments() (all []argument) {
	add := func(v any) { all = append(all, argument{value: v}) }
	var sizes []uint32
	for _, st := range t.Strides {
		wide := st[2] == 1 && st[0]%4 == 0 && st[1]%4 == 0
		if t.swapped {
			st[1], st[2] = st[2], st[1]
		}
		sizes = append(sizes, uint32(st[0]), uint32(st[1]), uint32(st[2]), FlagIf(1, wide && !t.swapped))
	}
	if len(sizes) > 0 {
		add(sizes)
	}
	for i := range t.Strides {
		add(Buffer{Role: lowering.OfEpilogue, Index: i})
	}
	for _, v := range t.values {
		add(v)
	}
	return all
}
