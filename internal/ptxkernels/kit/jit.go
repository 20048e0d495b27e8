package kit

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"

	"github.com/wavelane/wavelane/internal/recent"
	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/ir"
)

const (
	jitKernels = 512 // kernels made on demand that are remembered at least
	jitModules = 8   // of which so many still have their code
)

// jitCache remembers the kernels that were made on demand, those that were asked for last. The code of one is written to know
// where its parameters lie, and is then kept for a while: whoever asked is about to load it.
var jitCache = struct {
	sync.Mutex
	kernels *recent.Map[*Kernel]    // by kind and text
	code    *recent.Map[*ir.Module] // likewise, of what has not been loaded
}{kernels: recent.New[*Kernel](jitKernels), code: recent.New[*ir.Module](jitModules)}

// jit is the kernel of a kind for a text, which together are all that its code depends on; it is like k, but for its name.
// While it is remembered, the same text has the same kernel.
func jit(kind, text string, k Kernel) *Kernel {
	key := kind + " " + text
	jitCache.Lock()
	defer jitCache.Unlock()
	if old, ok := jitCache.kernels.Get(key); ok {
		return old
	}
	sum := sha256.Sum256([]byte(key))
	k.Family, k.Name, k.key, k.layout, k.lay = "", fmt.Sprintf("%s_%x", kind, sum[:12]), key, nil, new(sync.Mutex)
	jitCache.kernels.Put(key, &k)
	return &k
}

// layMade is the layout of a kernel made on demand.
func (k *Kernel) layMade() (*args.Layout, error) {
	k.lay.Lock()
	defer k.lay.Unlock()
	if k.layout != nil {
		return k.layout, nil
	}
	m, err := k.Write()
	if err != nil {
		return nil, err
	}
	k.layout = args.LayoutOf(m.Funcs[0].Params)
	jitCache.Lock()
	defer jitCache.Unlock()
	jitCache.code.Put(k.key, m)
	return k.layout, nil
}

// Write is the kernel alone in a module, without lines.
func (k *Kernel) Write() (*ir.Module, error) {
	m := ptx.NewModule()
	m.WithoutLines()
	return k.moduleIn(m)
}

// JITModule is a module of kernels that were made on demand, in the order of their names.
func JITModule(kernels ...*Kernel) (*ir.Module, error) {
	all := &ir.Module{AddressSize: 64}
	for _, k := range sorted(kernels) {
		jitCache.Lock()
		m, ok := jitCache.code.Get(k.key)
		jitCache.code.Delete(k.key)
		jitCache.Unlock()
		if !ok {
			var err error
			if m, err = k.Write(); err != nil {
				return nil, err
			}
		}
		if all.Version.Less(m.Version) {
			all.Version = m.Version
		}
		if !all.Target.Covers(m.Target) {
			all.Target = m.Target
		}
		all.Funcs = append(all.Funcs, m.Funcs...)
		for _, v := range m.Vars { // dynamic shared memory, which all share
			i := slices.IndexFunc(all.Vars, func(o ir.Var) bool { return o.Name == v.Name })
			if i < 0 {
				all.Vars = append(all.Vars, v)
			} else {
				all.Vars[i].Align = max(all.Vars[i].Align, v.Align)
			}
		}
	}
	return all, nil
}
