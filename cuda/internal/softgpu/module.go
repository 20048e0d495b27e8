package softgpu

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

// module is a loaded module.
type module struct {
	context   *primary
	ir        *ir.Module
	sim       *sim.Module
	registers int // JIT.MaxRegisters
	kernels   map[string]*sim.Kernel
	functions map[string]driver.Function
	variables []*deviceMemory
	bytes     uint64 // of them
	unloaded  bool
}

// Compile makes a container for the current context's device.
func (g *GPU) Compile(ptx []byte, o *driver.JIT) ([]byte, driver.Result) {
	text, m, r := g.compile("Compile", ptx, o)
	if r != driver.Success {
		return nil, r
	}
	var b strings.Builder
	for _, f := range m.Funcs {
		for i := range f.Body {
			if f.Body[i].Op == "setmaxnreg" {
				fmt.Fprintf(&b, "%s: setmaxnreg is ignored in relocatable code\n", f.Name)
				break
			}
		}
	}
	if o == nil {
		o = &driver.JIT{}
	}
	o.InfoLog += b.String()
	return pack(text, g.cfg.SM, o.MaxRegisters), driver.Success
}

// compile begins a call that takes an image, and checks the image as far as that needs no memory. The lock is not held.
func (g *GPU) compile(call string, image []byte, o *driver.JIT) (text []byte, m *ir.Module, r driver.Result) {
	if o == nil {
		o = &driver.JIT{}
	}
	o.InfoLog, o.ErrorLog = "", ""
	_, r = g.enter(call, unsafeCall)
	if r != driver.Success {
		o.ErrorLog = fmt.Sprintf("%s before anything was compiled", r.Name())
		return nil, nil, r
	}
	g.mu.Unlock()
	fail := func(r driver.Result, format string, args ...any) ([]byte, *ir.Module, driver.Result) {
		o.ErrorLog = fmt.Sprintf(format, args...) + "\n"
		return nil, nil, r
	}
	if len(image) == 0 || o.MaxRegisters < 0 {
		return fail(driver.InvalidValue, "an image of %d bytes, at most %d registers", len(image), o.MaxRegisters)
	}
	if bytes.HasPrefix(image, []byte(containerMagic)) {
		if call == "Compile" {
			return fail(driver.InvalidPTX, "this is a binary already")
		}
		if text, o.MaxRegisters, r = unpack(image, g.cfg.SM); r != driver.Success {
			return fail(r, "a binary that is damaged, or not for sm_%d", g.cfg.SM)
		}
	} else {
		if text, _, _ = bytes.Cut(image, []byte{0}); !isText(text) {
			return fail(driver.InvalidImage, "neither PTX nor a binary of this driver")
		}
	}
	m, r, err := g.translate(text)
	if err != nil {
		return fail(r, "error: %v", err)
	}
	return text, m, r
}

