package parse

import (
	"math"
	"strconv"
	"strings"

	"github.com/wavelane/wavelane/ptx/ir"
)

// value is a constant: a 64-bit integer, signed or unsigned, or a float64.
type value struct {
	bits     uint64
	unsigned bool
	float    bool
}

func (v value) f() float64 { return math.Float64frombits(v.bits) }

func (v value) truth() bool {
	if v.float {
		return v.f() != 0
	}
	return v.bits != 0
}

func ofFloat(f float64) value { return value{bits: math.Float64bits(f), float: true} }

func ofBool(b bool) value {
	if b {
		return value{bits: 1}
	}
	return value{}
}

// maxDepth limits recursion, so that hostile text cannot exhaust the stack.
const maxDepth = 200

// constant reads a constant expression.
func (p *parser) constant() value { return p.ternary(0) }

// integer reads a constant expression that has to be an integer from lo to hi.
func (p *parser) integer(what string, lo, hi int64) int64 {
	t := p.peek()
	v := p.constant()
	if n := int64(v.bits); v.float || n < lo || n > hi || v.unsigned && n < 0 {
		p.failAt(t.off, "%s has to be an integer from %d to %d", what, lo, hi)
	}
	return int64(v.bits)
}

func (p *parser) ternary(depth int) value {
	if depth > maxDepth {
		p.failAt(p.peek().off, "this expression is nested too deeply")
	}
	c := p.binary(0, depth)
	if !p.accept('?') {
		return c
	}
	a := p.ternary(depth + 1)
	p.expect(':', "the colon of ?:")
	b := p.ternary(depth + 1)
	if c.truth() {
		return a
	}
	return b
}

// levels are the binary operators by precedence, as in C.
var levels = [][]kind{{lor}, {land}, {'|'}, {'^'}, {'&'}, {eql, neq}, {'<', '>', leq, geq}, {shl, shr}, {'+', '-'}, {'*', '/', '%'}}

func (p *parser) binary(level, depth int) value {
	if level == len(levels) {
		return p.unary(depth)
	}
	x := p.binary(level+1, depth)
	for {
		t := p.peek()
		found := false
		for _, k := range levels[level] {
			found = found || t.kind == k
		}
		if !found {
			return x
		}
		p.next()
		x = p.apply(t, x, p.binary(level+1, depth))
	}
}

func (p *parser) apply(op token, x, y value) value {
	switch op.kind {
	case land:
		return ofBool(x.truth() && y.truth())
	case lor:
		return ofBool(x.truth() || y.truth())
	}
	if x.float || y.float {
		if !x.float || !y.float {
			p.failAt(op.off, "%s of an integer and a floating-point number", p.text(op))
		}
		return p.applyFloat(op, x.f(), y.f())
	}
	a, b, unsigned := x.bits, y.bits, x.unsigned || y.unsigned
	less := int64(a) < int64(b)
	if unsigned {
		less = a < b
	}
	r := value{unsigned: unsigned}
	switch op.kind {
	case '+':
		r.bits = a + b
	case '-':
		r.bits = a - b
	case '*':
		r.bits = a * b
	case '/', '%':
		if b == 0 {
			p.failAt(op.off, "division by zero")
		}
		r.bits = divide(a, b, unsigned, op.kind == '%')
	case '|':
		r.bits = a | b
	case '^':
		r.bits = a ^ b
	case '&':
		r.bits = a & b
	case shl:
		r = value{bits: a << min(b, 64), unsigned: x.unsigned}
	case shr:
		r = value{bits: uint64(int64(a) >> min(b, 63)), unsigned: x.unsigned}
		if x.unsigned {
			r.bits = a >> min(b, 64)
		}
	case eql:
		return ofBool(a == b)
	case neq:
		return ofBool(a != b)
	case '<':
		return ofBool(less)
	case geq:
		return ofBool(!less)
	case '>':
		return ofBool(!less && a != b)
	case leq:
		return ofBool(less || a == b)
	}
	return r
}

func divide(a, b uint64, unsigned, rest bool) uint64 {
	switch {
	case unsigned && rest:
		return a % b
	case unsigned:
		return a / b
	case rest:
		return uint64(int64(a) % int64(b))
	}
	return uint64(int64(a) / int64(b))
}

