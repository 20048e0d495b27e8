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
	if acc == nil {
		for _, a := range b.Accumulators {
			acc = append(acc, math.Float32frombits(a.Init))
		}
	}
	v := make([]uint32, len(b.Nodes))
	for i, n := range b.Nodes {
		v[i] = eval(n, v, in, params, acc)
	}
	var l Lane
	if b.Store != nil {
		l.Store = math.Float32frombits(v[b.Store.ID])
	}
	if b.Guard != nil {
		l.Guard = v[b.Guard.ID] != 0
	}
	for _, a := range b.Accumulators {
		l.Acc = append(l.Acc, math.Float32frombits(v[a.Next.ID]))
	}
	return l
}

func eval(n *Node, v []uint32, in, params, acc []float32) uint32 {
	f := func(k int) float32 { return math.Float32frombits(v[n.Args[k].ID]) }
	d := func(k int) float64 { return float64(f(k)) }
	i := func(k int) int32 { return int32(v[n.Args[k].ID]) }
	round := func(x float64) uint32 { return math.Float32bits(float32(x)) }
	truth := func(t bool) uint32 {
		if t {
			return 1
		}
		return 0
	}
	switch n.Op {
	case OpInput:
		return math.Float32bits(in[n.Imm])
	case OpParam:
		return math.Float32bits(params[n.Imm])
	case OpConst:
		return n.Imm
	case OpAcc:
		return math.Float32bits(acc[n.Imm])
	case OpAdd:
		return math.Float32bits(f(0) + f(1))
	case OpSub:
		return math.Float32bits(f(0) - f(1))
	case OpMul:
		return math.Float32bits(f(0) * f(1))
	case OpDiv:
		return math.Float32bits(f(0) / f(1))
	case OpSqrt:
		return round(math.Sqrt(d(0)))
	case OpFMA:
		return math.Float32bits(fma(f(0), f(1), f(2)))
	case OpFNMA:
		return math.Float32bits(fma(-f(0), f(1), f(2)))
	case OpMin: // of the open cases this takes one at random to the reader: the second operand
		if f(0) < f(1) {
			return math.Float32bits(f(0))
		}
		return math.Float32bits(f(1))
	case OpMax:
		if f(0) > f(1) {
			return math.Float32bits(f(0))
		}
		return math.Float32bits(f(1))
	case OpMinNaN:
		return math.Float32bits(min(f(0), f(1)))
	case OpMaxNaN:
		return math.Float32bits(max(f(0), f(1)))
	case OpFloor:
		return round(math.Floor(d(0)))
	case OpCeil:
		return round(math.Ceil(d(0)))
	case OpTrunc:
		return round(math.Trunc(d(0)))
	case OpNearest:
		return round(math.RoundToEven(d(0)))
	case OpLT:
		return truth(f(0) < f(1))
	case OpLE:
		return truth(f(0) <= f(1))
	case OpEQ:
		return truth(f(0) == f(1))
	case OpNE:
		return truth(f(0) != f(1))
	case OpMaskAnd, OpIAnd:
		return v[n.Args[0].ID] & v[n.Args[1].ID]
	case OpMaskOr, OpIOr:
		return v[n.Args[0].ID] | v[n.Args[1].ID]
	case OpMaskNot:
		return v[n.Args[0].ID] ^ 1
	case OpSelect:
		if v[n.Args[0].ID] != 0 {
			return v[n.Args[1].ID]
		}
		return v[n.Args[2].ID]
	case OpBits, OpFloat:
		return v[n.Args[0].ID]
	case OpIXor:
		return v[n.Args[0].ID] ^ v[n.Args[1].ID]
	case OpIAndNot:
		return v[n.Args[0].ID] &^ v[n.Args[1].ID]
	case OpIAdd:
		return v[n.Args[0].ID] + v[n.Args[1].ID]
	case OpISub:
		return v[n.Args[0].ID] - v[n.Args[1].ID]
	case OpShl:
		return v[n.Args[0].ID] << n.Imm
	case OpShrL:
		return v[n.Args[0].ID] >> n.Imm
	case OpShrA:
		return uint32(i(0) >> n.Imm)
	case OpIGT:
		return truth(i(0) > i(1))
	case OpIEQ:
		return truth(i(0) == i(1))
	case OpToInt:
		return uint32(int32(math.RoundToEven(d(0))))
	case OpTruncTo:
		return uint32(int32(f(0)))
	case OpFromInt:
		return math.Float32bits(float32(i(0)))
	}
	panic("unknown operation")
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
