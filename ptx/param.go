package ptx

import "github.com/wavelane/wavelane/ptx/ir"

// DeclOption changes a declaration.
type DeclOption struct{ align int }

// Align asks for at least this alignment, in bytes: for a parameter that points, a promise of the caller.
func Align(n int) DeclOption { return DeclOption{n} }

func (k *Kernel) apply(v *ir.Var, opts []DeclOption) {
	for _, o := range opts {
		a := &v.Align
		if v.Ptr {
			a = &v.PtrAlign
		}
		if *a = max(*a, o.align); o.align < 0 || *a&(*a-1) != 0 {
			k.fail("alignment %d is not a power of two", o.align)
		}
	}
}

// Param declares a parameter and reads it.
func Param[T Elem](k *Kernel, name string) Reg[T] {
	t := typeOf[T]()
	k.addParam(ir.Var{Name: name, Type: t.mem}, nil)
	r := def[T](k, "ld.param."+t.mem.String(), raw(ir.AddrOf(name, 0)))
	k.regs[r.v.reg].what = "parameter " + name
	return r
}

// PointerParam declares a parameter that points to global memory, and reads it.
func PointerParam[T Elem](k *Kernel, name string, opts ...DeclOption) Ptr[Global, T] {
	k.addParam(ir.Var{Name: name, Type: ir.U64, Ptr: true, PtrSpace: ir.GlobalSpace, PtrAlign: typeOf[T]().size()}, opts)
	g := def[uint64](k, "ld.param.u64", raw(ir.AddrOf(name, 0)))
	p := def[uint64](k, "cvta.to.global.u64", g)
	k.regs[p.v.reg].what = "parameter " + name
	return Ptr[Global, T]{pointer{base: p.v}}
}

// Array is a parameter of several elements.
type Array[T Elem] struct {
	k    *Kernel
	name string
	n    int
}

// ParamArray declares a parameter of n elements, which [Array.At] reads.
func ParamArray[T Elem](k *Kernel, name string, n int) Array[T] {
	if n < 1 {
		k.fail("parameter %s of %d elements", name, n)
		n = 1
	}
	t := typeOf[T]()
	k.addParam(ir.Var{Name: name, Type: t.mem, Dims: []int{n}, Align: t.size()}, nil)
	return Array[T]{k, name, n}
}

// Len is the number of elements.
func (a Array[T]) Len() int { return a.n }

// At reads element i.
func (a Array[T]) At(i int) Reg[T] {
	k := a.k
	t := typeOf[T]()
	if i < 0 || i >= a.n {
		k.fail("element %d of parameter %s, which has %d", i, a.name, a.n)
		i = 0
	}
	return def[T](k, "ld.param."+t.mem.String(), raw(ir.AddrOf(a.name, int64(i*t.size()))))
}

func (k *Kernel) addParam(v ir.Var, opts []DeclOption) {
	k.m.declare(v.Name, k)
	v.Pos, v.Space = caller(), ir.ParamSpace
	k.apply(&v, opts)
	k.params = append(k.params, v)
}

// SharedArray declares n elements of shared memory.
func SharedArray[T Elem](k *Kernel, name string, n int, opts ...DeclOption) Ptr[Shared, T] {
	return kernelArray[Shared, T](k, name, n, opts)
}

// LocalArray declares n elements of local memory: each thread has its own, in slow memory.
func LocalArray[T Elem](k *Kernel, name string, n int, opts ...DeclOption) Ptr[Local, T] {
	return kernelArray[Local, T](k, name, n, opts)
}

func kernelArray[S Space, T Elem](k *Kernel, name string, n int, opts []DeclOption) Ptr[S, T] {
	k.m.declare(name, k)
	if n < 1 {
		k.fail("array %s of %d elements", name, n)
		n = 1
	}
	t := typeOf[T]()
	v := ir.Var{Pos: caller(), Name: name, Space: spaceOf[S](), Type: t.mem, Align: max(t.size(), 4), Dims: []int{n}}
	k.apply(&v, opts)
	k.vars = append(k.vars, v)
	return Ptr[S, T]{pointer{k: k, m: k.m, sym: name}}
}

// dynamicName is the one array of dynamic shared memory; PTX lets all that are declared begin at the same place.
const dynamicName = "dynamic_shared"

// DynamicShared is the shared memory whose size the launch gives, aligned to 128 bytes (or [Align], up to 1024). It
// begins after the static arrays, and every call returns its beginning.
func DynamicShared[T Elem](k *Kernel, opts ...DeclOption) Ptr[Shared, T] {
	v := ir.Var{Pos: caller(), Name: dynamicName, Space: ir.SharedSpace, Linkage: ir.Extern, Type: ir.B8,
		Align: 128, Dims: []int{0}}
	k.apply(&v, opts)
	if v.Align > 1024 {
		k.fail("dynamic shared memory aligned to %d bytes; 1024 is the most", v.Align)
	}
	k.m.addDynamic(v)
	return Ptr[Shared, T]{pointer{k: k, m: k.m, sym: dynamicName}}
}

func (m *Module) addDynamic(v ir.Var) {
	for i := range m.vars {
		if m.vars[i].Name == v.Name {
			m.vars[i].Align = max(m.vars[i].Align, v.Align)
			return
		}
	}
	m.vars = append(m.vars, v)
}