func (p *parser) applyFloat(op token, x, y float64) value {
	switch op.kind {
	case '+':
		return ofFloat(x + y)
	case '-':
		return ofFloat(x - y)
	case '*':
		return ofFloat(x * y)
	case '/':
		return ofFloat(x / y)
	case eql:
		return ofBool(x == y)
	case neq:
		return ofBool(x != y)
	case '<':
		return ofBool(x < y)
	case '>':
		return ofBool(x > y)
	case leq:
		return ofBool(x <= y)
	case geq:
		return ofBool(x >= y)
	}
	p.failAt(op.off, "%s does not apply to floating-point numbers", p.text(op))
	return value{}
}

func (p *parser) unary(depth int) value {
	if depth > maxDepth {
		p.failAt(p.peek().off, "this expression is nested too deeply")
	}
	t := p.next()
	switch t.kind {
	case '+':
		return p.unary(depth + 1)
	case '-':
		v := p.unary(depth + 1)
		if v.float {
			return value{bits: v.bits ^ 1<<63, float: true}
		}
		return value{bits: -v.bits, unsigned: v.unsigned}
	case '!':
		return ofBool(!p.unary(depth + 1).truth())
	case '~':
		v := p.unary(depth + 1)
		if v.float {
			p.failAt(t.off, "~ does not apply to floating-point numbers")
		}
		return value{bits: ^v.bits, unsigned: v.unsigned}
	case '(':
		if w := p.peek(); w.kind == dot { // a cast
			p.next()
			p.expect(')', ") after the type")
			v := p.unary(depth + 1)
			if s := p.text(w); s != ".s64" && s != ".u64" || v.float {
				p.failAt(w.off, "a cast to %s; constants are cast to .s64 and .u64 only, and from integers", p.text(w))
			}
			return value{bits: v.bits, unsigned: p.text(w) == ".u64"}
		}
		v := p.ternary(depth + 1)
		p.expect(')', "the ) that closes the expression")
		return v
	case number:
		o := p.literal(t)
		if o.Kind == ir.F32Operand {
			p.failAt(t.off, "%s inside an expression; only 0d literals and decimal numbers can be calculated with", p.text(t))
		}
		return value{bits: o.Bits, float: o.Kind == ir.F64Operand, unsigned: o.Kind == ir.IntOperand && p.isUnsigned(t, o.Bits)}
	case ident:
		if p.text(t) == "WARP_SZ" {
			return value{bits: 32}
		}
	}
	p.failAt(t.off, "a constant expected, found %s", p.describe(t))
	return value{}
}

func (p *parser) isUnsigned(t token, bits uint64) bool {
	last := p.src[t.end-1]
	return last == 'U' || last == 'u' || bits >= 1<<63
}

// literal is the number as an operand: IntOperand, F32Operand or F64Operand.
func (p *parser) literal(t token) ir.Operand {
	s := p.text(t)
	prefix := strings.ToLower(s[:min(2, len(s))])
	switch {
	case prefix == "0f" || prefix == "0d":
		o := ir.Operand{Kind: ir.F32Operand}
		digits := 8
		if prefix == "0d" {
			o.Kind, digits = ir.F64Operand, 16
		}
		var err error
		if o.Bits, err = strconv.ParseUint(s[2:], 16, 64); err != nil || len(s) != digits+2 {
			p.failAt(t.off, "%s: %d hexadecimal digits have to follow %s", s, digits, s[:2])
		}
		return o
	case strings.Contains(s, ".") || prefix != "0x" && prefix != "0b" && strings.ContainsAny(s, "eE"):
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			p.failAt(t.off, "%s is no number", s)
		}
		return ir.Operand{Kind: ir.F64Operand, Bits: math.Float64bits(f)}
	}
	digits, base := strings.TrimRight(s, "uU"), 10
	switch {
	case len(s)-len(digits) > 1:
		p.failAt(t.off, "%s is no number", s)
	case prefix == "0x":
		digits, base = digits[2:], 16
	case prefix == "0b":
		digits, base = digits[2:], 2
	case len(digits) > 1 && digits[0] == '0':
		base = 8
	}
	bits, err := strconv.ParseUint(digits, base, 64)
	if err != nil {
		p.failAt(t.off, "%s is no integer of 64 bits", s)
	}
	return ir.Operand{Kind: ir.IntOperand, Bits: bits}
}
