package parse

import (
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/ptx/ir"
)

// maxBytes limits the size of a variable.
const maxBytes = 1 << 40

// variable reads what stands between a state space and the name: alignment, vector, type, pointer attributes.
func (p *parser) variable(space token) ir.Var {
	v := ir.Var{Space: ir.SpaceNamed(ir.Mod(p.text(space)[1:]))}
	for p.peek().kind == dot {
		t := p.next()
		switch word := p.text(t)[1:]; word {
		case "align":
			n := p.next()
			o := ir.Operand{}
			if n.kind == number {
				o = p.literal(n)
			}
			if o.Kind != ir.IntOperand || bits.OnesCount64(o.Bits) != 1 || o.Bits > 1<<20 {
				p.failAt(n.off, ".align takes a power of two, found %s", p.describe(n))
			}
			if v.Ptr {
				v.PtrAlign = int(o.Bits)
			} else {
				v.Align = int(o.Bits)
			}
		case "v2", "v4":
			v.Vec = int(word[1] - '0')
		case "ptr":
			v.Ptr = true
			if v.Space != ir.ParamSpace {
				p.failAt(t.off, ".ptr belongs to parameters")
			}
		case "global", "const", "local", "shared":
			if !v.Ptr {
				p.failAt(t.off, "a second state space")
			}
			v.PtrSpace = ir.SpaceNamed(ir.Mod(word))
		case "attribute":
			p.expect('(', "( of .attribute")
			if !p.acceptDot(".managed") {
				p.unsupportedAt(t.off, ".attribute(%s) is not supported, only .managed is", p.describe(p.peek()))
			}
			p.expect(')', ") of .attribute")
			if v.Managed = true; v.Space != ir.GlobalSpace {
				p.failAt(t.off, "a managed variable has to be in the global space")
			}
		default:
			typ, ok := ir.TypeNamed(word)
			if !ok || !declarable(typ) || typ == ir.Pred && v.Space != ir.RegSpace ||
				typ.IsOpaque() && v.Space != ir.GlobalSpace && v.Space != ir.ParamSpace {
				p.failAt(t.off, ".%s is no type that a variable can have", word)
			}
			if v.Type != ir.NoType {
				p.failAt(t.off, "a second type")
			}
			v.Type = typ
		}
	}
	if v.Type == ir.NoType {
		p.failAt(p.peek().off, "a type such as .u32 expected, found %s", p.describe(p.peek()))
	}
	if v.Vec*v.Type.Bits() > 128 {
		p.failAt(p.peek().off, "a vector of more than 128 bits")
	}
	return v
}

// declarable tells the fundamental types.
func declarable(t ir.Type) bool {
	switch t {
	case ir.TexRef, ir.SamplerRef, ir.SurfRef, ir.Pred, ir.B8, ir.B16, ir.B32, ir.B64, ir.B128, ir.U8, ir.U16, ir.U32, ir.U64, ir.S8, ir.S16, ir.S32, ir.S64,
		ir.F16, ir.F16x2, ir.F32, ir.F64:
		return true
	}
	return false
}

// declarator reads a name with its dimensions into v, and returns the name's token.
func (p *parser) declarator(v *ir.Var) token {
	t := p.expect(ident, "a name")
	v.Name, v.Pos = p.text(t), p.pos(t.off)
	size := int64(max(1, v.Type.Size()) * max(1, v.Vec))
	for p.peek().kind == '[' {
		open := p.next()
		if p.accept(']') {
			if v.Dims != nil {
				p.failAt(open.off, "only the first dimension may be left open")
			}
			v.Dims = append(v.Dims, 0)
			continue
		}
		n := p.integer("a dimension", 1, maxBytes)
		p.expect(']', "the ] of the dimension")
		v.Dims = append(v.Dims, int(n))
		if hi, lo := bits.Mul64(uint64(size), uint64(n)); hi != 0 || lo > maxBytes {
			p.failAt(open.off, "%s has more than 2^40 bytes", v.Name)
		}
		size *= n
	}
	if v.Space == ir.RegSpace && v.Dims != nil {
		p.failAt(t.off, "registers do not form arrays")
	}
	return t
}

// moduleVars reads the rest of a declaration of variables of the module.
func (p *parser) moduleVars(space token, link ir.Linkage) {
	proto := p.variable(space)
	for first := true; first || p.accept(','); first = false {
		v := proto
		v.Linkage = link
		t := p.declarator(&v)
		p.reserved(t)
		p.initial(&v)
		if len(v.Dims) > 0 && v.Dims[0] == 0 && link != ir.Extern {
			p.failAt(t.off, "%s needs a size: only .extern variables leave it open", v.Name)
		}
		p.declare(t.off, v.Name, false, link != ir.Extern, len(p.module.m.Vars))
		p.module.m.Vars = append(p.module.m.Vars, v)
	}
	p.expect(';', "a semicolon")
}

// reserved fails for names that PTX has already given away.
func (p *parser) reserved(t token) {
	name := p.text(t)
	if _, ok := ir.Special(name); ok || name == "_" || name == "WARP_SZ" || isVectorSpecial(name) {
		p.failAt(t.off, "%s is a name of PTX itself", name)
	}
}

func isVectorSpecial(name string) bool {
	info, ok := ir.Special(name + ".x")
	return ok && info.Vector
}

