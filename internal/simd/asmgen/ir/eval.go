package ir

import "math"

// Lane is the result of interpreting a body for one element.
type Lane struct {
	Store float32
	Guard bool
	Acc   []float32 // accumulators after the element
}

// Eval interprets the body for one element. It serves tests of kernels, without any machine's code. Acc are the accumulators
// before the element, nil for their start.
func (b *Body) Eval(in, params, acc []float32) Lane {
	p := b.Interpreter(1)
	if acc == nil {
		for _, a := range b.Accumulators {
			acc = append(acc, math.Float32frombits(a.Init))
		}
	}
	for i, n := range b.Nodes {
		switch n.Op {
		case OpInput:
			p.v[i][0] = math.Float32bits(in[n.Imm])
		case OpAcc:
			p.v[i][0] = math.Float32bits(acc[n.Imm])
		}
	}
	p.run(1, params)
	var l Lane
	if b.Store != nil {
		l.Store = math.Float32frombits(p.v[b.Store.ID][0])
	}
	if b.Guard != nil {
		l.Guard = p.v[b.Guard.ID][0] != 0
	}
	for _, a := range b.Accumulators {
		l.Acc = append(l.Acc, math.Float32frombits(p.v[a.Next.ID][0]))
	}
	return l
}

// Interpreter evaluates a body for many elements at a time, which tests of whole ranges need.
type Interpreter struct {
	b *Body
	v [][]uint32 // value of every node in every lane; masks are 0 and 1
}

// Interpreter makes one for up to lanes elements at a time. It is for one goroutine.
func (b *Body) Interpreter(lanes int) *Interpreter {
	p := &Interpreter{b: b}
	for range b.Nodes {
		p.v = append(p.v, make([]uint32, lanes))
	}
	return p
}

// Map sets y to what the body stores for the inputs and guard, unless that is nil, to its guard. Accumulators start anew in
// every element. Slices are as long as y, at most the interpreter's lanes.
func (p *Interpreter) Map(y []float32, guard []bool, in [][]float32, params []float32) {
	for i, n := range p.b.Nodes {
		switch n.Op {
		case OpInput:
			for j, x := range in[n.Imm][:len(y)] {
				p.v[i][j] = math.Float32bits(x)
			}
		case OpAcc:
			fill(p.v[i], p.b.Accumulators[n.Imm].Init)
		}
	}
	p.run(len(y), params)
	if n := p.b.Store; n != nil {
		for j := range y {
			y[j] = math.Float32frombits(p.v[n.ID][j])
		}
	}
	for j := range guard {
		guard[j] = p.b.Guard != nil && p.v[p.b.Guard.ID][j] != 0
	}
}

func (p *Interpreter) run(lanes int, params []float32) {
	for i, n := range p.b.Nodes {
		r := p.v[i][:lanes]
		switch n.Op {
		case OpInput, OpAcc:
			continue
		case OpParam:
			fill(r, math.Float32bits(params[n.Imm]))
			continue
		case OpConst:
			fill(r, n.Imm)
			continue
		}
		var a [3][]uint32
		for k, x := range n.Args {
			a[k] = p.v[x.ID][:lanes]
		}
		switch len(n.Args) {
		case 1:
			eval1(n, r, a[0])
		case 2:
			eval2(n.Op, r, a[0], a[1])
		default:
			eval3(n.Op, r, a[0], a[1], a[2])
		}
	}
}

func fill(r []uint32, v uint32) {
	for i := range r {
		r[i] = v
	}
}

func eval1(n *Node, r, x []uint32) {
	x = x[:len(r)]
	switch n.Op {
	case OpSqrt:
		rounded(r, x, math.Sqrt)
	case OpFloor:
		rounded(r, x, math.Floor)
	case OpCeil:
		rounded(r, x, math.Ceil)
	case OpTrunc:
		rounded(r, x, math.Trunc)
	case OpNearest:
		rounded(r, x, math.RoundToEven)
	case OpMaskNot:
		for i, v := range x {
			r[i] = v ^ 1
		}
	case OpBits, OpFloat:
		copy(r, x)
	case OpShl:
		for i, v := range x {
			r[i] = v << n.Imm
		}
	case OpShrL:
		for i, v := range x {
			r[i] = v >> n.Imm
		}
	case OpShrA:
		for i, v := range x {
			r[i] = uint32(int32(v) >> n.Imm)
		}
	case OpToInt:
		for i, v := range x {
			r[i] = uint32(int32(math.RoundToEven(float64(math.Float32frombits(v)))))
		}
	case OpTruncTo:
		for i, v := range x {
			r[i] = uint32(int32(math.Float32frombits(v)))
		}
	case OpFromInt:
		for i, v := range x {
			r[i] = math.Float32bits(float32(int32(v)))
		}
	default:
		panic("unknown operation")
	}
}

