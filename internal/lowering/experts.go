package lowering

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// expertValues is how many weights of chosen matrices are values at a time, if that is at least one matrix.
const expertValues = 32 << 20

// Experts appends the code of catalogue.MatMulExperts: weights that are chosen are gathered, dequantised if they are packed, and multiplied,
// some matrices at a time.
func (s *Step[L]) Experts() error {
	o := s.Attr.Options.(compute.ExpertOptions)
	d, err := catalogue.ExpertShape(s.Operands, o)
	if err != nil {
		return err
	}
	most := max(1, expertValues/max(d.N*d.K, 1)) // matrices
	e := &expertCode[L]{Step: s, ExpertOptions: o, ExpertDims: d}
	if d.Used > 1 && most < d.Used { // a row of x at a time, with some of its matrices
		for row := range d.Rows() {
			for from := 0; from < d.Used; from += most {
				if err := e.products(row, 1, row*d.Used+from, min(most, d.Used-from)); err != nil {
					return err
				}
			}
		}
		return nil
	}
	rows := most / d.Used
	for row := 0; row < d.Rows(); row += rows {
		n := min(rows, d.Rows()-row)
		if err := e.products(row, n, row*d.Used, n*d.Used); err != nil {
			return err
		}
	}
	return nil
}

// expertCode is the code of products of rows with matrices that they choose. Memory is used again by each group of products.
type expertCode[L Launch[L]] struct {
	*Step[L]
	compute.ExpertOptions
	catalogue.ExpertDims
	memory map[string]Buffer
}

// scratch is memory that other groups use for the same; the first one needs most.
func (e *expertCode[L]) scratch(name string, t program.Type) Tensor {
	b, ok := e.memory[name]
	if !ok {
		if e.memory == nil {
			e.memory = map[string]Buffer{}
		}
		b = e.NewScratch(t.Bytes())
		e.memory[name] = b
	}
	return Tensor{b, t}
}

// part is a part of a buffer as memory of its own, so that it begins where kernels want it, or the whole buffer.
func (e *expertCode[L]) part(name string, of Buffer, t program.Type, from, whole int) Tensor {
	if t.Len() == whole {
		return Tensor{of, t}
	}
	x := e.scratch(name, t)
	e.Add(Action[L]{Copy: &Copy{From: Buffer{of.Role, of.Index, of.Offset + 4*from, t.Bytes()}, To: Buffer{x.Role, x.Index, x.Offset, t.Bytes()}}})
	return x
}

// products is those of rows of x with matrices from pair on, each row with as many.
func (e *expertCode[L]) products(row, rows, pair, pairs int) error {
	chosen := program.Type{DType: compute.Int32, Shape: []int{pairs}}
	ids := e.part("experts", Buffer{Role: Operand, Index: 2}, chosen, pair, e.Pairs)
	x := e.part("x", Buffer{Role: Operand}, program.F32(rows, 1, e.K), row*e.K, e.Rows()*e.K)
	in := e.OperandTensor(1)
	w := e.scratch("weights", program.Type{DType: in.DType, Shape: append([]int{pairs}, in.Shape[1:]...)})
	if err := e.Call(catalogue.Gather, program.Attr{Options: compute.GatherOptions{}}, []Buffer{w.Buffer}, in, ids); err != nil {
		return err
	}
	if e.Packed {
		packed := Tensor{w.Buffer, program.Type{DType: compute.Uint32, Shape: []int{pairs * e.N, in.Shape[2]}}}
		w = e.scratch("values", program.F32(pairs*e.N, e.K))
		err := e.Call(catalogue.Dequantize, program.Attr{Options: compute.DequantizeOptions{Format: e.Format}}, []Buffer{w.Buffer}, packed)
		if err != nil {
			return err
		}
	}
	w.Shape = []int{rows, pairs / rows * e.N, e.K}
	y, result := Buffer{Role: Result}, program.F32(rows, 1, pairs/rows*e.N)
	all := pairs == e.Pairs
	if !all {
		y = e.scratch("y", result).Buffer
	}
	if err := e.Call(catalogue.MatMul, program.Attr{Options: compute.MatMulOptions{TransB: true}}, []Buffer{y}, x, w); err != nil {
		return err
	}
	if !all {
		n := result.Bytes()
		e.Add(Action[L]{Copy: &Copy{From: Buffer{y.Role, y.Index, 0, n}, To: Buffer{Result, 0, 4 * pair * e.N, n}}})
	}
	return nil
}
