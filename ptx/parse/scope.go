package parse

import (
	"fmt"
	"strconv"

	"github.com/wavelane/wavelane/ptx/ir"
)

// function is what is known while a function is read.
type function struct {
	f     *ir.Func
	used  map[string]bool // names given away in the function
	count map[string]int  // of the names made from a stem
	scope *scope
	guard ir.Guard // of the instruction that is being read
	added bool     // the body has instructions that the text has not
}

// scope is a function's parameters, its body, or a block in braces inside.
type scope struct {
	outer  *scope
	names  map[string]*name
	ranges map[string]*numbered // by stem
	least  map[string]int       // by stem, the least number of a name that is declared by itself
	labels map[string]string    // by the name in the text, the unique one
	jumps  []jump               // to labels of this scope or of those around it
}

// name is what a name in a scope stands for: a register, a vector of registers, or a variable.
type name struct {
	reg    *register
	vector []*register
	isVar  bool
	sym    string // a variable's unique name
}

// register gets its number with the first mention.
type register struct {
	text  string
	typ   ir.Type
	id    ir.Reg
	fixed bool // a parameter: keeps its name
}

// numbered are registers declared as %r<100>. They come into being when mentioned.
type numbered struct {
	typ   ir.Type
	vec   int // 2 or 4 for vectors, else 0
	count int
}

// jump is a place in the body where a label's name is to be put.
type jump struct {
	mention
	instr, arg int
}

// registerName is a register, or the registers of a vector.
func registerName(text string, typ ir.Type, vec int, fixed bool) *name {
	if vec == 0 {
		return &name{reg: &register{text: text, typ: typ, fixed: fixed}}
	}
	n := &name{}
	for _, c := range "xyzw"[:vec] {
		n.vector = append(n.vector, &register{text: text + "_" + string(c), typ: typ, fixed: fixed})
	}
	return n
}

func newScope(outer *scope) *scope {
	return &scope{outer: outer, names: map[string]*name{}, ranges: map[string]*numbered{}, least: map[string]int{},
		labels: map[string]string{}}
}

// unique returns a name that is free in the function: the one given, if possible.
func (p *parser) unique(fn *function, want string) string {
	free := func(s string) bool {
		_, special := ir.Special(s)
		return !fn.used[s] && !p.module.names[s] && !special
	}
	s := want
	for !free(s) {
		fn.count[want]++
		s = fmt.Sprintf("%s_%d", want, fn.count[want])
	}
	fn.used[s] = true
	return s
}

// add enters a name into the innermost scope.
func (p *parser) add(fn *function, t token, n *name) {
	s, text := fn.scope, p.text(t)
	p.reserved(t)
	stem, number, ok := splitName(text)
	if s.names[text] != nil || ok && s.ranges[stem] != nil && number < s.ranges[stem].count {
		p.failAt(t.off, "%s is declared a second time", text)
	}
	s.names[text] = n
	if old, found := s.least[stem]; ok && (!found || number < old) {
		s.least[stem] = number
	}
}

// addRange enters the registers stem0 to stem(count-1).
func (p *parser) addRange(fn *function, t token, typ ir.Type, vec, count int) {
	s, stem := fn.scope, p.text(t)
	clash := s.ranges[stem] != nil
	if least, found := s.least[stem]; found && least < count {
		clash = true
	}
	if clash {
		p.failAt(t.off, "%s<%d> declares registers a second time", stem, count)
	}
	ir.Specials(func(special string, _ ir.SpecialInfo) {
		if st, n, ok := splitName(special); ok && st == stem && n < count {
			p.failAt(t.off, "%s<%d>: %s is a name of PTX itself", stem, count, special)
		}
	})
	s.ranges[stem] = &numbered{typ, vec, count}
}

// splitName cuts %r12 into %r and 12. %r007 is no such name.
func splitName(s string) (stem string, n int, ok bool) {
	i := len(s)
	for i > 0 && isDigit(s[i-1]) {
		i--
	}
	n, err := strconv.Atoi(s[i:])
	return s[:i], n, err == nil && i > 0 && strconv.Itoa(n) == s[i:]
}

// lookup finds a name in the function's scopes, nil if it is not there.
func (fn *function) lookup(text string) *name {
	stem, number, ok := splitName(text)
	for s := fn.scope; s != nil; s = s.outer {
		if n := s.names[text]; n != nil {
			return n
		}
		if r := s.ranges[stem]; ok && r != nil && number < r.count {
			n := registerName(text, r.typ, r.vec, false)
			s.names[text] = n
			return n
		}
	}
	return nil
}

// number gives the register its number in the function.
func (p *parser) number(fn *function, r *register) ir.Reg {
	if r.id == 0 {
		r.id = ir.Reg(len(fn.f.Regs))
		name := r.text
		if !r.fixed {
			name = p.unique(fn, name)
		}
		fn.f.Regs = append(fn.f.Regs, ir.RegDecl{Name: name, Type: r.typ})
	}
	return r.id
}

func (p *parser) openScope(fn *function) { fn.scope = newScope(fn.scope) }

// closeScope puts the labels of the innermost scope in their places, and leaves the others to the scope around it.
func (p *parser) closeScope(fn *function) {
	s := fn.scope
	fn.scope = s.outer
	for _, j := range s.jumps {
		label, ok := s.labels[j.name]
		switch {
		case ok:
			fn.f.Body[j.instr].Args[j.arg].Sym = label
		case s.outer != nil:
			s.outer.jumps = append(s.outer.jumps, j)
		default:
			p.failAt(j.off, "label %s is not defined%s", j.name, nearest(j.name, func(f func(string)) {
				for i := range fn.f.Body {
					if in := &fn.f.Body[i]; in.Op == ir.OpLabel {
						f(in.Args[0].Sym)
					}
				}
			}))
		}
	}
}
