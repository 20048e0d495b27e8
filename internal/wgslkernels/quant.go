package wgslkernels

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/quant"
)

// Where values of weights are computed, it is as s·(q − offset) − m before they are multiplied, not by Σq·x and Σx: then Inf in x gives
// what it gives for dequantised weights, and a fused multiply-add is all it costs.

// blocks is what the template "quant_run" sees of a format. Positions are counted in vectors of 16 bytes from the beginning
// of a block.
type blocks struct {
	Format               string
	Long                 bool // 256 values, not 32
	Nibbles, Six         bool // which bits are where: Q4 and Q5; Q6_K
	Min                  bool // values are s·q − m, not s·(q − Offset)
	Offset               int
	Fours                int // of the first plane
	Quants, High, Scales int // positions in the first plane; a High of 0 with Long is none

	Wide    bool // all words of a run at once, not one
	Weights []string
}

// apart is the distance of the two runs that share words.
func (b *blocks) apart() int {
	switch {
	case !b.Long:
		return 1
	case b.Six:
		return 4
	}
	return 2
}

// blocksOf describes a format for kernels that bind weights under these names.
func blocksOf(f compute.BlockFormat, wide bool, weights ...string) *blocks {
	t := quant.Type(f)
	first := t.Planes()[0]
	b := &blocks{Format: f.String(), Long: t.BlockLen() == 256, Fours: first.Size / 16, Wide: wide, Weights: weights}
	place := func(offset int) int { return (offset - first.Offset) / 16 }
	switch f {
	case compute.Q4_0:
		b.Nibbles, b.Offset = true, 8
	case compute.Q4_1:
		b.Nibbles, b.Min = true, true
	case compute.Q5_0:
		b.Nibbles, b.High, b.Offset = true, 1, 16
	case compute.Q5_1:
		b.Nibbles, b.High, b.Min = true, 1, true
	case compute.Q8_0:
		// whose bytes are signed, and all values
	case compute.Q2_K:
		b.Min, b.Quants = true, place(quant.Q2_KQuants)
	case compute.Q3_K:
		b.Offset, b.Quants = 4, place(quant.Q3_KQuants)
	case compute.Q4_K:
		b.Nibbles, b.Min, b.Quants = true, true, place(quant.Q4_KQuants)
	case compute.Q5_K:
		b.Nibbles, b.Min, b.High, b.Quants = true, true, place(quant.Q5_KHigh), place(quant.Q5_KQuants)
	case compute.Q6_K:
		b.Six, b.Offset, b.High, b.Scales = true, 32, place(quant.Q6_KHigh), place(quant.Q6_KScales)
	}
	return b
}

// quantMatMulRowMajor is the code of [catalogue.QuantMatMulRowMajor].
func quantMatMulRowMajor(s *step) error {
	o := s.Attr.Options.(compute.QuantOptions)
	return s.timesQuantised(operand(0), o.Q8, quantProduct{[]quantised{{operand(1), s.Operands[1], o.Format}}, nil, result})
}

// quantMatMulColMajor is the code of [catalogue.QuantMatMulColMajor].
func quantMatMulColMajor(s *step) error {
	o := s.Attr.Options.(compute.QuantOptions)
	return s.quantisedTiles(operand(0), quantised{operand(1), s.Operands[1], o.Format}, nil, result, true)
}

// quantRMSNormMatVec is the code of [catalogue.QuantRMSNormMatVec].
func quantRMSNormMatVec(s *step) error {
	o := s.Attr.Options.(compute.QuantOptions)
	product := quantProduct{[]quantised{{operand(2), s.Operands[2], o.Format}}, nil, result}
	v := quantRows{form: "norm", q8: o.Q8, x: operand(0), gamma: operand(1), of: []quantProduct{product}}
	if done, err := s.quantRows(&v); done {
		return err
	}
	m, k := program.RowsCols(s.Operands[0].Shape)
	normed := s.NewTensor(program.F32(m, k))
	err := s.Call(catalogue.RMSNorm, program.Attr{Scalars: s.Attr.Scalars}, []Buffer{normed.Buffer}, tensor{Buffer: operand(0), Type: normed.Type}, s.OperandTensor(1))
	if err != nil {
		return err
	}
	return s.timesQuantised(normed.Buffer, o.Q8, product)
}

