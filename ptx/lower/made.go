package lower

import (
	"container/list"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"

	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/ir"
)

const (
	madeMost  = 512 // kernels made on demand that are remembered
	freshMost = 16  // of which so many still have their code
)

// makers remembers the kernels that were made on demand, those that were asked for last. The code of one is written to know
// where its parameters lie, and is then kept for a while: whoever asked is about to load it.
var makers = struct {
	sync.Mutex
	kernels map[string]*list.Element // of *Kernel, by kind and text
	recent  *list.List               // the last one asked for first
	fresh   map[*Kernel]*ir.Module
	order   []*Kernel // of fresh
}{kernels: map[string]*list.Element{}, recent: list.New(), fresh: map[*Kernel]*ir.Module{}}

// made is the kernel of a kind for a text, which together are all that its code depends on; it is like k, but for its name.
// While it is remembered, the same text has the same kernel.
func made(kind, text string, k Kernel) *Kernel {
	key := kind + " " + text
	makers.Lock()
	defer makers.Unlock()
	if e := makers.kernels[key]; e != nil {
		makers.recent.MoveToFront(e)
		return e.Value.(*Kernel)
	}
	sum := sha256.Sum256([]byte(key))
	k.Family, k.Name, k.key, k.layout, k.lay = "", fmt.Sprintf("%s_%x", kind, sum[:12]), key, nil, new(sync.Mutex)
	makers.kernels[key] = makers.recent.PushFront(&k)
	if makers.recent.Len() > madeMost {
		oldest := makers.recent.Remove(makers.recent.Back()).(*Kernel)
		delete(makers.kernels, oldest.key)
	}
	return &k
}

// layMade is the layout of a kernel made on demand.
func (k *Kernel) layMade() (*args.Layout, error) {
	k.lay.Lock()
	defer k.lay.Unlock()
	if k.layout != nil {
		return k.layout, nil
	}
	m, err := k.write()
	if err != nil {
		return nil, err
	}
	k.layout = args.LayoutOf(m.Funcs[0].Params)
	makers.Lock()
	defer makers.Unlock()
	makers.fresh[k] = m
	if makers.order = append(makers.order, k); len(makers.order) > freshMost {
		delete(makers.fresh, makers.order[0])
		makers.order = makers.order[1:]
	}
	return k.layout, nil
}

// write is the kernel alone in a module, without lines.
func (k *Kernel) write() (*ir.Module, error) {
	m := ptx.NewModule()
	m.WithoutLines()
	out, err := assembleIn(m, k)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", k.Name, err)
	}
	return out, nil
}

// Made is a module of kernels that were made on demand, in the order of their names.
func Made(kernels ...*Kernel) (*ir.Module, error) {
	all := &ir.Module{AddressSize: 64}
	for _, k := range sorted(kernels) {
		makers.Lock()
		m := makers.fresh[k]
		delete(makers.fresh, k)
		makers.Unlock()
		if m == nil {
			var err error
			if m, err = k.write(); err != nil {
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
