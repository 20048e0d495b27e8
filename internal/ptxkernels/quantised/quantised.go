package quantised

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx/ir"
)

// quantWeight is a matrix of packed weights, n rows of them, and what becomes of its product with x.
type quantWeight struct {
	*blockFormat
	program.Type
	w, y kit.Buffer
	bias kit.Buffer // if there are biases
}

func (w quantWeight) rows() int { return w.Shape[0] }

// quantCall is products of x, m × k, with weights.
type quantCall struct {
	*kit.Step
	m, k    int
	x       kit.Buffer
	gamma   kit.Buffer
	eps     float32
	norm    bool
	gate    bool // of two weights
	biased  bool
	bytes   bool // x is rounded
	weights []quantWeight
}

// MatMul lowers products with weights that are packed along rows, alone, after a norm, three at a time, or gated.
func MatMul(s *kit.Step) error {
	c := &quantCall{Step: s, x: kit.In(0), gamma: kit.In(0)}
	c.m, c.k = program.RowsCols(s.Operands[0].Shape)
	add := func(i int, f compute.BlockFormat, y kit.Buffer) {
		c.weights = append(c.weights, quantWeight{blockFormat: blockFormatOf(f), Type: s.Operands[i], w: kit.In(i), y: y, bias: kit.In(0)})
	}
	switch o := s.Attr.Options.(type) {
	case compute.QuantQKVOptions:
		c.bytes, c.biased = o.Q8, len(s.Operands) == 7
		for i, f := range catalogue.QKVFormats(s.Attr) {
			add(1+i, f, kit.OutAt(i))
			if c.biased {
				c.weights[i].bias = kit.In(4 + i)
			}
		}
	case compute.QuantOptions:
		c.bytes = o.Q8
		switch s.Entry {
		case catalogue.QuantRMSNormMatVec:
			c.norm, c.gamma, c.eps = true, kit.In(1), float32(s.Attr.Scalars[0])
			add(2, o.Format, kit.Out)
		case catalogue.QuantGateUpSwiGLU:
			c.gate = true
			add(1, o.Format, kit.Out)
			add(2, o.Format, kit.Out)
		default:
			add(1, o.Format, kit.Out)
		}
	}
	return c.Lower()
}

// Lower chooses a variant and launches it.
func (c *quantCall) Lower() error {
	if c.k == 0 {
		c.withoutValues()
		return nil
	}
	return c.products()
}

// withoutValues writes sums of nothing.
func (c *quantCall) withoutValues() {
	for _, w := range c.weights {
		if !c.biased {
			c.Fill(w.y, 0, c.m*w.rows())
			continue
		}
		for row := range c.m {
			c.Copy(w.bias, w.y.Plus(4*row*w.rows()), 4*w.rows())
		}
	}
}

// products are by gemv for a few rows of x at a time, one launch for weights of the same format, or each by itself for many rows.
func (c *quantCall) products() error {
	target := c.Caps.Target
	if c.bytes && !target.Covers(ir.Target{SM: 61}) { // which cannot multiply bytes
		c.bytes = false
		c.x = c.NewScratch(4 * c.m * c.k)
		c.Launch(quantFinite, [3]int{c.m, 1, 1}, finiteParams{c.k, kit.In(0), c.x})
	}
	if c.m > quantVectors && (!c.bytes || target.Covers(ir.Target{SM: 80})) {
		return c.many()
	}
	var values, scales kit.Buffer
	if c.bytes {
		values, scales = c.rounded()
	}
	for rest := c.weights; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].blockFormat == rest[0].blockFormat {
			n++
		}
		for first := 0; first < c.m; first += quantVectors {
			c.gemv(rest[:n], first, min(quantVectors, c.m-first), values, scales)
		}
		rest = rest[n:]
	}
	return nil
}

