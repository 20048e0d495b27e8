package ir

import (
	"iter"
	"slices"
	"strings"
)

// Variants are the opcodes that the form stands for: each combination of its parts, as what follows the root.
func (f *Form) Variants() iter.Seq[[]Mod] {
	return func(yield func([]Mod) bool) { f.variants(0, nil, yield) }
}

func (f *Form) variants(i int, mods []Mod, yield func([]Mod) bool) bool {
	if i == len(f.parts) {
		return yield(slices.Clone(mods))
	}
	p := &f.parts[i]
	for k := range p.alts {
		if !f.variants(i+1, append(slices.Clip(mods), p.alts[k].mods...), yield) {
			return false
		}
	}
	return !p.optional || f.variants(i+1, mods, yield)
}

// Cover are some of the variants, in which each alternative of each part occurs: the plainest one first, then others that
// differ from it in one part.
func (f *Form) Cover() iter.Seq[[]Mod] {
	return func(yield func([]Mod) bool) {
		plain := func(chosen, k int) []Mod {
			var mods []Mod
			for i, p := range f.parts {
				switch {
				case i == chosen:
					mods = append(mods, p.alts[k].mods...)
				case !p.optional:
					mods = append(mods, p.alts[0].mods...)
				}
			}
			return mods
		}
		if !yield(plain(-1, 0)) {
			return
		}
		for i, p := range f.parts {
			for k := range p.alts {
				if (k > 0 || p.optional) && !yield(plain(i, k)) {
					return
				}
			}
		}
	}
}

// Samples are instructions of the form with the parts given: one with all operands that may be left out, and one without them.
// reg returns a register for a type, with a different one at each call if need be; labels are called "L". Tests go through the
// table by them.
func (f *Form) Samples(mods []Mod, reg func(Type) Reg) []Instr {
	var list []Instr
	for _, full := range []bool{true, false} {
		in := Instr{Op: f.Op, Mods: mods}
		optional := false
		for i := range f.args {
			a := &f.args[i]
			if a.with != "" && !in.Has(a.with) || a.optional && !full || a.kind == 'c' {
				optional = optional || a.optional
				continue
			}
			o := a.sample(&in, reg)
			if list := parts[a.parts]; list != nil && (full || a.parts == mergedPart) {
				o.Part = list[(len(in.Args)+3*len(mods)+len(f.Syntax))%len(list)]
				optional = optional || a.parts != mergedPart
			}
			o.Neg = full && a.kind == 'N' && len(in.Args) == 1
			in.Args = append(in.Args, o)
		}
		if full || optional {
			list = append(list, in)
		}
	}
	return list
}

func (a *argument) sample(in *Instr, reg func(Type) Reg) Operand {
	t := a.typeOf(in).register()
	vector := func(n int) Operand {
		o := Operand{Kind: VecOperand}
		for range n {
			o.Elems = append(o.Elems, R(reg(t)))
		}
		return o
	}
	switch {
	case a.count > 0:
		return vector(a.length(in))
	case (a.kind == 'v' || a.kind == 'V') && in.Width() > 1:
		return vector(in.Width())
	}
	switch a.kind {
	case 'p', 'q', 'Q':
		return R(reg(Pred))
	case '_':
		return Operand{Kind: SinkOperand}
	case 'P':
		return Operand{Kind: PairOperand, Elems: []Operand{R(reg(Pred)), R(reg(Pred))}}
	case 'E':
		return Operand{Kind: PairOperand, Elems: []Operand{R(reg(t)), R(reg(Pred))}}
	case 'a':
		return Addr(reg(U64), 0)
	case 'M':
		return Addr(reg(B32), 0)
	case 'A':
		o := Addr(reg(U64), 0)
		t = S32
		o.Elems = []Operand{vector(dimensions(in))}
		return o
	case 'T', 'U':
		o := Addr(reg(U64), 0)
		if t = S32; a.kind == 'T' {
			t = in.Type(1)
		}
		list := vector(coordinates[in.Geometry()])
		if in.Geometry()[0] == 'a' {
			list.Elems[0] = R(reg(U32))
		}
		o.Elems = []Operand{list}
		return o
	case 'o':
		return vector(dimensions(in) - 2)
	case 'i':
		if a.only == nil {
			return Int(0)
		}
		return Int(a.only[0])
	case 'l':
		return LabelOf("L")
	case 'y':
		return Operand{Kind: SymOperand, Sym: "variable"}
	}
	return R(reg(t))
}

// register is the type of the registers that values of the type live in.
func (t Type) register() Type {
	switch t {
	case U8, S8:
		return t + (U16 - U8) // wider: U16 or S16
	case Pred, B8, B16, B32, B64, B128, U16, U32, U64, S16, S32, S64, F16, F32, F64, NoType:
		return t
	}
	return map[int]Type{8: B8, 16: B16, 32: B32, 64: B64}[t.Bits()]
}

// Usage is the form for people, in the manual's style: add{.sat}.s32 d, s, s.
func (f *Form) Usage() string {
	var code strings.Builder
	code.WriteString(string(f.Op))
	for _, p := range f.parts {
		var alts []string
		for _, a := range p.alts {
			var words []string
			for _, m := range a.mods {
				words = append(words, string(m))
			}
			alts = append(alts, strings.Join(words, "."))
		}
		if len(alts) > 16 {
			alts = append(alts[:14], "…")
		}
		text := "." + strings.Join(alts, " ")
		if len(alts) > 1 {
			text = ".(" + text[1:] + ")"
		}
		if p.optional {
			text = "{" + text + "}"
		}
		code.WriteString(text)
	}
	words := make([]string, 0, len(f.args))
	for i := range f.args {
		a := &f.args[i]
		word := operandWords[a.kind]
		if a.count > 0 {
			word = "{" + word + " …}"
		}
		if a.optional || a.with != "" {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}
	return strings.TrimSpace(code.String() + " " + strings.Join(words, ", "))
}

// operandWords stand for the letters of arguments in usages.
var operandWords = map[byte]string{
	'd': "d", 'D': "d", '_': "_", 's': "s", 'r': "s", 'S': "s", 'N': "{-}s", 'v': "d", 'V': "s", 'p': "p", 'q': "p", 'Q': "p|q", 'P': "p|q",
	'e': "d|p", 'E': "d|p", 'a': "[a]", 'A': "[map, {…}]", 'T': "[t, {…}]", 'U': "[t, {…}]", 'M': "[t]", 'o': "{…}", 'i': "n", 'l': "label", 'y': "variable",
	'c': "(results), function, (arguments), prototype",
}
