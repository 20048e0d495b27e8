package sim

import (
	"fmt"
	mathbits "math/bits"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/ir"
)

// Module is a loaded module: its variables are in memory. It is safe for concurrent use as its GPU is.
type Module struct {
	gpu     *GPU
	ir      *ir.Module
	globals map[string]*segment
	kernels map[string]*Kernel
}

// Kernel is a kernel ready to run.
type Kernel struct {
	module *Module
	ir     *ir.Func
	prog   *program
	params *args.Layout
}

// Load puts a module's variables into memory. The GPU keeps the module, which must not be changed afterwards. Errors wrap
// [compute.ErrUnsupported] or [compute.ErrArgument].
func (g *GPU) Load(m *ir.Module) (*Module, error) {
	if m == nil {
		return nil, fmt.Errorf("sim: Load of no module: %w", compute.ErrArgument)
	}
	if m.AddressSize == 32 {
		return nil, fmt.Errorf("sim: Load: .address_size 32: addresses have 64 bits here, as in NVIDIA's assembler, which has dropped those "+
			"of 32: %w", compute.ErrUnsupported)
	}
	if err := ir.Validate(m); err != nil {
		return nil, fmt.Errorf("sim: Load: %w", err)
	}
	bytes := uint64(0)
	for i := range m.Vars {
		if v := &m.Vars[i]; v.Space == ir.GlobalSpace || v.Space == ir.ConstSpace {
			bytes += uint64(v.Size())
		}
	}
	if bytes > mostMemory {
		return nil, fmt.Errorf("sim: Load: variables of %d bytes: %w", bytes, compute.ErrTooLarge)
	}
	mod := &Module{gpu: g, ir: m, globals: map[string]*segment{}, kernels: map[string]*Kernel{}}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range m.Vars {
		v := &m.Vars[i]
		if v.Space != ir.GlobalSpace && v.Space != ir.ConstSpace {
			continue
		}
		if v.Linkage == ir.Extern {
			g.drop(mod)
			return nil, fmt.Errorf("sim: %s: variable %s is extern, and nothing defines it: %w", v.Pos, v.Name, compute.ErrUnsupported)
		}
		s := g.mem.add(v.Size(), v.Alignment(), v.Space, v.Name)
		s.opaque = v.Type.IsOpaque()
		s.fixed, s.readOnly = true, v.Space == ir.ConstSpace
		mod.globals[v.Name] = s
	}
	for i := range m.Vars {
		v := &m.Vars[i]
		s := mod.globals[v.Name]
		if s == nil {
			continue
		}
		if err := mod.init(v, s); err != nil {
			g.drop(mod)
			return nil, err
		}
		if v.Type == ir.SamplerRef {
			sampler, err := samplerOf(v.Fields)
			if err != nil {
				g.drop(mod)
				return nil, fmt.Errorf("sim: %s: %s: %w", v.Pos, v.Name, err)
			}
			store(s.data, 8, g.Sampler(sampler))
		}
		if g.mon != nil { // variables without an initial value are zero
			g.mon.allocated(s)
			g.mon.wrote(s, 0, s.size)
		}
	}
	return mod, nil
}

// Unload takes the module's variables out of memory. Its kernels must not run any more.
func (g *GPU) Unload(m *Module) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drop(m)
}

func (g *GPU) drop(m *Module) {
	for name, s := range m.globals {
		if g.mon != nil {
			g.mon.freed(s)
		}
		g.mem.remove(s)
		delete(m.globals, name)
	}
}

// init writes a variable's initial value.
func (m *Module) init(v *ir.Var, s *segment) error {
	n := v.Type.Size()
	if n == 0 && len(v.Init) > 0 || len(v.Init)*n > s.size {
		return fmt.Errorf("sim: %s: %d initial values of %s do not fit: %w", v.Pos, len(v.Init), v.Name, compute.ErrArgument)
	}
	for i, e := range v.Init {
		bits := e.Bits
		if e.Sym != "" {
			a, err := m.address(e.Sym, e.Generic)
			if err != nil {
				return fmt.Errorf("sim: %s: initial value of %s: %w", v.Pos, v.Name, err)
			}
			bits += a
			if e.Mask != 0 {
				bits = bits & e.Mask >> mathbits.TrailingZeros64(e.Mask)
			}
		}
		if n > 8 {
			store(s.data[i*n:], 8, bits)
			continue
		}
		store(s.data[i*n:], n, bits)
	}
	return nil
}