// kind is what x becomes for tensor cores; nil if it stays float32. Rounding to halves is what Q8 permits, since it is more exact than
// to bytes.
func (c *quantCall) kind() *quantMmaKind {
	target := c.Caps.Target
	if !target.Covers(ir.Target{SM: 80}) {
		return nil
	}
	kinds := []*quantMmaKind{&quantHalvesMma, nil}
	if c.bytes {
		kinds = []*quantMmaKind{&quantHalfMma, &quantBytesMma}
		// Sums of halves take an instruction for an element where those of bytes take three or four. But consumer GPUs multiply halves
		// at a quarter of the rate of bytes, or less, and others at half of it.
		if target.SM%10 != 0 {
			slices.Reverse(kinds)
		}
	}
	var names []string
	for _, kind := range kinds {
		if kind == nil {
			names = append(names, "tile")
		} else {
			names = append(names, "mma_"+kind.name)
		}
	}
	n := 0
	for _, w := range c.weights {
		n += w.rows()
	}
	return kinds[c.Choose("quant_matmul", fmt.Sprintf("%dx%dx%d %v", c.m, c.k, n, c.weights[0].BlockFormat), names)]
}

// quantActivations is x for tensor cores.
type quantActivations struct {
	quantMmaKind
	values  kit.Buffer
	scales  kit.Buffer // of bytes
	factors kit.Buffer // of rows of halves
	exact   kit.Buffer // as float32
}

// many is products one by one.
func (c *quantCall) many() error {
	x, kind := c.x, c.kind()
	if c.norm && (kind == nil || !kind.bytes()) {
		normed := c.NewTensor(program.F32(c.m, c.k))
		attr := c.Attr
		attr.Options = nil
		if err := c.Call(catalogue.RMSNorm, attr, []kit.Buffer{normed.Buffer}, kit.Tensor{Buffer: x, Type: normed.Type}, c.OperandTensor(1)); err != nil {
			return err
		}
		x = normed.Buffer
	}
	var a *quantActivations
	switch {
	case kind == nil:
	case kind.bytes():
		values, scales := c.rounded()
		a = &quantActivations{quantMmaKind: *kind, values: values, scales: scales}
	default:
		a = c.halves(*kind, x)
	}
	each := func(w quantWeight, other *kit.Buffer) {
		p := &quantProduct{Step: c.Step, quantWeight: w, m: c.m, n: w.rows(), depth: c.k, x: x, biased: c.biased, kMajor: true, other: other}
		switch {
		case p.n == 0:
		case kind == nil:
			p.exact()
		default:
			p.tensor(a)
		}
	}
	if c.gate {
		gate, up := c.weights[0], c.weights[1]
		t := program.F32(c.m, gate.rows())
		if kind == nil && t.Len()%4 == 0 { // so that the second result begins where fours of it may be read
			both := c.NewScratch(2 * t.Bytes())
			gate.y, up.y = both, both.Plus(t.Bytes())
			each(gate, &up.w)
		} else {
			gate.y, up.y = c.NewScratch(t.Bytes()), c.NewScratch(t.Bytes())
			each(gate, nil)
			each(up, nil)
		}
		return c.Call(catalogue.SwiGLU, program.Attr{}, []kit.Buffer{kit.Out}, kit.Tensor{Buffer: gate.y, Type: t}, kit.Tensor{Buffer: up.y, Type: t})
	}
	for _, w := range c.weights {
		each(w, nil)
	}
	return nil
}

// rounded is x as bytes, and their scales.
func (c *quantCall) rounded() (values, scales kit.Buffer) {
	n := (kit.CeilDiv(c.m, quantVectors) * quantVectors) * c.k // of whole rooms
	values, scales = c.NewScratch(bytesSize(n)), c.NewScratch(scalesSize(n))
	parts := kit.CeilDiv(c.k, bytesPart)
	c.Launch(quantBytes, [3]int{parts * c.m, 1, 1}, quantBytesParams{Cols: c.k, Norm: int(kit.FlagIf(1, c.norm)), Parts: scalar.Divide(parts), Eps: c.eps,
		X: c.x, Gamma: c.gamma, Y: values, Scales: scales})
	return values, scales
}

// halves is x as halves.
func (c *quantCall) halves(kind quantMmaKind, x kit.Buffer) *quantActivations {
	rows, stages := kit.CeilDiv(c.m, halvesRows)*halvesRows, kit.CeilDiv(c.k, halvesDepth)
	a := &quantActivations{quantMmaKind: kind, exact: x, factors: c.NewScratch(4 * rows)}
	a.values = c.NewScratch(kit.CeilDiv(c.m, halvesTile) * stages * halvesStage(a.parts))
	c.Launch(quantHalves, [3]int{rows, 1, 1}, halvesParams{c.k, a.parts, c.m, x, a.values, a.factors})
	return a
}