// quantGateUpSwiGLU is the code of [catalogue.QuantGateUpSwiGLU].
func quantGateUpSwiGLU(s *step) error {
	o := s.Attr.Options.(compute.QuantOptions)
	w := []quantised{{operand(1), s.Operands[1], o.Format}, {operand(2), s.Operands[2], o.Format}}
	v := quantRows{form: "gate", q8: o.Q8, x: operand(0), of: []quantProduct{{w, nil, result}}}
	if done, err := s.quantRows(&v); done {
		return err
	}
	gate, up := s.NewTensor(program.F32(s.Result.Len())), s.NewTensor(program.F32(s.Result.Len()))
	if err := s.timesQuantised(v.x, o.Q8, quantProduct{w[:1], nil, gate.Buffer}, quantProduct{w[1:], nil, up.Buffer}); err != nil {
		return err
	}
	return s.Call(catalogue.SwiGLU, program.Attr{}, []Buffer{result}, gate, up)
}

// quantQKV is the code of [catalogue.QuantQKV].
func quantQKV(s *step) error {
	var of []quantProduct
	for i, f := range catalogue.QKVFormats(s.Attr) {
		p := quantProduct{[]quantised{{operand(1 + i), s.Operands[1+i], f}}, nil, resultAt(i)}
		if len(s.Operands) == 7 {
			b := operand(4 + i)
			p.bias = &b
		}
		if s.Results[i].Len() > 0 {
			of = append(of, p)
		}
	}
	return s.timesQuantised(operand(0), s.Attr.Options.(compute.QuantQKVOptions).Q8, of...)
}

// quantised are packed weights.
type quantised struct {
	Buffer
	program.Type
	format compute.BlockFormat
}

func (w *quantised) rows() int     { return w.Shape[0] }
func (w *quantised) rowBytes() int { return 4 * w.Shape[1] }

// quantProduct is y = x·wᵀ + bias, or what is made of the products with two weights.
type quantProduct struct {
	w    []quantised
	bias *Buffer
	y    Buffer
}

// timesQuantised is products with x, operand 0 or something of its shape.
func (s *step) timesQuantised(x Buffer, q8 bool, of ...quantProduct) error {
	if done, err := s.quantRows(&quantRows{form: "plain", q8: q8, x: x, of: of}); done {
		return err
	}
	if m, k := program.RowsCols(s.Operands[0].Shape); q8 {
		var err error
		if x, err = s.poison(x, m, k); err != nil {
			return err
		}
	}
	for _, p := range of {
		if err := s.quantisedTiles(x, p.w[0], p.bias, p.y, false); err != nil {
			return err
		}
	}
	return nil
}

// quantisedTiles is a product of many rows of x: the kernels of matmul, which unpack weights as they load them.
func (s *step) quantisedTiles(x Buffer, w quantised, bias *Buffer, y Buffer, colMajor bool) error {
	rows, cols, err := catalogue.PackedShape(w.Type, w.format)
	if err != nil {
		return err
	}
	m, _ := program.RowsCols(s.Operands[0].Shape)
	d := catalogue.MatMulDims{Batch: 1, M: m, K: rows, N: cols}
	if !colMajor {
		d.K, d.N = cols, rows
	}
	out := program.F32(m, d.N)
	last := identity(out, Buffer{})
	if bias != nil {
		last = last.then(call(catalogue.Add, nil, []program.Type{out, program.F32(d.N)}, []Buffer{{}, *bias}))
	}
	p := product{B: compute.Uint32, TransB: !colMajor, Format: w.format}
	if !last.nothing() {
		reaches, err := last.reaches(1, out.Shape, 0, 1)
		if err != nil {
			return err
		}
		p.finish = epilogue{last, reaches}
	}
	return (&matmul{step: s, MatMulDims: d, a: x, b: w.Buffer, c: y, product: p}).lower()
}

// poison returns x, m × k, in which rows with Inf or NaN are NaN: added to them is the sum of 0·x.
func (s *step) poison(x Buffer, m, k int) (Buffer, error) {
	of := tensor{Buffer: x, Type: program.F32(m, k)}
	sums, y := s.NewTensor(program.F32(m)), s.NewTensor(of.Type)
	zero := program.Expression{Inputs: 1, Nodes: []program.Node{{Entry: catalogue.Scale, Args: []int{0}}}, Results: []int{1}}
	err := s.Call(catalogue.Sum, program.Attr{Options: compute.LastAxis, Scalars: []float32{0}, Prologue: zero}, []Buffer{sums.Buffer}, of)
	if err != nil {
		return x, err
	}
	sums.Shape = []int{m, 1}
	return y.Buffer, s.Call(catalogue.Add, program.Attr{}, []Buffer{y.Buffer}, of, sums)
}
