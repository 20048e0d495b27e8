package arm64

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

// value is a node of a body in terms of the machine: a mnemonic of the encoder's table or one of the names below.
type value struct {
	name string
	imm  uint32
	args []*value // with fmla and fmls the addend comes first
}

// Values that are no instruction of their own.
const (
	input     = "input"     // element i of input imm
	param     = "param"     // parameter imm
	constant  = "constant"  // the bits imm
	oldAcc    = "acc"       // accumulator imm before this element
	selection = "selection" // args[0] ? args[1] : args[2], bit by bit
)

// shared says whether all copies of an unrolled body have the value in common.
func (v *value) shared() bool { return v.name == param || v.name == constant }

// body is an ir.Body in terms of the machine.
type body struct {
	values []*value // operands before users; no params, constants and old accumulators
	store  *value
	guard  *value
	passes bool     // the guard holds where its value is false
	acc    []*value // the accumulators
	next   []*value // and their values after the element
}

// lowering makes values; equal ones are one.
type lowering struct {
	known map[string]*value
	made  []*value
}

func lower(b *ir.Body) *body {
	l := &lowering{known: map[string]*value{}}
	of := make([]*value, len(b.Nodes))
	for i, n := range b.Nodes {
		of[i] = l.node(n, of)
	}
	at := func(n *ir.Node) *value {
		if n == nil {
			return nil
		}
		return of[n.ID]
	}
	m := &body{store: at(b.Store), guard: at(b.Guard)}
	for k, a := range b.Accumulators {
		m.acc = append(m.acc, l.make(oldAcc, uint32(k)))
		m.next = append(m.next, at(a.Next))
	}
	if m.guard != nil && m.guard.name == "mvn" { // one inversion does for all copies
		m.guard, m.passes = m.guard.args[0], true
	}
	m.order(l.made)
	return m
}

// order lists the values that are used. The guard's come first, so that a step that it stops has changed nothing; loads stand
// before their first user.
func (b *body) order(made []*value) {
	listed := map[*value]bool{}
	list := func(v *value) {
		if !listed[v] && !v.shared() && v.name != oldAcc {
			b.values = append(b.values, v)
		}
		listed[v] = true
	}
	add := func(roots ...*value) {
		needed := map[*value]bool{}
		var need func(v *value)
		need = func(v *value) {
			if v == nil || needed[v] {
				return
			}
			needed[v] = true
			for _, a := range v.args {
				need(a)
			}
		}
		for _, r := range roots {
			need(r)
		}
		for _, v := range made {
			if !needed[v] || v.name == input {
				continue
			}
			for _, a := range v.args {
				if a.name == input {
					list(a)
				}
			}
			list(v)
		}
		for _, r := range roots {
			if r != nil {
				list(r) // an input that is stored as it is
			}
		}
	}
	add(b.guard)
	add(append([]*value{b.store}, b.next...)...)
}

func (l *lowering) make(name string, imm uint32, args ...*value) *value {
	key := fmt.Sprint(name, imm)
	for _, a := range args {
		key += fmt.Sprintf(" %p", a)
	}
	if v := l.known[key]; v != nil {
		return v
	}
	v := &value{name, imm, args}
	l.known[key] = v
	l.made = append(l.made, v)
	return v
}

// direct are the operations that are one instruction with the same operands.
var direct = map[ir.Op]string{
	ir.OpAdd: "fadd", ir.OpSub: "fsub", ir.OpMul: "fmul", ir.OpDiv: "fdiv", ir.OpSqrt: "fsqrt",
	ir.OpMin: "fmin", ir.OpMax: "fmax", ir.OpMinNaN: "fmin", ir.OpMaxNaN: "fmax",
	ir.OpFloor: "frintm", ir.OpCeil: "frintp", ir.OpTrunc: "frintz", ir.OpNearest: "frintn",
	ir.OpEQ: "fcmeq", ir.OpIXor: "eor", ir.OpIAdd: "add", ir.OpISub: "sub", ir.OpIGT: "cmgt", ir.OpIEQ: "cmeq",
	ir.OpToInt: "fcvtns", ir.OpTruncTo: "fcvtzs", ir.OpFromInt: "scvtf",
	ir.OpShl: "shl", ir.OpShrL: "ushr", ir.OpShrA: "sshr",
}

