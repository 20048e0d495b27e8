package cuda

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/recent"
)

// madeMost is the number of kernels of expressions that stay loaded although no program uses them: at least, and at most twice as many.
const madeMost = 128

// made caches kernels that are made on demand, for expressions: those that programs use, and some of the others that were used lately.
// It is safe for concurrent use.
type made struct {
	loading sync.Mutex // held by who loads

	mu      sync.Mutex
	kernels *recent.Map[*Kernel]   // by name; each retains its module
	modules map[driver.Module]bool // all that are loaded, also those that only programs have
}

func newMade(most int) *made {
	return &made{kernels: recent.New[*Kernel](most), modules: map[driver.Module]bool{}}
}

// find returns those of the kernels that are loaded, by name, and adds the others to missing. It retains the modules.
func (m *made) find(wanted map[string]*kit.Kernel) (found map[string]*Kernel, missing []*kit.Kernel) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found = map[string]*Kernel{}
	for _, w := range wanted {
		k, ok := m.kernels.Get(w.Name)
		if !ok {
			missing = append(missing, w)
			continue
		}
		k.module.holders.Add(1) // it has one already
		found[w.Name] = k
	}
	return found, missing
}

// add caches kernels, and drops others.
func (m *made) add(x *Module) {
	m.mu.Lock()
	m.modules[x.handle] = true
	var old []*Kernel
	for name, k := range x.kernels {
		x.holders.Add(1)
		old = slices.AppendSeq(old, maps.Values(m.kernels.Put(name, k)))
	}
	m.mu.Unlock()
	for _, k := range old {
		k.module.release() // which asks for the lock
	}
}

// forget is about a module that is about to be unloaded.
func (m *made) forget(x driver.Module) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.modules, x)
}

// madeKernels loads kernels that were made on demand: those not loaded yet as one module, so that the driver's compiler is
// called once. If now is set, the error is program.ErrLater instead. The caller releases the modules of those returned.
func (l *loader) madeKernels(wanted map[string]*kit.Kernel, now bool) (map[string]*Kernel, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	found, missing := l.made.find(wanted)
	if len(missing) == 0 {
		return found, nil
	}
	releaseKernels(found)
	if now {
		return nil, program.ErrLater
	}
	l.made.loading.Lock()
	defer l.made.loading.Unlock()
	if found, missing = l.made.find(wanted); len(missing) == 0 {
		return found, nil
	}
	m, err := l.openMade(missing)
	if err != nil {
		releaseKernels(found)
		return nil, err
	}
	for name, k := range m.kernels {
		m.holders.Add(1)
		found[name] = k
	}
	l.made.add(m)
	m.release() // the hold of who opened it
	return found, nil
}

func (l *loader) openMade(kernels []*kit.Kernel) (*Module, error) {
	s, err := kit.JITModule(kernels...)
	if err != nil {
		return nil, err
	}
	return l.open(source{name: fmt.Sprintf("of %d expressions", len(kernels)), text: []byte(s.String()), m: s})
}

func releaseKernels(kernels map[string]*Kernel) {
	for _, k := range kernels {
		k.module.release()
	}
}
