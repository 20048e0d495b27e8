package wgsl

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
	"github.com/wavelane/wavelane/quant"
)

// Products with quantised weights multiply float32 activations, with Q8 too: that is closer to the exact product than rounded activations
// are, and integer dot products of 8 bits are in few WebGPU implementations. What is left of Q8 is that Inf or NaN in a row of x
// makes the row NaN. Values are computed as s·q − m before they are multiplied, not by Σq·x and Σx: then Inf in x gives what
// it gives for dequantised weights, and a fused multiply-add is all it costs.

// blocks is what the template "quant_run" sees of a format. Places are vectors of 16 bytes from the beginning of a block.
type blocks struct {
	Format               string
	Long                 bool // 256 values, not 32
	Nibbles, Six         bool // which bits are where: Q4 and Q5; Q6_K
	Min                  bool // values are s·q − m, not s·(q − Offset)
	Offset               int
	Fours                int // of the first plane
	Quants, High, Scales int // places in the first plane; a High of 0 with Long is none

	Wide    bool // all words of a run at once, not one
	Weights []string
}

// apart is the distance of the two runs that lie in the same words.
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
		b.Offset = 128
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

func init() {
	lowerings[op.Dequantize] = dequantize
	lowerings[op.QuantMatMulRowMajor] = func(s *step) error {
		o := s.Attr.Options.(compute.QuantOptions)
		return s.timesQuantised(operand(0), quantised{operand(1), s.in[1], o.Format, o.Q8}, nil, result)
	}
	lowerings[op.QuantMatMulColMajor] = func(s *step) error {
		o := s.Attr.Options.(compute.QuantOptions)
		return s.quantisedTiles(operand(0), quantised{operand(1), s.in[1], o.Format, false}, nil, result, false)
	}
	lowerings[op.QuantRMSNormMatVec] = func(s *step) error {
		o := s.Attr.Options.(compute.QuantOptions)
		w := quantised{operand(2), s.in[2], o.Format, o.Q8}
		v := quantRows{form: "norm", w: []quantised{w}, x: operand(0), gamma: operand(1), y: result}
		if done, err := s.quantRows(&v); done {
			return err
		}
		m, k := op.RowsCols(s.in[0].Shape)
		normed := s.temporary(op.F32(m, k))
		err := s.call(op.RMSNorm, op.Attr{Scalars: s.Attr.Scalars}, []Buffer{normed.Buffer}, tensor{operand(0), normed.Type}, s.operandTensor(1))
		if err != nil {
			return err
		}
		return s.timesQuantised(normed.Buffer, w, nil, result)
	}
	lowerings[op.QuantGateUpSwiGLU] = func(s *step) error {
		o := s.Attr.Options.(compute.QuantOptions)
		v := quantRows{form: "gate", x: operand(0), y: result}
		for i := range 2 {
			v.w = append(v.w, quantised{operand(1 + i), s.in[1+i], o.Format, o.Q8})
		}
		if done, err := s.quantRows(&v); done {
			return err
		}
		var parts []tensor
		for _, w := range v.w {
			y := s.temporary(op.F32(s.out.Len()))
			if err := s.timesQuantised(v.x, w, nil, y.Buffer); err != nil {
				return err
			}
			parts = append(parts, y)
		}
		return s.call(op.SwiGLU, op.Attr{}, []Buffer{result}, parts...)
	}
	lowerings[op.QuantQKV] = func(s *step) error {
		for i, f := range op.QKVFormats(s.Attr) {
			w := quantised{operand(1 + i), s.in[1+i], f, s.Attr.Options.(compute.QuantQKVOptions).Q8}
			var bias *Buffer
			if len(s.in) == 7 {
				b := operand(4 + i)
				bias = &b
			}
			if s.outs[i].Len() == 0 {
				continue
			}
			if err := s.timesQuantised(operand(0), w, bias, resultAt(i)); err != nil {
				return err
			}
		}
		return nil
	}
}

// quantised are packed weights.
type quantised struct {
	Buffer
	op.Type
	format compute.BlockFormat
	q8     bool // of the activations
}

func (w *quantised) rows() int     { return w.Shape[0] }
func (w *quantised) rowBytes() int { return 4 * w.Shape[1] }

// timesQuantised is y = x·wᵀ + bias, with x operand 0 or something of its shape.
func (s *step) timesQuantised(x Buffer, w quantised, bias *Buffer, y Buffer) error {
	if done, err := s.quantRows(&quantRows{form: "plain", w: []quantised{w}, x: x, bias: bias, y: y}); done {
		return err
	}
	return s.quantisedTiles(x, w, bias, y, true)
}

// quantisedTiles is a product of many rows of x: the kernels of matmul, which take weights apart as they load them.
func (s *step) quantisedTiles(x Buffer, w quantised, bias *Buffer, y Buffer, rowMajor bool) error {
	rows, cols, err := op.PackedShape(w.Type, w.format)
	if err != nil {
		return err
	}
	m, _ := op.RowsCols(s.in[0].Shape)
	d := op.MatMulDims{Batch: 1, M: m, K: rows, N: cols}
	if rowMajor {
		d.K, d.N = cols, rows
	}
	out := op.F32(m, d.N)
	behind := identity(out, Buffer{})
	if bias != nil {
		behind = behind.then(call(op.Add, nil, []op.Type{out, op.F32(d.N)}, []Buffer{{}, *bias}))
	}
	if w.q8 {
		if x, err = s.spoil(x, m, d.K); err != nil {
			return err
		}
	}
	p := product{B: compute.Uint32, TransB: rowMajor, Format: w.format}
	if !behind.nothing() {
		reaches, err := behind.reaches(1, out.Shape, 0, 1)
		if err != nil {
			return err
		}
		p.finish = epilogue{behind, reaches}
	}
	return (&matmul{step: s, MatMulDims: d, a: x, b: w.Buffer, c: y, product: p}).lower()
}

