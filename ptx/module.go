package ptx

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/wavelane/wavelane/ptx/ir"
)

// Module is a PTX module under construction. It belongs to one goroutine.
type Module struct {
	vars    []ir.Var
	kernels []*Kernel
	version ir.Version // forced, or zero
	target  ir.Target
	pos     ir.Pos // of what forced them
	bare    bool   // instructions have no lines
	errs    []error
}

// NewModule is an empty module.
func NewModule() *Module { return &Module{} }

// ForceVersion makes the module ask for at least this version of PTX. Build fails if its instructions need a later one.
func (m *Module) ForceVersion(v ir.Version) { m.version, m.pos = v, caller() }

// ForceTarget makes the module ask for this target. Build fails if its instructions need another one.
func (m *Module) ForceTarget(t ir.Target) { m.target, m.pos = t, caller() }

// WithoutLines leaves out which lines of Go wrote the instructions that come: their positions are zero, also in errors. It saves a
// third of the time, for kernels that are built while somebody waits.
func (m *Module) WithoutLines() { m.bare = true }

func (m *Module) fail(format string, args ...any) {
	m.errs = append(m.errs, &Error{Pos: caller(), Msg: fmt.Sprintf(format, args...)})
}

var validName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// declare checks a new symbol's name.
func (m *Module) declare(name string, k *Kernel) {
	if !validName.MatchString(name) {
		m.fail("%q is not a name: letters, digits and underscores", name)
		return
	}
	if name == dynamicName {
		m.fail("the name %s is that of dynamic shared memory", name)
		return
	}
	taken := func(vars []ir.Var) bool {
		for i := range vars {
			if vars[i].Name == name {
				return true
			}
		}
		return false
	}
	for _, other := range m.kernels {
		if other.name == name && other != k || other == k && (taken(k.params) || taken(k.vars)) {
			m.fail("the name %s is taken", name)
			return
		}
	}
	if taken(m.vars) {
		m.fail("the name %s is taken", name)
	}
}

// Kernel begins a kernel. Its parameters are in the order of their declaration.
func (m *Module) Kernel(name string) *Kernel {
	m.declare(name, nil)
	k := &Kernel{m: m, name: name, pos: caller(), regs: make([]register, 1), views: make([]ir.Reg, 1), scopes: []*scope{{}}}
	m.kernels = append(m.kernels, k)
	return k
}

// ConstArray is an array in constant memory.
func ConstArray[T Elem](m *Module, name string, values []T) Ptr[Const, T] {
	return moduleArray[Const, T](m, ir.ConstSpace, name, len(values), values)
}

// GlobalArray is an array of n elements in global memory, which begins with the values given and continues with zeros.
func GlobalArray[T Elem](m *Module, name string, n int, values ...T) Ptr[Global, T] {
	return moduleArray[Global, T](m, ir.GlobalSpace, name, n, values)
}

func moduleArray[S Space, T Elem](m *Module, s ir.Space, name string, n int, values []T) Ptr[S, T] {
	m.declare(name, nil)
	if n < 1 || n < len(values) {
		m.fail("array %s of %d elements with %d values", name, n, len(values))
		n = max(1, len(values))
	}
	t := typeOf[T]()
	v := ir.Var{Pos: caller(), Name: name, Space: s, Linkage: ir.Visible, Type: t.mem, Align: 16, Dims: []int{n}}
	for _, x := range values {
		v.Init = append(v.Init, ir.Init{Bits: bitsOf(x)})
	}
	m.vars = append(m.vars, v)
	return Ptr[S, T]{pointer{m: m, sym: name}}
}

// Build is the module, checked, or all that is wrong with it: errors of type [*Error], joined.
func (m *Module) Build() (*ir.Module, error) {
	errs := m.errs
	out := &ir.Module{AddressSize: 64}
	for i := range m.vars {
		out.Vars = append(out.Vars, m.vars[i])
	}
	for _, k := range m.kernels {
		f, found := k.finish()
		errs = append(errs[:len(errs):len(errs)], found...)
		out.Funcs = append(out.Funcs, f)
	}
	if len(errs) > 0 {
		return nil, errors.Join(distinct(errs)...)
	}
	if err := m.requirements(out); err != nil {
		return nil, err
	}
	return out.Clone(), nil
}