func rounded(r, x []uint32, f func(float64) float64) {
	for i, v := range x {
		r[i] = math.Float32bits(float32(f(float64(math.Float32frombits(v)))))
	}
}

func eval2(op Op, r, x, y []uint32) {
	switch op {
	case OpAdd:
		floats(r, x, y, func(a, b float32) float32 { return a + b })
	case OpSub:
		floats(r, x, y, func(a, b float32) float32 { return a - b })
	case OpMul:
		floats(r, x, y, func(a, b float32) float32 { return a * b })
	case OpDiv:
		floats(r, x, y, func(a, b float32) float32 { return a / b })
	case OpMin: // the second operand, as x86 has it, where the result is open
		floats(r, x, y, func(a, b float32) float32 {
			if a < b {
				return a
			}
			return b
		})
	case OpMax:
		floats(r, x, y, func(a, b float32) float32 {
			if a > b {
				return a
			}
			return b
		})
	case OpMinNaN:
		floats(r, x, y, func(a, b float32) float32 { return min(a, b) })
	case OpMaxNaN:
		floats(r, x, y, func(a, b float32) float32 { return max(a, b) })
	case OpLT:
		compare(r, x, y, func(a, b float32) bool { return a < b })
	case OpLE:
		compare(r, x, y, func(a, b float32) bool { return a <= b })
	case OpEQ:
		compare(r, x, y, func(a, b float32) bool { return a == b })
	case OpNE:
		compare(r, x, y, func(a, b float32) bool { return a != b })
	case OpMaskAnd, OpIAnd:
		ints(r, x, y, func(a, b uint32) uint32 { return a & b })
	case OpMaskOr, OpIOr:
		ints(r, x, y, func(a, b uint32) uint32 { return a | b })
	case OpIXor:
		ints(r, x, y, func(a, b uint32) uint32 { return a ^ b })
	case OpIAndNot:
		ints(r, x, y, func(a, b uint32) uint32 { return a &^ b })
	case OpIAdd:
		ints(r, x, y, func(a, b uint32) uint32 { return a + b })
	case OpISub:
		ints(r, x, y, func(a, b uint32) uint32 { return a - b })
	case OpIGT:
		ints(r, x, y, func(a, b uint32) uint32 { return truth(int32(a) > int32(b)) })
	case OpIEQ:
		ints(r, x, y, func(a, b uint32) uint32 { return truth(a == b) })
	default:
		panic("unknown operation")
	}
}

func floats(r, x, y []uint32, f func(a, b float32) float32) {
	x, y = x[:len(r)], y[:len(r)]
	for i := range r {
		r[i] = math.Float32bits(f(math.Float32frombits(x[i]), math.Float32frombits(y[i])))
	}
}

func compare(r, x, y []uint32, f func(a, b float32) bool) {
	x, y = x[:len(r)], y[:len(r)]
	for i := range r {
		r[i] = truth(f(math.Float32frombits(x[i]), math.Float32frombits(y[i])))
	}
}

func ints(r, x, y []uint32, f func(a, b uint32) uint32) {
	x, y = x[:len(r)], y[:len(r)]
	for i := range r {
		r[i] = f(x[i], y[i])
	}
}

func truth(t bool) uint32 {
	if t {
		return 1
	}
	return 0
}

func eval3(op Op, r, x, y, z []uint32) {
	x, y, z = x[:len(r)], y[:len(r)], z[:len(r)]
	switch op {
	case OpFMA:
		for i := range r {
			r[i] = math.Float32bits(fma(math.Float32frombits(x[i]), math.Float32frombits(y[i]), math.Float32frombits(z[i])))
		}
	case OpFNMA:
		for i := range r {
			r[i] = math.Float32bits(fma(-math.Float32frombits(x[i]), math.Float32frombits(y[i]), math.Float32frombits(z[i])))
		}
	case OpSelect:
		for i := range r {
			r[i] = z[i]
			if x[i] != 0 {
				r[i] = y[i]
			}
		}
	default:
		panic("unknown operation")
	}
}

// fma rounds x·y + z once. The product is exact in float64; rounding the sum to odd there makes the second rounding right:
// Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008.
func fma(x, y, z float32) float32 {
	p, c := float64(x)*float64(y), float64(z)
	s := p + c
	if math.IsNaN(s) || math.IsInf(s, 0) {
		return float32(s)
	}
	t := s - p
	e := (p - (s - t)) + (c - t) // what the sum lost
	if bits := math.Float64bits(s); e != 0 && bits&1 == 0 {
		if (e > 0) == (s > 0) {
			bits++
		} else {
			bits--
		}
		s = math.Float64frombits(bits)
	}
	return float32(s)
}