const signBit = 1 << 31

func (v *value) is(bits uint32) bool { return v.name == constant && v.imm == bits }

// node translates a node whose operands are translated already.
func (l *lowering) node(n *ir.Node, of []*value) *value {
	var a []*value
	for _, arg := range n.Args {
		a = append(a, of[arg.ID])
	}
	switch n.Op {
	case ir.OpInput:
		return l.make(input, n.Imm)
	case ir.OpParam:
		return l.make(param, n.Imm)
	case ir.OpConst:
		return l.make(constant, n.Imm)
	case ir.OpAcc:
		return l.make(oldAcc, n.Imm)
	case ir.OpBits, ir.OpFloat:
		return a[0]
	case ir.OpFMA:
		return l.make("fmla", 0, a[2], a[0], a[1])
	case ir.OpFNMA:
		return l.make("fmls", 0, a[2], a[0], a[1])
	case ir.OpLT:
		return l.make("fcmgt", 0, a[1], a[0])
	case ir.OpLE:
		return l.make("fcmge", 0, a[1], a[0])
	case ir.OpNE:
		return l.make("mvn", 0, l.make("fcmeq", 0, a...))
	case ir.OpMaskNot:
		return l.not(a[0])
	case ir.OpMaskAnd, ir.OpIAnd:
		return l.and(a[0], a[1])
	case ir.OpMaskOr, ir.OpIOr:
		return l.or(a[0], a[1])
	case ir.OpIAndNot:
		return l.make("bic", 0, a...)
	case ir.OpSelect:
		return l.choose(a[0], a[1], a[2])
	case ir.OpIXor:
		for i, c := range a {
			if c.is(signBit) {
				return l.make("fneg", 0, a[1-i])
			}
		}
	}
	name := direct[n.Op]
	if name == "" {
		panic(fmt.Sprintf("operation %d has no translation", n.Op))
	}
	return l.make(name, n.Imm, a...)
}

func (l *lowering) not(x *value) *value {
	if x.name == "mvn" {
		return x.args[0]
	}
	return l.make("mvn", 0, x)
}

func (l *lowering) and(x, y *value) *value {
	for _, p := range [][2]*value{{x, y}, {y, x}} {
		switch {
		case p[1].is(math.MaxInt32):
			return l.make("fabs", 0, p[0])
		case p[1].name == "mvn":
			return l.make("bic", 0, p[0], p[1].args[0])
		}
	}
	return l.make("and", 0, x, y)
}

func (l *lowering) or(x, y *value) *value {
	for _, p := range [][2]*value{{x, y}, {y, x}} {
		if p[1].name == "mvn" {
			return l.make("orn", 0, p[0], p[1].args[0])
		}
		// (a &^ c) | (b & c) takes the bits of b where c has ones: how signs are copied.
		if p[1].name != "and" {
			continue
		}
		for i, c := range p[1].args {
			if p[0].name == "bic" && p[0].args[1] == c || p[0].name == "fabs" && c.is(signBit) {
				return l.make(selection, 0, c, p[1].args[1-i], p[0].args[0])
			}
		}
	}
	return l.make("orr", 0, x, y)
}

func (l *lowering) choose(mask, yes, no *value) *value {
	switch {
	case mask.name == "mvn":
		return l.choose(mask.args[0], no, yes)
	case no.is(0):
		return l.make("and", 0, mask, yes)
	case yes.is(0):
		return l.make("bic", 0, no, mask)
	}
	return l.make(selection, 0, mask, yes, no)
}