// distinct is the errors, each text once: an unrolled loop repeats them.
func distinct(errs []error) []error {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(errs), func(e error) bool {
		again := seen[e.Error()]
		seen[e.Error()] = true
		return again
	})
}

// requirements sets version and target: the least that will do, or those forced.
func (m *Module) requirements(out *ir.Module) error {
	var errs []error
	for _, f := range out.Funcs {
		for i := range f.Body {
			in := &f.Body[i]
			if in.Kind() == ir.Directive {
				continue
			}
			if _, err := ir.FormOf(in); err != nil {
				errs = append(errs, m.wrap(f, in.Pos, err))
			}
		}
	}
	if len(errs) > 0 {
		return errors.Join(distinct(errs)...)
	}
	version, target, err := ir.Requires(out)
	if err != nil {
		return m.wrap(nil, ir.Pos{}, err)
	}
	out.Version, out.Target = version, target
	if m.target != (ir.Target{}) {
		if !m.target.Covers(target) {
			return &Error{Pos: m.pos, Msg: fmt.Sprintf("%s is asked for, but the instructions need %s", m.target, target)}
		}
		out.Target = m.target
		if out.Version.Less(m.target.PTX()) {
			out.Version = m.target.PTX()
		}
	}
	if m.version != (ir.Version{}) {
		if m.version.Less(out.Version) {
			return &Error{Pos: m.pos, Msg: fmt.Sprintf("PTX %s is asked for, but the module needs %s", m.version, out.Version)}
		}
		out.Version = m.version
	}
	return nil
}

// wrap is an error of package ir as one of this package: without its position, which comes with it.
func (m *Module) wrap(f *ir.Func, pos ir.Pos, err error) error {
	e := &Error{Pos: pos, Msg: err.Error()}
	var inner *ir.Error
	if errors.As(err, &inner) {
		e.Pos, e.Kernel, e.Msg = inner.Pos, inner.Func, inner.Opcode+": "+inner.Msg
	}
	if f != nil {
		e.Kernel = f.Name
	}
	return e
}

// MaxThreads bounds the threads of a block, in three dimensions; 0 means 1. The compiler may then use more registers,
// and launches of more threads fail.
func (k *Kernel) MaxThreads(x, y, z int) { k.bounds.MaxThreads = k.dims(x, y, z, 1024) }

// RequireThreads fixes the threads of a block.
func (k *Kernel) RequireThreads(x, y, z int) { k.bounds.ReqThreads = k.dims(x, y, z, 1024) }

// MinBlocks is how many blocks the compiler should let fit on a multiprocessor. It needs MaxThreads or RequireThreads.
func (k *Kernel) MinBlocks(n int) { k.bounds.MinBlocks = k.atLeast1(n) }

// MaxRegs bounds the registers per thread.
func (k *Kernel) MaxRegs(n int) { k.bounds.MaxRegs = k.atLeast1(n) }

// RequireCluster fixes the blocks of a cluster.
func (k *Kernel) RequireCluster(x, y, z int) { k.bounds.ReqCluster = k.dims(x, y, z, 16) }

// ExplicitCluster says that launches give the blocks of a cluster.
func (k *Kernel) ExplicitCluster() { k.bounds.ExplicitCluster = true }

// MaxClusterBlocks bounds the blocks of a cluster.
func (k *Kernel) MaxClusterBlocks(n int) { k.bounds.MaxClusterBlocks = k.atLeast1(n) }

func (k *Kernel) dims(x, y, z, most int) [3]int {
	d := [3]int{x, max(1, y), max(1, z)}
	if x < 1 || y < 0 || z < 0 || d[0]*d[1]*d[2] > most {
		k.fail("dimensions %d, %d, %d: wanted positive ones with a product of at most %d", x, y, z, most)
	}
	return d
}

func (k *Kernel) atLeast1(n int) int {
	if n < 1 {
		k.fail("%d: wanted a positive number", n)
	}
	return n
}