// ModuleLoadData loads what Compile made, or PTX, which may end in a NUL.
func (g *GPU) ModuleLoadData(image []byte, o *driver.JIT) (h driver.Module, r driver.Result) {
	options := driver.JIT{}
	if o != nil {
		options = *o
		defer func() { o.InfoLog, o.ErrorLog = options.InfoLog, options.ErrorLog }()
	}
	_, text, r := g.compile("ModuleLoadData", image, &options)
	if r != driver.Success {
		return 0, r
	}
	g.mu.Lock()
	c := g.current[thread()]
	if c == nil || !c.open {
		g.mu.Unlock()
		return 0, driver.InvalidContext
	}
	variables := variableBytes(text)
	if variables > g.cfg.Memory-c.used {
		g.mu.Unlock()
		return 0, driver.OutOfMemory
	}
	c.used += variables
	g.mu.Unlock()
	defer func() {
		if r != driver.Success {
			g.mu.Lock()
			c.used -= variables
			g.mu.Unlock()
		}
	}()
	loaded, err := c.sim.Load(text) // waits for the operation that runs
	if err != nil {
		options.ErrorLog = fmt.Sprintf("error: %v\n", err)
		return 0, unsupported(err, driver.InvalidPTX)
	}
	m := &module{context: c, ir: text, sim: loaded, registers: options.MaxRegisters, bytes: variables, kernels: map[string]*sim.Kernel{},
		functions: map[string]driver.Function{}}
	var info strings.Builder
	for _, f := range text.Funcs {
		if !f.Entry || f.Body == nil {
			continue
		}
		k, err := loaded.Kernel(f.Name)
		switch {
		case err != nil:
			c.sim.Unload(loaded)
			options.ErrorLog = fmt.Sprintf("error: %v\n", err)
			return 0, unsupported(err, driver.InvalidPTX)
		case k.StaticShared() > g.limits.MaxStaticShared:
			c.sim.Unload(loaded)
			options.ErrorLog = fmt.Sprintf("error: entry function %s uses too much shared data (0x%x bytes, 0x%x max)\n", f.Name,
				k.StaticShared(), g.limits.MaxStaticShared)
			return 0, driver.InvalidPTX
		}
		m.kernels[f.Name] = k
		fmt.Fprintf(&info, "info: entry function %s for sm_%d: %d bytes of shared memory\n", f.Name, g.cfg.SM, k.StaticShared())
	}
	options.InfoLog = info.String()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !c.open {
		return 0, driver.InvalidContext
	}
	for i := range text.Vars {
		if at, n, err := loaded.Global(text.Vars[i].Name); err == nil && n > 0 {
			v := &deviceMemory{base: at, size: uint64(n), variable: true}
			m.variables = append(m.variables, v)
			c.memory.insert(v)
		}
	}
	return driver.Module(g.add(m)), driver.Success
}

// variableBytes is what a module's variables take of the device's memory.
func variableBytes(m *ir.Module) (n uint64) {
	for i := range m.Vars {
		if space := m.Vars[i].Space; space == ir.GlobalSpace || space == ir.ConstSpace {
			n += uint64(m.Vars[i].Size())
		}
	}
	return n
}

// ModuleUnload unloads the module with its functions and variables, when everything that is queued has run.
func (g *GPU) ModuleUnload(h driver.Module) driver.Result {
	c, r := g.enter("ModuleUnload", unsafeCall|destroyCall)
	if c == nil {
		return r
	}
	defer g.mu.Unlock()
	m, ok := lookup[*module](g, uintptr(h))
	if !ok || m.context != c {
		return driver.InvalidHandle
	}
	g.drain(c)
	if m.unloaded { // by another thread meanwhile
		return driver.InvalidHandle
	}
	m.unloaded = true
	delete(g.handles, uintptr(h))
	for _, f := range m.functions {
		delete(g.handles, uintptr(f))
	}
	for _, v := range m.variables {
		c.memory.remove(v.base)
	}
	c.used -= m.bytes
	g.mu.Unlock()
	c.sim.Unload(m.sim)
	g.mu.Lock()
	return c.fault
}

// ModuleGetGlobal is where a variable lies, and its size.
func (g *GPU) ModuleGetGlobal(h driver.Module, name string) (at driver.Ptr, n uint64, r driver.Result) {
	c, r := g.enter("ModuleGetGlobal", anyCall)
	if r != driver.Success {
		return 0, 0, r
	}
	defer g.mu.Unlock()
	m, ok := lookup[*module](g, uintptr(h))
	if !ok || m.context != c {
		return 0, 0, driver.InvalidHandle
	}
	base, size, err := m.sim.Global(name)
	if err != nil {
		return 0, 0, driver.NotFound
	}
	return driver.Ptr(base), uint64(size), driver.Success
}

// ModuleGetFunction is the kernel with the name; the same handle for the same kernel.
func (g *GPU) ModuleGetFunction(h driver.Module, name string) (driver.Function, driver.Result) {
	c, r := g.enter("ModuleGetFunction", anyCall)
	if r != driver.Success {
		return 0, r
	}
	defer g.mu.Unlock()
	m, ok := lookup[*module](g, uintptr(h))
	if !ok || m.context != c {
		return 0, driver.InvalidHandle
	}
	if f := m.functions[name]; f != 0 {
		return f, driver.Success
	}
	k := m.kernels[name]
	if k == nil {
		return 0, driver.NotFound
	}
	m.functions[name] = driver.Function(g.add(newFunction(m, m.ir.Func(name), k)))
	return m.functions[name], driver.Success
}
