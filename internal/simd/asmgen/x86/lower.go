package x86

import (
	"math"
	"slices"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

// Predicates of comparisons.
const (
	cmpEQ    = 0
	cmpLT    = 1
	cmpLE    = 2
	cmpUnord = 3
	cmpNE    = 4
	cmpOrd   = 7
	cmpGE    = 13 // of VEX alone, as are those from 8 on
	cmpGT    = 14
	intGT    = 6 // of VPCMPD
)

// lowering turns the nodes of a body into instructions of a set.
type lowering struct {
	*set
	body      *ir.Body
	users     map[*ir.Node][]*ir.Node
	invariant map[*ir.Node]bool
	cone      map[*ir.Node]bool // what the guard depends on
	logic     map[*ir.Node]*ternary
	absorbed  map[*ir.Node]bool // computed as part of its user

	flags map[int]*value   // of accumulators, see findFlags
	held  map[int][]*value // inputs that are in registers, by copy
	link  bool             // of a chain, which has the bits of the kernel: the accumulator is an operand like others

	values   []*value
	consts   map[uint32]*value
	params   map[int]*value
	once     map[*ir.Node]*value // values of invariant nodes
	prologue []*instr
}

func lower(s *set, body *ir.Body) *lowering {
	l := &lowering{
		set: s, body: body,
		users: map[*ir.Node][]*ir.Node{}, invariant: map[*ir.Node]bool{}, cone: map[*ir.Node]bool{},
		flags: map[int]*value{}, held: map[int][]*value{}, logic: map[*ir.Node]*ternary{}, absorbed: map[*ir.Node]bool{},
		consts: map[uint32]*value{}, params: map[int]*value{}, once: map[*ir.Node]*value{},
	}
	for _, n := range body.Nodes {
		fixed := n.Op != ir.OpInput && n.Op != ir.OpAcc
		for _, a := range n.Args {
			l.users[a] = append(l.users[a], n)
			fixed = fixed && l.invariant[a]
		}
		l.invariant[n] = fixed
	}
	var mark func(n *ir.Node)
	mark = func(n *ir.Node) {
		if n != nil && !l.cone[n] {
			l.cone[n] = true
			for _, a := range n.Args {
				mark(a)
			}
		}
	}
	mark(body.Guard)
	if s.masks {
		l.findLogic()
	}
	l.findFlags()
	// Invariants come first: what the loop uses of them is computed before it.
	p := &piece{lowering: l, of: map[*ir.Node]*value{}, prologue: true}
	for _, n := range body.Nodes {
		if l.invariant[n] && !leaf(n) && !isCast(n) && l.usedInLoop(n) {
			p.value(n)
		}
	}
	l.prologue = p.code
	return l
}

func leaf(n *ir.Node) bool { return n.Op == ir.OpConst || n.Op == ir.OpParam }

// usedInLoop says whether an invariant node's value is needed by anything that is not invariant.
func (l *lowering) usedInLoop(n *ir.Node) bool {
	if l.isRoot(n) {
		return true
	}
	return slices.ContainsFunc(l.users[n], func(u *ir.Node) bool {
		return !l.invariant[u] || isCast(u) && l.usedInLoop(u)
	})
}

func isCast(n *ir.Node) bool { return n.Op == ir.OpBits || n.Op == ir.OpFloat }

// isRoot says whether a node is a result of the body.
func (l *lowering) isRoot(n *ir.Node) bool {
	return n == l.body.Store || n == l.body.Guard ||
		slices.ContainsFunc(l.body.Accumulators, func(a ir.Accumulator) bool { return a.Next == n })
}

func (l *lowering) new(k kind, mask bool) *value {
	v := &value{id: len(l.values), kind: k, mask: mask && l.masks}
	l.values = append(l.values, v)
	return v
}

func (l *lowering) constant(bits uint32) *value {
	if l.consts[bits] == nil {
		l.consts[bits] = l.new(constant, false)
		l.consts[bits].bits = bits
	}
	return l.consts[bits]
}

func (l *lowering) param(k int) *value {
	if l.params[k] == nil {
		l.params[k] = l.new(parameter, false)
		l.params[k].index = k
	}
	return l.params[k]
}

// piece is one copy of the body in a step of a loop.
type piece struct {
	*lowering
	copy     int
	prologue bool
	of       map[*ir.Node]*value
	accs     []*value // before the step
	code     []*instr
}

func (p *piece) emit(i instr) *value {
	if i.op != opStore && i.op != opTest {
		i.dst = p.new(temporary, i.op.givesMask())
	}
	i.copy = p.copy
	p.code = append(p.code, &i)
	return i.dst
}

// do emits an operation; do2 one whose operands may be exchanged.
func (p *piece) do(o op, args ...*value) *value { return p.emit(instr{op: o, args: args}) }
func (p *piece) do2(o op, args ...*value) *value {
	return p.emit(instr{op: o, args: args, commutes: true})
}

func (p *piece) cmp(predicate int, x, y *value) *value {
	i := instr{op: opCmp, args: []*value{x, y}, imm: predicate}
	switch {
	case predicate == cmpEQ || predicate == cmpNE || predicate == cmpUnord || predicate == cmpOrd:
		i.commutes, i.swapped = true, predicate
	case p.vex:
		i.commutes, i.swapped = true, map[int]int{cmpLT: cmpGT, cmpLE: cmpGE}[predicate]
	}
	return p.emit(i)
}

// maskedCmp is false where the mask is.
func (p *piece) maskedCmp(predicate int, x, y, mask *value) *value {
	return p.emit(instr{op: opMaskedCmp, args: []*value{x, y, mask}, imm: predicate})
}

// value returns the value of a node, computing it if that has not been done.
func (p *piece) value(n *ir.Node) *value {
	n = resolve(n)
	if v := p.of[n]; v != nil {
		return v
	}
	if v := p.once[n]; v != nil {
		return v
	}
	var v *value
	switch n.Op {
	case ir.OpConst:
		return p.constant(n.Imm)
	case ir.OpParam:
		return p.param(int(n.Imm))
	case ir.OpAcc:
		return p.accs[n.Imm]
	case ir.OpInput:
		if held := p.held[int(n.Imm)]; held != nil {
			return held[p.copy]
		}
		v = p.emit(instr{op: opLoad, input: int(n.Imm)})
	default:
		v = p.compute(n)
	}
	p.of[n] = v
	if p.prologue && p.usedInLoop(n) {
		v.kind = invariant
		p.once[n] = v
	}
	return v
}

func (p *piece) compute(n *ir.Node) *value {
	if t := p.logic[n]; t != nil {
		args := make([]*value, len(t.leaves))
		for i, a := range t.leaves {
			args[i] = p.value(a)
		}
		return p.emit(instr{op: opLogic, args: args, imm: t.table})
	}
	var a [3]*value
	arg := func(i int) *value {
		if a[i] == nil {
			a[i] = p.value(n.Args[i])
		}
		return a[i]
	}
	switch n.Op {
	case ir.OpSelect:
		return p.selects(n.Args[0], n.Args[1], n.Args[2])
	case ir.OpMaskNot:
		return p.not(p.value(n.Args[0]))
	case ir.OpMinNaN:
		return p.extremeNaN(opMin, opMaskedMin, n)
	case ir.OpMaxNaN:
		return p.extremeNaN(opMax, opMaskedMax, n)
	}
	for i := range n.Args {
		arg(i)
	}
	switch n.Op {
	case ir.OpAdd:
		return p.do2(opAdd, a[0], a[1])
	case ir.OpSub:
		return p.do(opSub, a[0], a[1])
	case ir.OpMul:
		return p.do2(opMul, a[0], a[1])
	case ir.OpDiv:
		return p.do(opDiv, a[0], a[1])
	case ir.OpSqrt:
		return p.do(opSqrt, a[0])
	case ir.OpFMA:
		return p.do(opFMA, a[0], a[1], a[2])
	case ir.OpFNMA:
		return p.do(opFNMA, a[0], a[1], a[2])
	case ir.OpMin:
		return p.do2(opMin, a[0], a[1])
	case ir.OpMax:
		return p.do2(opMax, a[0], a[1])
	case ir.OpNearest, ir.OpFloor, ir.OpCeil, ir.OpTrunc:
		const quiet = 8 // no exception for inexact results
		mode := map[ir.Op]int{ir.OpNearest: 0, ir.OpFloor: 1, ir.OpCeil: 2, ir.OpTrunc: 3}[n.Op]
		return p.emit(instr{op: opRound, args: a[:1], imm: mode | quiet})
	case ir.OpLT:
		return p.cmp(cmpLT, a[0], a[1])
	case ir.OpLE:
		return p.cmp(cmpLE, a[0], a[1])
	case ir.OpEQ:
		return p.cmp(cmpEQ, a[0], a[1])
	case ir.OpNE:
		return p.cmp(cmpNE, a[0], a[1])
	case ir.OpMaskAnd:
		return p.and(a[0], a[1])
	case ir.OpMaskOr:
		return p.or(a[0], a[1])
	case ir.OpIAnd, ir.OpIOr, ir.OpIXor:
		o := map[ir.Op][2]op{ir.OpIAnd: {opIAnd, opAnd}, ir.OpIOr: {opIOr, opOr}, ir.OpIXor: {opIXor, opXor}}[n.Op]
		return p.do2(o[p.domain(n)], a[0], a[1])
	case ir.OpIAndNot:
		if a[1].kind == constant {
			return p.do2([2]op{opIAnd, opAnd}[p.domain(n)], a[0], p.constant(^a[1].bits))
		}
		return p.do([2]op{opIAndNot, opAndNot}[p.domain(n)], a[1], a[0]) // the instruction inverts the first
	case ir.OpIAdd:
		return p.do2(opIAdd, a[0], a[1])
	case ir.OpISub:
		return p.do(opISub, a[0], a[1])
	case ir.OpShl:
		return p.emit(instr{op: opShl, args: a[:1], imm: int(n.Imm)})
	case ir.OpShrL:
		return p.emit(instr{op: opShrL, args: a[:1], imm: int(n.Imm)})
	case ir.OpShrA:
		return p.emit(instr{op: opShrA, args: a[:1], imm: int(n.Imm)})
	case ir.OpIGT:
		if p.masks {
			return p.emit(instr{op: opICmp, args: a[:2], imm: intGT, commutes: true, swapped: cmpLT})
		}
		return p.do(opIGT, a[0], a[1])
	case ir.OpIEQ:
		if p.masks {
			return p.emit(instr{op: opICmp, args: a[:2], imm: cmpEQ, commutes: true, swapped: cmpEQ})
		}
		return p.do2(opIEQ, a[0], a[1])
	case ir.OpToInt:
		return p.do(opToInt, a[0])
	case ir.OpTruncTo:
		return p.do(opTruncTo, a[0])
	case ir.OpFromInt:
		return p.do(opFromInt, a[0])
	}
	panic("x86: unknown operation")
}

// domain is 1 if the bits that a node computes are used as floats, which costs a cycle if integer instructions make them.
func (l *lowering) domain(n *ir.Node) int {
	for _, u := range l.users[n] {
		if u.Op == ir.OpFloat {
			return 1
		}
	}
	return 0
}

func (p *piece) and(x, y *value) *value {
	if p.masks {
		return p.do2(opKAnd, x, y)
	}
	return p.do2(opAnd, x, y)
}

func (p *piece) or(x, y *value) *value {
	if p.masks {
		return p.do2(opKOr, x, y)
	}
	return p.do2(opOr, x, y)
}

func (p *piece) not(x *value) *value {
	if p.masks {
		return p.do(opKNot, x)
	}
	return p.do2(opXor, x, p.constant(math.MaxUint32))
}

// selects gives lanes of x where the mask is true, else of y.
func (p *piece) selects(m, x, y *ir.Node) *value {
	for m.Op == ir.OpMaskNot {
		m, x, y = m.Args[0], y, x
	}
	return p.blend(p.value(m), p.value(x), p.value(y))
}

func (p *piece) blend(m, x, y *value) *value {
	zero := p.constant(0)
	switch {
	case p.masks && y == zero && x.kind != constant:
		return p.do(opKeep, x, m)
	case p.masks:
		return p.do(opBlend, y, x, m)
	case y == zero:
		return p.do2(opAnd, m, x)
	case x == zero:
		return p.do(opAndNot, m, y)
	case p.vex:
		return p.do(opBlend, y, x, m)
	}
	return p.do2(opOr, p.do2(opAnd, m, x), p.do(opAndNot, m, y))
}

// extremeNaN lowers MinNaN and MaxNaN. The instruction gives its second operand where either is NaN, so that only a NaN in the
// first needs care; that should not be the accumulator, for the sake of the chain from step to step.
func (p *piece) extremeNaN(o, masked op, n *ir.Node) *value {
	x, y := p.value(n.Args[0]), p.value(n.Args[1])
	if n.Imm == 1 {
		return p.do(o, x, y)
	}
	if x.kind == home && !p.link || y.kind == constant {
		x, y = y, x
	}
	if x.kind == constant && !math.IsNaN(float64(math.Float32frombits(x.bits))) {
		return p.do(o, x, y)
	}
	if p.masks {
		return p.do(masked, x, y, p.cmp(cmpOrd, x, x))
	}
	nan := p.cmp(cmpUnord, x, x) // all bits, which is a NaN as well
	return p.do2(opOr, p.do(o, x, y), nan)
}
