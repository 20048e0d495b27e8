package cpu

import (
	"math"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/blocks"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/gemm"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

func quantisedRows(c *call) work {
	o := c.attr.Options.(compute.QuantOptions)
	q := newQuantised(c, o.Q8, c.in[1])
	q.round(q.x)
	q.linear(resultOf(0), 1, -1, o.Format)
	return q.done()
}

// Costs of a quantised weight: of one that becomes a float32, of its product with one, and of that with 8 bits.
var (
	dequantizing = engine.Cost{Scalar: 1.5, AVX512: 0.15}
	multiplying  = engine.Cost{Scalar: 2.5, AVX512: 0.2}
	multiplying8 = engine.Cost{Scalar: 2, AVX512: 0.06}
)

// weightsOf are the weights of an operand.
func (c *call) weightsOf(i int, f compute.BlockFormat) blocks.Weights {
	return blocks.NewWeights(f, c.in[i].Shape[0], c.in[i].Shape[1])
}

func dequantize(c *call) work {
	o := c.attr.Options.(compute.DequantizeOptions)
	w := c.weightsOf(0, o.Format)
	rows, _ := program.RowsCols(c.out.Shape)
	parts := engine.CeilDiv(w.Cols, blocks.Piece)
	ns := (dequantizing.Ns() + engine.Narrowing.Ns()) * float64(min(w.Cols, blocks.Piece))
	return one(rows*parts, ns, func(a *args, lo, hi int) {
		w := w.Of(a.in[0].bytes(compute.Uint32))
		buffer := engine.Borrow(blocks.Piece)
		for u := lo; u < hi; u++ {
			r, from := u/parts, u%parts*blocks.Piece
			n, at := min(blocks.Piece, w.Cols-from), u/parts*w.Cols+from
			if len(a.in) == 2 {
				r = int(a.in[1].i32()[r])
			}
			y := (*buffer)[:n]
			if c.out.DType == compute.Float32 {
				y = a.out.f32()[at:][:n]
			}
			if uint(r) < uint(w.Rows) {
				w.Dequantize(y, r, from)
			} else {
				engine.FillWith(y, float32(math.NaN()))
			}
			if c.out.DType != compute.Float32 {
				narrow(a.out, c.out.DType, at, y)
			}
		}
		engine.Scratch.Put(buffer)
	})
}

// panelLen is how many weights become float32 at a time where there are many rows of x: they stay in L2 or L3.
const panelLen = 1 << 20

// quantised is the work of products of rows with quantised weights; each row of weights is used for all of x. Few rows of x
// are multiplied with weights as they are read, and so are many in 8 bits where integers are faster than floats. For others,
// a panel of weights after the other is dequantised and multiplied as float32.
type quantised struct {
	sequence
	step    *call
	m, k    int
	x       value  // of the call
	rounded source // rows of x in 8 bits, nil for none
	values  source // many rows of x: those that are multiplied
	panel   source
}

// newQuantised makes the temporaries of products with weights.
func newQuantised(c *call, q8 bool, weights ...program.Type) *quantised {
	q := &quantised{step: c}
	q.m, q.k = program.RowsCols(c.in[0].Shape)
	q.x = value{program.F32(q.m, q.k), operandOf(0)}
	if q8 {
		q.rounded = q.temporary(q.m * blocks.RoundedWords(q.k))
	}
	if q.m > blocks.Most && !(q8 && blocks.Many8()) {
		most := 0
		for _, w := range weights {
			most = max(most, min(w.Shape[0], q.panelRows()))
		}
		q.panel = q.temporary(most * q.k)
		if q8 {
			q.values = q.temporary(q.m * q.k)
		}
	}
	return q
}

func (q *quantised) panelRows() int { return max(32, panelLen/max(q.k, 1)) }

// round appends the rounding of x to 8 bits if that is requested.
func (q *quantised) round(x value) {
	q.x = x
	switch {
	case q.rounded == nil:
		q.values = x.source
		return
	case q.k == 0 || q.m == 0:
		return
	}
	const part = 64 // blocks of 32
	in, parts, values := q.k/32, engine.CeilDiv(q.k/32, part), q.values
	m, k, rounded := q.m, q.k, q.rounded
	q.phases = append(q.phases, phase{units: q.m * parts, ns: 2 * 32 * part, do: func(a *args, lo, hi int) {
		for u := lo; u < hi; u++ {
			row, from := u/parts, u%parts*part
			to := min(from+part, in)
			r := blocks.RoundedRows{Memory: rounded(a).f32(), Rows: m, K: k}.Row(row)
			r.Round(x.source(a).f32()[row*k:][:k], from, to)
			if values != nil {
				r.Values(values(a).f32()[row*k:][:k], from, to)
			}
		}
	}})
}

// linear appends the product with operand i, and the bias that operand is, if it is not −1.
func (q *quantised) linear(out source, i, bias int, f compute.BlockFormat) {
	w, m, k := q.step.weightsOf(i, f), q.m, q.k
	n := w.Rows
	if m == 0 || n == 0 {
		return
	}
	if q.panel != nil {
		q.panels(out, i, bias, w)
		return
	}
	rounded, values := q.rounded, q.values
	ns := multiplying.Ns()
	if rounded != nil {
		ns = multiplying8.Ns()
	}
	each := 1 // rows of weights
	if m > blocks.Most {
		each = blocks.Held
	}
	cost := float64(each) * (20 + ns*float64(m*k))
	q.phases = append(q.phases, phase{units: engine.CeilDiv(n, each), ns: cost, do: func(a *args, lo, hi int) {
		lo, hi = lo*each, min(hi*each, n)
		w, y := w.Of(a.in[i].bytes(compute.Uint32)), out(a).f32()
		if rounded != nil {
			w.Multiply8(y, n, blocks.RoundedRows{Memory: rounded(a).f32(), Rows: m, K: k}, lo, hi)
		} else {
			w.Multiply(y, n, values(a).f32(), m, lo, hi)
		}
		for row := 0; bias >= 0 && row < m; row++ {
			part := y[row*n+lo : row*n+hi]
			kernels.Add(part, part, a.in[bias].f32()[lo:hi])
		}
	}})
}

// panels appends the product with weights that are dequantised, some rows at a time.
func (q *quantised) panels(out source, i, bias int, w blocks.Weights) {
	m, k, n := q.m, q.k, w.Rows
	parts := engine.CeilDiv(k, blocks.Piece)
	panel := q.panel
	for from := 0; from < n; from += q.panelRows() {
		rows := min(q.panelRows(), n-from)
		if k > 0 {
			ns := dequantizing.Ns() * float64(min(k, blocks.Piece))
			q.phases = append(q.phases, phase{units: rows * parts, ns: ns, do: func(a *args, lo, hi int) {
				w, y := w.Of(a.in[i].bytes(compute.Uint32)), panel(a).f32()
				for u := lo; u < hi; u++ {
					r, at := u/parts, u%parts*blocks.Piece
					w.Dequantize(y[r*k+at:][:min(blocks.Piece, k-at)], from+r, at)
				}
			}})
		}
		p := &gemm.Product{M: m, N: rows, K: k, AM: k, AK: 1, BK: 1, BN: k, LDC: n, Alpha: 1, Batch: 1, StrideC: m * n}
		q.times(p, skip(out, from), value{program.F32(m, k), q.values}, value{program.F32(rows, k), panel}, bias, from)
	}
}

// times appends a float32 product whose bias begins at an element of an operand.
func (q *quantised) times(p *gemm.Product, out source, x, w value, bias, from int) {
	in := []value{x, w}
	if bias >= 0 {
		in = append(in, value{program.F32(p.N), skip(operandOf(bias), from)})
	}
	c := &call{out: program.F32(p.M, p.N)}
	for _, v := range in {
		c.in = append(c.in, v.Type)
	}
	q.append(c.multiplication(p, 0, 1), out, in...)
}

// skip returns a value of words without its first ones.
func skip(s source, from int) source {
	return func(a *args) view {
		v := s(a)
		return view{unsafe.Add(v.p, 4*from), v.n - from}
	}
}

// quantisedColumns has units of strips of columns for few rows of x, and panels of columns for many.
func quantisedColumns(c *call) work {
	w := c.weightsOf(1, c.attr.Options.(compute.QuantOptions).Format)
	m, k := program.RowsCols(c.in[0].Shape)
	n := w.Cols
	if m <= blocks.Most {
		strips := engine.CeilDiv(n, blocks.Strip)
		return one(strips, 20+multiplying.Ns()*float64(m*k)*float64(min(n, blocks.Strip)), func(a *args, lo, hi int) {
			w := w.Of(a.in[1].bytes(compute.Uint32))
			for s := lo; s < hi; s++ {
				from := s * blocks.Strip
				w.MultiplyColumns(a.out.f32(), n, a.in[0].f32(), m, from, min(from+blocks.Strip, n))
			}
		})
	}
	q := &quantised{step: c}
	wide := min(n, max(1, panelLen/max(k, 1)/blocks.Strip)*blocks.Strip)
	panel := q.temporary(k * wide)
	for from := 0; from < n; from += wide {
		cols := min(wide, n-from)
		if k > 0 {
			ns := 20 + dequantizing.Ns()*float64(cols)
			q.phases = append(q.phases, phase{units: k, ns: ns, do: func(a *args, lo, hi int) {
				w, y := w.Of(a.in[1].bytes(compute.Uint32)), panel(a).f32()
				for r := lo; r < hi; r++ {
					w.Dequantize(y[r*cols:][:cols], r, from)
				}
			}})
		}
		p := &gemm.Product{M: m, N: cols, K: k, AM: k, AK: 1, BK: cols, BN: 1, LDC: n, Alpha: 1, Batch: 1, StrideC: m * n}
		q.times(p, skip(resultOf(0), from), value{program.F32(m, k), operandOf(0)}, value{program.F32(k, cols), panel}, -1, 0)
	}
	return q.done()
}

func quantisedNorm(c *call) work {
	o := c.attr.Options.(compute.QuantOptions)
	q := newQuantised(c, o.Q8, c.in[2])
	normed := value{q.x.Type, q.temporary(q.m * q.k)}
	q.call(catalogue.RMSNorm, program.Attr{Scalars: c.attr.Scalars}, normed.source, q.x, value{c.in[1], operandOf(1)})
	q.round(normed)
	q.linear(resultOf(0), 2, -1, o.Format)
	return q.done()
}

func quantisedQKV(c *call) work {
	q := newQuantised(c, c.attr.Options.(compute.QuantQKVOptions).Q8, c.in[1:4]...)
	q.round(q.x)
	for i, f := range catalogue.QKVFormats(c.attr) {
		bias := -1
		if len(c.in) == 7 {
			bias = 4 + i
		}
		q.linear(resultOf(i), 1+i, bias, f)
	}
	return q.done()
}

func quantisedGateUp(c *call) work {
	o := c.attr.Options.(compute.QuantOptions)
	q := newQuantised(c, o.Q8, c.in[1])
	wide := program.F32(c.out.Len())
	gate, up := value{wide, q.temporary(wide.Len())}, value{wide, q.temporary(wide.Len())}
	q.round(q.x)
	q.linear(gate.source, 1, -1, o.Format)
	q.linear(up.source, 2, -1, o.Format)
	q.call(catalogue.SwiGLU, program.Attr{}, resultOf(0), gate, up)
	return q.done()
}