// rowsOf is how many rows up to three weights have, and all of them together.
func rowsOf(weights []quantWeight) (rows [3]int, total int) {
	for i, w := range weights {
		rows[i] = w.rows()
		total += rows[i]
	}
	return rows, total
}

// gemv is for m rows of x from the first on.
func (c *quantCall) gemv(weights []quantWeight, first, m int, values, scales kit.Buffer) {
	rows, total := rowsOf(weights)
	if total == 0 {
		return
	}
	if c.bytes && m > 1 && c.Caps.Target.Covers(ir.Target{SM: 80}) {
		c.thin(weights, first, m, values, scales)
		return
	}
	tasks, step, second := kit.CeilDiv(total, 2), 2, 1
	if c.gate {
		tasks, step, second = rows[0], 1, rows[0]
	}
	kernels := quantGemvKernels[weights[0].blockFormat]
	roomIn := func(rooms []int) int { return slices.IndexFunc(rooms, func(n int) bool { return m <= n }) }
	room := roomIn(quantRooms)
	kernel, width, reads := kernels.exact[room], 32, 4 // a lane has a few units
	x := gemvParams{Eps: []float32{c.eps}, X: c.x.Plus(4 * first * c.k), Gamma: []kit.Buffer{c.gamma}}
	if c.bytes {
		kernel, width, reads = kernels.bytes[roomIn(byteRooms)], 32*weights[0].pieceUnits(), 8
		x = c.bytesFrom(values, scales, first)
	}
	lanes := threadgroup.Lanes(c.Step, threadgroup.Partition{Rows: tasks, Cols: c.k, Parts: 1, Chunk: c.k}, 8, width, reads)
	if !c.bytes {
		lanes = min(lanes, exactLanes(quantRooms[room]))
	}
	c.launchGemv(kernel, kit.CeilDiv(tasks, threadgroup.Threads/lanes), weights, first, m, x, scalar.Log2(lanes), tasks, step, second)
}

// bytesFrom is the parameters that tell of x as bytes, from a row on.
func (c *quantCall) bytesFrom(values, scales kit.Buffer, first int) gemvParams {
	return gemvParams{X: values.Plus(bytesSize(first * c.k)), Scales: []kit.Buffer{scales.Plus(scalesSize(first * c.k))}}
}

// launchGemv launches a kernel of quantGemv; p is what tells of x.
func (c *quantCall) launchGemv(kernel *kit.Kernel, blocks int, weights []quantWeight, first, m int, p gemvParams,
	log, tasks, step, second int) {
	w := weights[0]
	rows, _ := rowsOf(weights)
	p.K, p.Blocks, p.Words, p.Count, p.Lanes, p.Tasks, p.Step, p.Second = c.k, c.k/w.len(), w.Shape[1], m, log, tasks, step, second
	p.Flags = int(kit.FlagIf(quantGate, c.gate) | kit.FlagIf(quantNorm, c.norm) | kit.FlagIf(quantBiased, c.biased))
	p.N0, p.N1, p.N2 = rows[0], rows[1], rows[2]
	for i := range 3 { // those that there are not are never read
		w := weights[min(i, len(weights)-1)]
		p.W, p.B, p.Y = append(p.W, w.w), append(p.B, w.bias), append(p.Y, w.y.Plus(4*first*w.rows()))
	}
	c.Launch(kernel, [3]int{blocks, 1, 1}, p)
}

// ColumnMajor is for weights whose rows are along the result.
func ColumnMajor(s *kit.Step) error {
	f := s.Attr.Options.(compute.QuantOptions).Format
	m, k := program.RowsCols(s.Operands[0].Shape)
	_, n, err := catalogue.PackedShape(s.Operands[1], f)
	if err != nil {
		return err
	}
	if k == 0 {
		s.Fill(kit.Out, 0, m*n)
		return nil
	}
	w := quantWeight{blockFormat: blockFormatOf(f), Type: s.Operands[1], w: kit.In(1), y: kit.Out, bias: kit.In(0)}
	p := &quantProduct{Step: s, quantWeight: w, m: m, n: n, depth: k, x: kit.In(0)}
	if m > 0 && m <= thinVectors && n > 0 {
		p.columns()
	} else {
		p.exact()
	}
	return nil
}
