package kit

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/ir"
)

// Kernel is an entry of a family. It stands on its own: how to launch it is decided by the lowering that names it.
type Kernel struct {
	Family string // the module that holds it: "elementwise"; "" for those made on demand, which have none, see [Step.JIT]
	Name   string // of the entry, unique among all families
	Doc    string // what it computes
	Block  [3]int // threads, each way; launches have exactly these
	Shared int    // bytes of dynamic shared memory of a block; static comes on top

	// Params is the struct whose fields are the parameters; slices have their lengths. See [NewParams].
	Params any
	Build  func(k *ptx.Kernel)
	// BuildWith is in place of Build where there may be a prologue or an epilogue; nil is none.
	BuildWith func(k *ptx.Kernel, h *Prologue, e *Epilogue)
	layout    *args.Layout // of its parameters; see Layout

	// Of those made on demand.
	key string
	lay *sync.Mutex // held by who finds the layout
}

// Family is a module of kernels.
type Family struct {
	Name    string
	Kernels []*Kernel

	once   sync.Once
	module *ir.Module
	err    error
}

var families []*Family

// Register adds a kernel to its family; packages variables do it, so that all kernels are known before work begins.
func Register(k Kernel) *Kernel {
	if k.BuildWith != nil {
		k.Build = k.With(nil, nil)
	}
	i := slices.IndexFunc(families, func(f *Family) bool { return f.Name == k.Family })
	if i < 0 {
		families = append(families, &Family{Name: k.Family})
		i = len(families) - 1
	}
	families[i].Kernels = append(families[i].Kernels, &k)
	return &k
}

// Define registers a kernel whose parameters are a P, that of k.Params if there are slices in it. build gets them to read by their fields'
// addresses.
func Define[P any](k Kernel, build func(b *ptx.Kernel, p *Params, at *P)) *Kernel {
	params, _ := k.Params.(P)
	k.Params = params
	k.Build = func(b *ptx.Kernel) {
		at := params
		build(b, NewParams(b, &at), &at)
	}
	return Register(k)
}

// Parameters tells the parameters in order, with their types.
func (k *Kernel) Parameters() string { return describe(k.Params) }

// Families returns every family in the order of their names.
func Families() []*Family {
	return slices.SortedFunc(slices.Values(families), func(a, b *Family) int { return strings.Compare(a.Name, b.Name) })
}

// FamilyOf returns the family with that name, or nil.
func FamilyOf(name string) *Family {
	i := slices.IndexFunc(families, func(f *Family) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return families[i]
}

// Module is the family as a module, the same text every time: entries in the order of their names. It is built once and must
// not be changed.
func (f *Family) Module() (*ir.Module, error) {
	f.once.Do(func() {
		kernels := sorted(f.Kernels)
		if f.module, f.err = assemble(ptx.NewModule(), kernels...); f.err != nil {
			f.module, f.err = nil, fmt.Errorf("family %s: %w", f.Name, f.err)
			return
		}
		for _, k := range kernels {
			i := slices.IndexFunc(f.module.Funcs, func(fn *ir.Func) bool { return fn.Name == k.Name })
			k.layout = args.LayoutOf(f.module.Funcs[i].Params)
		}
	})
	return f.module, f.err
}

// sorted is kernels in the order of their names.
func sorted(kernels []*Kernel) []*Kernel {
	return slices.SortedFunc(slices.Values(kernels), func(a, b *Kernel) int { return strings.Compare(a.Name, b.Name) })
}

func assemble(m *ptx.Module, kernels ...*Kernel) (*ir.Module, error) {
	for _, k := range kernels {
		b := m.Kernel(k.Name)
		b.RequireThreads(k.Block[0], k.Block[1], k.Block[2])
		k.Build(b)
	}
	return m.Build()
}

// KernelNamed returns the kernel with that name, of whatever family, or nil.
func KernelNamed(name string) *Kernel {
	for _, f := range families {
		for _, k := range f.Kernels {
			if k.Name == name {
				return k
			}
		}
	}
	return nil
}

// Module is the kernel alone in a module, which asks for no later target and version than it needs. It is built anew each time and
// the caller's to change.
func (k *Kernel) Module() (*ir.Module, error) { return k.moduleIn(ptx.NewModule()) }

func (k *Kernel) moduleIn(m *ptx.Module) (*ir.Module, error) {
	out, err := assemble(m, k)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", k.Name, err)
	}
	return out, nil
}

// Layout is where the kernel's parameters lie.
func (k *Kernel) Layout() (*args.Layout, error) {
	if k.Family == "" {
		return k.layMade()
	}
	if _, err := FamilyOf(k.Family).Module(); err != nil {
		return nil, err
	}
	return k.layout, nil
}
