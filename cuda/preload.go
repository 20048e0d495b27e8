package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/ptx/ir"
)

// abreast is how many modules are compiled at a time.
const abreast = 4

// family is a module of the catalogue's kernels, loaded when the first program that uses it is compiled, or by
// [Device.Preload]. Opening a device loads none: to write the text of all families takes some seconds of one core, once per
// process, and on the software GPU, which parses it, as long again: programs that use few of them need not wait for that.
type family struct {
	of     *kit.Family
	loaded atomic.Pointer[Module]
	mu     sync.Mutex // held by who loads it
}

func newFamilies() map[string]*family {
	all := map[string]*family{}
	for _, f := range kit.Families() {
		all[f.Name] = &family{of: f}
	}
	return all
}

// get returns the module, and loads it if need be. Once it is loaded, get takes no lock.
func (f *family) get(l *loader) (*Module, error) {
	if m := f.loaded.Load(); m != nil {
		return m, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.loaded.Load(); m != nil {
		return m, nil
	}
	s, err := f.of.Module()
	if err != nil {
		return nil, err
	}
	m, err := l.open(source{name: "of family " + f.of.Name, text: []byte(s.String()), m: s})
	if err != nil {
		return nil, err
	}
	for _, k := range f.of.Kernels {
		if err := m.kernels[k.Name].checkShared(uint32(k.Shared)); err != nil {
			return nil, err
		}
	}
	f.loaded.Store(m)
	return m, nil
}

// catalogueKernel is a kernel of the catalogue on the device. It may load the kernel's family: it is for preparations, such as
// compiling a program, never for a run. If now is set, the error is program.ErrLater instead.
func (d *state) catalogueKernel(k *kit.Kernel, now bool) (*Kernel, error) {
	f := d.loader.families[k.Family]
	if now && f.loaded.Load() == nil {
		return nil, program.ErrLater
	}
	m, err := f.get(d.loader)
	if err != nil {
		return nil, err
	}
	return m.kernels[k.Name], nil
}

// Preload loads all kernels of the catalogue, and modules of one's own, several at a time, so that programs compile without
// waiting for the driver's compiler. It returns the modules in the order given. If ctx ends or one fails, none stays loaded.
func (d *Device) Preload(ctx context.Context, modules ...*ir.Module) ([]*Module, error) {
	if err := compute.CheckContext(ctx); err != nil {
		return nil, err
	}
	if err := d.lifetime().Begin(); err != nil {
		return nil, err
	}
	defer d.life.End()
	own := make([]*Module, len(modules))
	var work []func() error
	for _, f := range d.loader.families {
		if s, err := f.of.Module(); err == nil && d.loader.supported(s) != nil {
			continue // kernels for newer GPUs, which no program of this one uses
		}
		work = append(work, func() error { _, err := f.get(d.loader); return err })
	}
	for i, m := range modules {
		work = append(work, func() (err error) {
			if own[i], err = d.LoadModule(m); err != nil {
				return fmt.Errorf("module %d: %w", i, err)
			}
			return nil
		})
	}
	if err := side(ctx, work); err != nil {
		for _, m := range own {
			if m != nil {
				err = errors.Join(err, m.Close())
			}
		}
		return nil, err
	}
	return own, nil
}

// side does work, a few pieces at a time, until it is done, one piece fails or ctx ends. It returns the first error.
func side(ctx context.Context, work []func() error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan func() error)
	var wg sync.WaitGroup
	for range min(abreast, len(work)) {
		wg.Go(func() {
			for f := range next {
				if err := f(); err != nil {
					cancel(err)
				}
			}
		})
	}
feed:
	for _, f := range work {
		select {
		case next <- f:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}
