package ptx

import "github.com/wavelane/wavelane/ptx/ir"

// Layout is the order of a matrix in memory.
type Layout string

// The layouts.
const (
	RowMajor Layout = "row"
	ColMajor Layout = "col"
)

// WmmaLoadA loads a fragment of a, M×K, whose rows (or columns) are stride elements apart. How it is spread is not
// specified: it is for [WmmaMma] only.
func WmmaLoadA[R MatrixElem, S Space, T Elem](k *Kernel, s Shape, l Layout, p Ptr[S, T], stride Reg[uint32]) []Reg[R] {
	return wmmaLoad[R](k, "a", s, l, p, stride, s.M*s.K)
}

// WmmaLoadB loads a fragment of b, K×N.
func WmmaLoadB[R MatrixElem, S Space, T Elem](k *Kernel, s Shape, l Layout, p Ptr[S, T], stride Reg[uint32]) []Reg[R] {
	return wmmaLoad[R](k, "b", s, l, p, stride, s.K*s.N)
}

// WmmaLoadC loads a fragment of c, M×N.
func WmmaLoadC[R Accumulator, S Space, T Elem](k *Kernel, s Shape, l Layout, p Ptr[S, T], stride Reg[uint32]) []Reg[R] {
	return wmmaLoad[R](k, "c", s, l, p, stride, s.M*s.N)
}

func wmmaLoad[R Type, S Space, T Elem](k *Kernel, what string, s Shape, l Layout, p Ptr[S, T], stride Reg[uint32],
	count int) []Reg[R] {
	part, per := partOf(typeOf[R]())
	n := count / 32 / per
	if part == ir.F16 && what != "c" {
		n = 8 // each element twice
	}
	k.elements(part, typeOf[T]())
	regs, out := several[R](k, n)
	k.emit("wmma.load."+what+".sync.aligned."+string(l)+"."+s.String()+dot(spaceOf[S]())+"."+part.String(), out, p, stride)
	return regs
}

// elements reports memory whose elements are not those of a fragment.
func (k *Kernel) elements(part ir.Type, mem *typeInfo) {
	same := part == mem.op || part == ir.TF32 && mem == &infos.f32
	if !same {
		k.fail("a fragment of %s in memory of %s", part, mem.name)
	}
}

// dot is the space as part of an opcode.
func dot(s ir.Space) string {
	if s == ir.NoSpace {
		return ""
	}
	return "." + s.String()
}

// WmmaMma is a·b + c, of a warp, on fragments that WmmaLoadA and the others loaded.
func WmmaMma[E MatrixElem, C Accumulator](k *Kernel, s Shape, la, lb Layout, a, b []Reg[E], c []Reg[C], mods ...Mod) []Reg[C] {
	et, _ := partOf(typeOf[E]())
	ct, _ := partOf(typeOf[C]())
	types := []string{ct.String(), et.String(), et.String(), ct.String()}
	if et == ir.F16 {
		types = []string{ct.String(), ct.String()}
	}
	d, out := several[C](k, len(c))
	code := withMods("wmma.mma.sync.aligned."+string(la)+"."+string(lb)+"."+s.String(), "", nil, types...)
	if len(mods) > 0 {
		code += "." + string(mods[0])
	}
	k.emit(code, out, operands(a), operands(b), operands(c))
	return d
}

// WmmaStore stores a fragment of a result, M×N.
func WmmaStore[C Accumulator, S Space, T Elem](k *Kernel, s Shape, l Layout, p Ptr[S, T], d []Reg[C], stride Reg[uint32]) {
	part, _ := partOf(typeOf[C]())
	k.elements(part, typeOf[T]())
	k.emit("wmma.store.d.sync.aligned."+string(l)+"."+s.String()+dot(spaceOf[S]())+"."+part.String(), p, operands(d), stride)
}
