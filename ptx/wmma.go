package ptx

import "github.com/wavelane/wavelane/ptx/ir"

// Layout is the order of a matrix in memory.
type Layout string

// The layouts.
const (
	RowMajor Layout = "row"
	ColMajor Layout = "col"
)

// Wmma is a·b + c, of a warp: M×K by K×N. How fragments are spread over lanes is not specified: they are for the other methods of
// the same Wmma only. Rows, or columns, of matrices in memory are stride elements apart, a Reg[uint32] or a constant.
type Wmma[E MatrixElem, C Accumulator] struct {
	Shape
	A, B Layout
}

// Pointer is a [Ptr] of any space to any elements.
type Pointer interface {
	arg
	memory() (ir.Space, *typeInfo)
}

func (p Ptr[S, T]) memory() (ir.Space, *typeInfo) { return spaceOf[S](), typeOf[T]() }

// LoadA loads a fragment of a.
func (w Wmma[E, C]) LoadA(k *Kernel, p Pointer, stride any) []Reg[E] {
	return wmmaLoad[E](k, "a", w.Shape, w.A, p, stride, w.M*w.K)
}

// LoadB loads a fragment of b.
func (w Wmma[E, C]) LoadB(k *Kernel, p Pointer, stride any) []Reg[E] {
	return wmmaLoad[E](k, "b", w.Shape, w.B, p, stride, w.K*w.N)
}

// LoadC loads a fragment of c.
func (w Wmma[E, C]) LoadC(k *Kernel, l Layout, p Pointer, stride any) []Reg[C] {
	return wmmaLoad[C](k, "c", w.Shape, l, p, stride, w.M*w.N)
}

func wmmaLoad[R Type](k *Kernel, what string, s Shape, l Layout, p Pointer, stride any, count int) []Reg[R] {
	part, per := partOf(typeOf[R]())
	n := count / 32 / per
	if part == ir.F16 && what != "c" {
		n = 8 // each element twice
	}
	regs, out := several[R](k, n)
	k.emit("wmma.load."+what+".sync.aligned."+string(l)+"."+s.String()+k.elements(part, p), out, p, lift[uint32](k, stride))
	return regs
}

// elements is the end of an opcode that accesses a fragment in memory, whose elements have to be the fragment's.
func (k *Kernel) elements(part ir.Type, p Pointer) string {
	space, mem := p.memory()
	if part != mem.op && (part != ir.TF32 || mem != &infos.f32) {
		k.fail("a fragment of %s in memory of %s", part, mem.name)
	}
	return dot(space) + "." + part.String()
}

// dot is the space as part of an opcode.
func dot(s ir.Space) string {
	if s == ir.NoSpace {
		return ""
	}
	return "." + s.String()
}

// MulAdd is a·b + c.
func (w Wmma[E, C]) MulAdd(k *Kernel, a, b []Reg[E], c []Reg[C], mods ...Mod) []Reg[C] {
	et, _ := partOf(typeOf[E]())
	ct, _ := partOf(typeOf[C]())
	types := []string{ct.String(), et.String(), et.String(), ct.String()}
	if et == ir.F16 {
		types = []string{ct.String(), ct.String()}
	}
	d, out := several[C](k, len(c))
	code := withMods("wmma.mma.sync.aligned."+string(w.A)+"."+string(w.B)+"."+w.String(), "", nil, types...)
	if len(mods) > 0 {
		code += "." + string(mods[0])
	}
	k.emit(code, out, operands(a), operands(b), operands(c))
	return d
}

// Store stores a fragment of a result.
func (w Wmma[E, C]) Store(k *Kernel, l Layout, p Pointer, d []Reg[C], stride any) {
	part, _ := partOf(typeOf[C]())
	k.emit("wmma.store.d.sync.aligned."+string(l)+"."+w.String()+k.elements(part, p), p, operands(d), lift[uint32](k, stride))
}