// address is that of a module's variable or function.
func (m *Module) address(sym string, asGeneric bool) (uint64, error) {
	if s := m.globals[sym]; s != nil {
		return s.base, nil
	}
	for i, f := range m.ir.Funcs {
		if f.Name == sym {
			return funcWindow + uint64(i)*16, nil
		}
	}
	return 0, fmt.Errorf("no variable or function %s: %w", sym, compute.ErrArgument)
}

// Global returns where a variable of the module lies, and its size in bytes.
func (m *Module) Global(name string) (addr uint64, size int, err error) {
	if s := m.globals[name]; s != nil {
		return s.base, s.size, nil
	}
	return 0, 0, fmt.Errorf("sim: the module has no variable %q in global or constant memory: %w", name, compute.ErrArgument)
}

// Kernel returns the kernel with the name. An error lists the kernels that there are, or says what in it cannot be executed.
func (m *Module) Kernel(name string) (*Kernel, error) {
	m.gpu.mu.Lock()
	defer m.gpu.mu.Unlock()
	if k := m.kernels[name]; k != nil {
		return k, nil
	}
	var names []string
	for _, f := range m.ir.Funcs {
		if f.Entry && f.Name == name && f.Body != nil {
			prog, err := m.compile(f)
			if err != nil {
				return nil, err
			}
			if n := prog.funcs[len(prog.funcs)-1].frame.size; n > maxLocal {
				return nil, fmt.Errorf("sim: %s: kernel %s has %d bytes of local memory, at most %d are possible: %w", f.Pos, f.Name, n, maxLocal,
					compute.ErrTooLarge)
			}
			k := &Kernel{module: m, ir: f, prog: prog, params: args.LayoutOf(f.Params)}
			m.kernels[name] = k
			return k, nil
		}
		if f.Entry {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return nil, fmt.Errorf("sim: no kernel %q; the module has %s: %w", name, orNone(names), compute.ErrArgument)
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// compile compiles a kernel with all that it may call. Functions come before those that call them: since the lanes at the
// lowest instruction run first, lanes return from a call before others go on.
func (m *Module) compile(kernel *ir.Func) (*program, error) {
	p := &program{name: kernel.Name, module: m, kernel: kernel, byIndex: map[int]*function{}, special: map[string]ref{}}
	c := &compiler{prog: p, checks: m.gpu.mon != nil, cfg: &m.gpu.cfg, rng: rand.New(rand.NewPCG(m.gpu.cfg.Seed, 0x3c6ef372fe94f82b)),
		consts: map[constant]ref{}}
	if err := c.reach(kernel); err != nil {
		return nil, err
	}
	if err := c.layoutShared(); err != nil {
		return nil, err
	}
	for _, f := range p.funcs {
		if err := c.function(f); err != nil {
			return nil, err
		}
	}
	p.sort()
	return p, nil
}

// reach collects the function and what it may call, callees first.
func (c *compiler) reach(f *ir.Func) error {
	m := c.prog.module.ir
	state := map[string]int{} // 1: on the way, 2: done
	var visit func(f *ir.Func) error
	mention := func(in *ir.Instr, name string) error {
		g := m.Func(name)
		switch {
		case g == nil:
			return nil // a variable
		case g.Body == nil:
			if _, ok := externs[name]; ok && in != nil && in.Op == "call" {
				return nil
			}
			return fmt.Errorf("sim: %s: function %s is declared, and nothing defines it: %w", g.Pos, name, compute.ErrUnsupported)
		case state[name] == 1:
			c.prog.recurse = true
			return nil
		}
		return visit(g)
	}
	visit = func(f *ir.Func) error {
		if state[f.Name] != 0 {
			return nil
		}
		state[f.Name] = 1
		for i := range f.Body {
			in := &f.Body[i]
			for j := range in.Args {
				if err := symbols(&in.Args[j], func(sym string) error { return mention(in, sym) }); err != nil {
					return err
				}
			}
			if in.Op == "call" && c.callee(in) == nil {
				// By address: any function whose address the module takes.
				c.prog.recurse = true
				for k := range m.Vars {
					for _, e := range m.Vars[k].Init {
						if err := mention(nil, e.Sym); err != nil {
							return err
						}
					}
				}
			}
		}
		state[f.Name] = 2
		fn := &function{ir: f, index: slices.Index(m.Funcs, f)}
		c.prog.funcs = append(c.prog.funcs, fn)
		c.prog.byIndex[fn.index] = fn
		return nil
	}
	return visit(f)
}
