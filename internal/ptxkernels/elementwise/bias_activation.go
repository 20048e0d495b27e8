package elementwise

import (
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// BiasActivation lowers a bias for each column followed by an activation.
func BiasActivation(s *kit.Step) error {
	rows, cols := program.RowsCols(s.Operands[0].Shape)
	kernel, unit := biasActivation, 1
	if cols%4 == 0 {
		kernel, unit = biasActivation4, 4
	}
	total := rows * cols / unit
	s.Launch(kernel, s.GridStride(total, elementwiseBlock), biasParams{total, int(kit.ActivationCode(s.Attr)), scalar.Divide(cols / unit),
		kit.In(0), kit.In(1), kit.Out})
	return nil
}

// biasParams are those of bias_activation.
type biasParams struct {
	Total, Activation int           // Total is units
	Cols              scalar.Divide // units of a row
	X, Bias, Y        kit.Buffer
}

var biasActivation, biasActivation4 = biasActivationKernel("bias_activation", 1), biasActivationKernel("bias_activation_4", 4)

func biasActivationKernel(name string, unit int) *kit.Kernel {
	return kit.Define(kit.Kernel{Family: "binary", Name: name, Block: [3]int{elementwiseBlock, 1, 1},
		Doc: "y = act(x + bias) by units, bias being as long as a row."},
		func(k *ptx.Kernel, p *kit.Params, of *biasParams) {
			align := ptx.Align(4 * unit)
			total, act, cols := p.U32(&of.Total), p.U32(&of.Activation), p.Divisor(&of.Cols)
			x, bias, y := kit.Ptr[float32](p, &of.X, align), kit.Ptr[float32](p, &of.Bias, align), kit.Ptr[float32](p, &of.Y, align)
			ptx.For(k, k.GlobalID(ptx.X), total, k.Nctaid(ptx.X).Mul(elementwiseBlock), func(i ptx.Reg[uint32]) {
				_, col := cols.Split(k, i)
				v, b := loadFloats(k, x, i, unit), loadFloats(k, bias, col, unit)
				for j := range v {
					v[j] = v[j].Add(b[j])
				}
				storeFloats(k, y, i, scalar.Activate(k, act, v))
			}, ptx.NoUnroll())
		})
}

// loadFloats and storeFloats access unit i, of one element or of four.
func loadFloats(k *ptx.Kernel, p ptx.Ptr[ptx.Global, float32], i ptx.Reg[uint32], unit int) []scalar.Float {
	if unit == 1 {
		return []scalar.Float{p.At(i).Load()}
	}
	v := p.Bytes(i.MulWide(16)).Load4()
	return v[:]
}

func storeFloats(k *ptx.Kernel, p ptx.Ptr[ptx.Global, float32], i ptx.Reg[uint32], v []scalar.Float) {
	if len(v) == 1 {
		p.At(i).Store(v[0])
		return
	}
	p.Bytes(i.MulWide(16)).Store4([4]scalar.Float(v))
}