// initial reads "= …", if there is one, and gives an open first dimension its length.
func (p *parser) initial(v *ir.Var) {
	if !p.accept('=') {
		return
	}
	if v.Type.IsOpaque() {
		p.fields(v)
		return
	}
	shape := slices.Clone(v.Dims)
	if v.Vec > 0 {
		shape = append(shape, v.Vec)
	}
	n := 0 // elements up to the last one given
	if len(shape) == 0 {
		v.Init = []ir.Init{p.element(v.Type)}
		return
	}
	n = p.initList(v, shape, 0)
	if v.Dims != nil && v.Dims[0] == 0 {
		inner := 1
		for _, d := range shape[1:] {
			inner *= d
		}
		v.Dims[0] = (n + inner - 1) / inner
	}
	if len(v.Init) == 0 {
		v.Init = nil
	}
}

// initList reads a list in braces whose first element is the base-th of the variable, and returns the number of elements
// after base that it covers.
func (p *parser) initList(v *ir.Var, shape []int, base int) int {
	open := p.expect('{', "{")
	inner := 1
	for _, d := range shape[1:] {
		inner *= d
	}
	n := 0
	for p.peek().kind != '}' {
		if n > 0 {
			p.expect(',', "a comma or }")
		}
		if n++; shape[0] > 0 && n > shape[0] {
			p.failAt(open.off, "more than %d elements", shape[0])
		}
		at := base + (n-1)*inner
		if at > len(p.toks)+1<<16 { // a short text may not ask for much memory
			p.failAt(open.off, "an initial value with too large gaps")
		}
		if len(shape) > 1 {
			p.initList(v, shape[1:], at)
			continue
		}
		e := p.element(v.Type)
		for len(v.Init) < at {
			v.Init = append(v.Init, ir.Init{})
		}
		v.Init = append(v.Init, e)
	}
	if close := p.next(); v.Vec > 0 && len(shape) == 1 && n != v.Vec {
		p.failAt(close.off, "a vector of %d has to be given all its elements", v.Vec)
	}
	return n * inner
}

// element reads one element of an initial value of the type.
func (p *parser) element(typ ir.Type) ir.Init {
	t := p.peek()
	if t.kind == ident && p.text(t) != "WARP_SZ" {
		return p.symbolElement(typ)
	}
	if t.kind == number && strings.HasPrefix(strings.ToLower(p.text(t)), "0f") {
		p.next()
		o := p.literal(t)
		switch typ {
		case ir.F32:
			return ir.Init{Bits: o.Bits}
		case ir.F64:
			return ir.Init{Bits: math.Float64bits(float64(math.Float32frombits(uint32(o.Bits))))}
		}
		p.failAt(t.off, "a floating-point value for a variable of type .%s", typ)
	}
	if n := p.at(1); t.kind == number && n.kind == '(' { // 0xFF00(x): a byte of an address
		p.next()
		return p.byteElement(t, typ)
	}
	v := p.constant()
	switch {
	case v.float && typ == ir.F32:
		return ir.Init{Bits: uint64(math.Float32bits(float32(v.f())))}
	case v.float && typ == ir.F64:
		return ir.Init{Bits: v.bits}
	case v.float:
		p.failAt(t.off, "a floating-point value for a variable of type .%s", typ)
	case typ.IsFloat():
		p.failAt(t.off, "an integer as value of a variable of type .%s; write it as a floating-point number", typ)
	case typ.Bits() < 64:
		v.bits &= 1<<typ.Bits() - 1
	}
	return ir.Init{Bits: v.bits}
}

// byteElement reads the address of which the mask t selects a byte.
func (p *parser) byteElement(t token, typ ir.Type) ir.Init {
	o := p.literal(t)
	if typ != ir.U8 || o.Kind != ir.IntOperand || o.Bits == 0 || o.Bits>>(bits.TrailingZeros64(o.Bits)&^7) != 0xff {
		p.failAt(t.off, "%s( ) takes a byte, as of 0xFF00, of an address, for variables of type .u8", p.text(t))
	}
	p.expect('(', "(")
	e := p.symbolElement(ir.U64)
	p.expect(')', ")")
	e.Mask = o.Bits
	return e
}

// symbolElement reads the address of a symbol: x, x+4, generic(x)+4.
func (p *parser) symbolElement(typ ir.Type) ir.Init {
	t := p.next()
	var e ir.Init
	if p.text(t) == "generic" && p.accept('(') {
		e.Generic = true
		t = p.expect(ident, "a variable")
		p.expect(')', ")")
	} else if p.peek().kind == '(' {
		p.unsupportedAt(t.off, "%s( ) in an initial value is not supported", p.text(t))
	}
	e.Sym = p.text(t)
	e.Bits = uint64(p.offset())
	if typ.IsFloat() || typ.Bits() < 32 || typ.Bits() > 64 {
		p.failAt(t.off, "an address as value of a variable of type .%s", typ)
	}
	p.module.inits = append(p.module.inits, mention{t.off, e.Sym})
	return e
}

// offset reads "+ n - m …", nothing being 0.
func (p *parser) offset() int64 {
	sum := int64(0)
	for {
		t := p.peek()
		if t.kind != '+' && t.kind != '-' {
			return sum
		}
		p.next()
		v := p.binary(len(levels)-1, 0)
		if v.float {
			p.failAt(t.off, "a floating-point number as offset")
		}
		if t.kind == '-' {
			v.bits = -v.bits
		}
		sum += int64(v.bits)
	}
}