// spoil is x, m × k, in which rows with Inf or NaN are NaN: added to them is the sum of 0·x.
func (s *step) spoil(x Buffer, m, k int) (Buffer, error) {
	of := tensor{x, op.F32(m, k)}
	sums, y := s.temporary(op.F32(m)), s.temporary(of.Type)
	zero := op.Expression{Inputs: 1, Nodes: []op.Node{{Entry: op.Scale, Args: []int{0}}}, Results: []int{1}}
	err := s.call(op.Sum, op.Attr{Options: compute.LastAxis, Scalars: []float32{0}, Prologue: zero}, []Buffer{sums.Buffer}, of)
	if err != nil {
		return x, err
	}
	sums.Shape = []int{m, 1}
	return y.Buffer, s.call(op.Add, op.Attr{}, []Buffer{y.Buffer}, of, sums)
}

const (
	quantMost  = 8  // rows of x that the kernel of few rows has room for, when it does nothing else
	quantLanes = 64 // threads of it
)

// quantRows is a product of few rows of x, one dispatch where bindings allow.
type quantRows struct {
	form     string // plain, norm or gate
	w        []quantised
	x, gamma Buffer
	bias     *Buffer
	y        Buffer
}

// quantRows reports false where it cannot do it.
func (s *step) quantRows(v *quantRows) (done bool, err error) {
	w := v.w[0]
	m, k := op.RowsCols(s.in[0].Shape)
	n := w.rows()
	if k == 0 && v.bias == nil {
		s.fillWords(v.y, m*n, 0)
		return true, nil
	}
	if m > quantMost || m > 1 && v.form != "plain" || w.q8 && k/4 > loopBudget || BufferSize(4*k) > s.caps.MaxBinding || s.workgroup() < quantLanes {
		return false, nil
	}
	// All rows of x at once, or each for itself where they or the results are more than bindings hold.
	together := m
	if max(BufferSize(4*m*k), BufferSize(4*m*n)) > s.caps.MaxBinding {
		together = 1
	}
	kernel, rows := v.kernel(together)
	nan := 0
	if w.q8 {
		nan = 0x7fc00000
	}
	for i := 0; i < m; i += together {
		x, x0 := s.window(v.x, i*k, together*k)
		ofRows := func(bytes, start int) extent {
			return func(first, end int) (from, to int) { return start + first*rows*bytes, start + min(end*rows, n)*bytes }
		}
		results := ofRows(4, 4*i*n)
		if together > 1 {
			results = func(int, int) (from, to int) { return 0, 4 * m * n }
		}
		err := s.ranges(ceilDiv(n, rows), func(first, end int, parts []part) {
			bind := []Buffer{x}
			if v.form == "norm" {
				bind = append(bind, v.gamma)
			}
			for _, w := range v.w {
				bind = append(bind, parts[0].of(w.Buffer))
			}
			if v.bias != nil {
				bind = append(bind, parts[2].of(*v.bias))
			} else if v.form == "plain" {
				bind = append(bind, x) // which nobody reads
			}
			params := words(together, k/4, k/16, k/quant.Type(w.format).BlockLen(), w.rowBytes()/16, n, first, end,
				-parts[0].base/16, i*n-parts[1].base/4, -parts[2].base/4, x0/4, n, nan)
			switch {
			case v.form == "norm":
				params = append(params, bits(s.Attr.Scalars[0]))
			case v.bias != nil:
				params = append(params, 0, 1)
			}
			s.dispatch(kernel, s.linear(end-first), params, append(bind, parts[1].of(v.y))...)
		}, ofRows(w.rowBytes(), 0), results, ofRows(4, 0))
		if err != nil {
			return true, err
		}
	}
	return true, nil
}

// kernel returns also how many rows of each weight a workgroup takes.
func (v *quantRows) kernel(m int) (k *Kernel, rows int) {
	f, room := v.w[0].format, 1
	for room < m {
		room *= 2
	}
	rows = 4 / len(v.w)
	return cached(fmt.Sprintf("quant_matvec/%s/%v/%d", v.form, f, room), func() *Kernel {
		k := &Kernel{Uniform: 64, Workgroup: [3]uint32{quantLanes, 1, 1}, Shared: 16 * room * quantLanes}
		var reads, types []string
		read := func(kind string, names ...string) {
			for _, name := range names {
				reads, types = append(reads, name), append(types, kind)
			}
		}
		functions := ""
		weights := []string{"w0", "w1"}[:len(v.w)]
		switch v.form {
		case "norm":
			read("vec4<f32>", "gamma")
			k.Shared += 4 * room * quantLanes
		case "gate":
			functions = functionsOf("swiglu")
		}
		read("vec4<u32>", weights...)
		if v.form == "plain" {
			read("f32", "bias")
		}
		k.Bindings = append(slices.Repeat([]Access{Read}, 1+len(reads)), ReadWrite)
		var of []string // the weights of the four rows
		for i := range 4 {
			of = append(of, weights[i/rows])
		}
		k.Source = render("quant_matvec.wgsl", struct {
			Form, Functions   string
			Room, Lanes, Rows int
			Reads, Types, Of  []string
			Blocks            *blocks
		}{v.form, functions, room, quantLanes, rows, reads, types, of, blocksOf(f, true, weights...)})
		return k
	}), rows
}
