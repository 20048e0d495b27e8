package cuda

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
)

// Module is compiled PTX on the device: kernels and variables. All of it is loaded with the module, so that nothing is
// compiled or loaded while work runs. It is safe for concurrent use.
type Module struct {
	d         *state // nil for the catalogue's own
	l         *loader
	handle    driver.Module
	name      string
	kernels   map[string]*Kernel
	names     []string // of the kernels, in the order of the text
	variables []string

	// holders counts the owner and the users of the module's kernels. The last one to release the module retires it.
	holders atomic.Int64
	closed  atomic.Bool // by the owner
}

// LoadOption configures [Device.Load].
type LoadOption func(*source) error

// WithMaxRegisters bounds the registers of a thread, 16 to 255. What does not fit is kept in local memory.
func WithMaxRegisters(n int) LoadOption {
	return func(s *source) error {
		if n < 16 || n > 255 {
			return fmt.Errorf("at most %d registers, which has to be 16 to 255: %w", n, compute.ErrArgument)
		}
		s.jit.MaxRegisters = n
		return nil
	}
}

// WithLineInfo keeps the lines of the text for profilers.
func WithLineInfo() LoadOption {
	return func(s *source) error { s.jit.LineInfo = true; return nil }
}

// Load compiles PTX text and loads it. Errors in the text are of type
// [*parse.Error], with line and column, or, if the driver's compiler finds it, an [*Error] with the compiler's log. PTX for a
// newer architecture than the device's is compute.ErrUnsupported.
func (d *Device) Load(ptx string, opts ...LoadOption) (*Module, error) {
	m, err := parse.Module("", []byte(ptx))
	if err != nil {
		return nil, err
	}
	return d.load(m, []byte(ptx), opts)
}

// LoadModule is [Device.Load] for what the builder of package ptx makes. The module may be changed afterwards.
func (d *Device) LoadModule(m *ir.Module, opts ...LoadOption) (*Module, error) {
	if m == nil {
		return nil, fmt.Errorf("no module: %w", compute.ErrArgument)
	}
	if err := ir.Validate(m); err != nil {
		return nil, err
	}
	return d.load(m, []byte(m.String()), opts)
}

func (d *state) load(m *ir.Module, text []byte, opts []LoadOption) (*Module, error) {
	s := source{name: nameOf(m), text: text, m: m}
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("module %s: nil option: %w", s.name, compute.ErrArgument)
		}
		if err := o(&s); err != nil {
			return nil, fmt.Errorf("module %s: %w", s.name, err)
		}
	}
	if err := d.lifetime().Begin(); err != nil {
		return nil, err
	}
	defer d.life.End()
	x, err := d.loader.open(s)
	if err != nil {
		return nil, err
	}
	x.d = d
	d.modules.Add(x)
	return x, nil
}

// nameOf makes a name for reports: modules have none.
func nameOf(m *ir.Module) string {
	const most = 3
	var names []string
	for _, f := range m.Funcs {
		if f.Entry {
			names = append(names, f.Name)
		}
	}
	switch {
	case len(names) == 0:
		return "without kernels"
	case len(names) > most:
		names = append(names[:most], "…")
	}
	return "of " + strings.Join(names, ", ")
}

// open loads a module with all its kernels.
func (l *loader) open(s source) (*Module, error) {
	handle, err := l.load(s)
	if err != nil {
		return nil, err
	}
	m := &Module{l: l, handle: handle, name: s.name, kernels: map[string]*Kernel{}}
	m.holders.Store(1)
	if err := m.resolve(s.m); err != nil {
		l.retire(handle)
		return nil, fmt.Errorf("module %s: %w", s.name, err)
	}
	return m, nil
}

func (m *Module) resolve(s *ir.Module) error {
	if err := m.l.p.enter(); err != nil {
		return err
	}
	defer m.l.p.leave()
	for i := range s.Vars {
		if v := &s.Vars[i]; v.Space == ir.GlobalSpace || v.Space == ir.ConstSpace {
			m.variables = append(m.variables, v.Name)
		}
	}
	for _, f := range s.Funcs {
		if !f.Entry {
			continue
		}
		k, err := m.newKernel(f)
		if err != nil {
			return fmt.Errorf("kernel %s: %w", f.Name, err)
		}
		m.kernels[f.Name] = k
		m.names = append(m.names, f.Name)
	}
	return nil
}

// Kernels are the names of the kernels in the order of the text.
func (m *Module) Kernels() []string { return append([]string(nil), m.names...) }

// Kernel returns the kernel with the name.
func (m *Module) Kernel(name string) (*Kernel, error) {
	k := m.kernels[name]
	if k == nil {
		return nil, fmt.Errorf("no kernel %q among %s: %w", name, listed(m.names), compute.ErrArgument)
	}
	return k, nil
}

// Global returns the address and the size in bytes of a variable in the .global or .const space. It stays valid until the
// module is closed. To read and write the variable see [Variable].
func (m *Module) Global(name string) (address uint64, size int, err error) {
	leave, err := m.use()
	if err != nil {
		return 0, 0, err
	}
	defer leave()
	at, n, r := m.l.p.drv.ModuleGetGlobal(m.handle, name)
	if r == driver.NotFound {
		return 0, 0, fmt.Errorf("no variable %q among %s: %w", name, listed(m.variables), compute.ErrArgument)
	}
	return uint64(at), int(n), m.l.p.check("cuModuleGetGlobal", r)
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// Close unloads the module: at once if the device is idle, else when the device is idle while another one is loaded or closed. It does
// not wait. Graphs with its kernels can still be replayed, and keep it loaded, as buffers of its variables do. Later launches of its kernels fail with compute.ErrClosed. It is idempotent. Without it, the
// module is unloaded when the device is closed.
func (m *Module) Close() error {
	d := m.d
	if d.life.Hold() != nil {
		return nil // the device has closed it, or will
	}
	defer d.life.End()
	if !d.modules.Remove(m) {
		return nil
	}
	m.closed.Store(true)
	m.release()
	if d.enter() != nil {
		return nil // the context is dead; the device unloads when it is closed
	}
	defer d.leave()
	err := m.l.settle()
	if d.poison.Load() != nil {
		return nil // everybody knows
	}
	return err
}

// retain keeps the module loaded until release.
func (m *Module) retain() error {
	for {
		n := m.holders.Load()
		if n <= 0 || m.closed.Load() {
			return device.Closed("module " + m.name)
		}
		if m.holders.CompareAndSwap(n, n+1) {
			return nil
		}
	}
}

// release gives up a reference, from any thread; it calls nothing.
func (m *Module) release() {
	if m.holders.Add(-1) == 0 {
		m.l.retire(m.handle)
	}
}

// use begins a call of the driver about the module, which leave ends.
func (m *Module) use() (leave func(), err error) {
	if m.d != nil {
		if err := m.d.life.Begin(); err != nil {
			return nil, err
		}
	}
	end := func() {
		if m.d != nil {
			m.d.life.End()
		}
	}
	if err := m.retain(); err != nil {
		end()
		return nil, err
	}
	if err := m.l.p.enter(); err != nil {
		m.release()
		end()
		return nil, err
	}
	return func() { m.l.p.leave(); m.release(); end() }, nil
}

// unload is for the closing device, which has entered the context: the module is no longer in use.
func (m *Module) unload() error {
	m.holders.Store(0)
	return m.l.p.check("cuModuleUnload", m.l.p.drv.ModuleUnload(m.handle))
}
