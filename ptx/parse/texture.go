package parse

import "github.com/wavelane/wavelane/ptx/ir"

// fields reads what a declaration of a texture, sampler or surface says about it: {filter_mode = linear, width = 64}.
func (p *parser) fields(v *ir.Var) {
	p.expect('{', "{")
	for first := true; first || p.accept(','); first = false {
		name := p.expect(ident, "a field such as filter_mode")
		p.expect('=', "=")
		value := p.next()
		if value.kind != ident && value.kind != number {
			p.failAt(value.off, "a value of %s expected, found %s", p.text(name), p.describe(value))
		}
		v.Fields = append(v.Fields, p.text(name)+" = "+p.text(value))
	}
	p.expect('}', "} or a comma")
}

// oldTexture reads the rest of .tex .u32 name;, which stands for .global .texref name;.
func (p *parser) oldTexture(link ir.Linkage) {
	p.expect(dot, "a type such as .u32")
	for first := true; first || p.accept(','); first = false {
		v := ir.Var{Space: ir.GlobalSpace, Type: ir.TexRef, Linkage: link}
		t := p.declarator(&v)
		p.reserved(t)
		p.declare(t.off, v.Name, false, link != ir.Extern, len(p.module.m.Vars))
		p.module.m.Vars = append(p.module.m.Vars, v)
	}
	p.expect(';', "a semicolon")
}
