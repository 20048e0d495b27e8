package softgpu

import (
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/flow"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

// function is a kernel of a module.
type function struct {
	module *module
	ir     *ir.Func
	kernel *sim.Kernel
	params *args.Layout
	// Under the lock of the GPU:
	registers   int // of a thread; 0 until requested
	dynamic     int // bytes of dynamic shared memory that a launch may have
	nonPortable bool
}

func newFunction(m *module, f *ir.Func, k *sim.Kernel) *function {
	return &function{module: m, ir: f, kernel: k, params: args.LayoutOf(f.Params),
		dynamic: m.context.gpu.limits.MaxStaticShared - k.StaticShared()}
}

// reserved is about what a compiler takes beside the registers that are live.
const reserved = 8

// threadRegisters is an estimate of the registers of a thread, as few as the kernel's bounds and the compilation ask for.
func (f *function) threadRegisters() int {
	if f.registers == 0 {
		most := f.module.context.gpu.limits.MaxRegisters
		if n := f.ir.Bounds.Threads(); n > 0 { // a block of that size has to fit
			most = min(most, f.module.context.gpu.limits.RegistersPerBlockMax/((n+31)/32*32)/8*8)
		}
		for _, n := range []int{f.ir.Bounds.MaxRegs, f.module.registers} {
			if n > 0 {
				most = min(most, n)
			}
		}
		f.registers = max(1, min(flow.New(f.ir).Liveness().Pressure().Units.Live+reserved, most))
	}
	return f.registers
}

// maxThreads is the largest block.
func (f *function) maxThreads() int {
	if n := f.ir.Bounds.Threads(); n > 0 {
		return min(n, maxThreads)
	}
	perWarp := (f.threadRegisters()*32 + 255) / 256 * 256
	return min(maxThreads, f.module.context.gpu.limits.RegistersPerBlockMax/perWarp*32)
}

func (f *function) localBytes() int {
	n := 0
	for i := range f.ir.Vars {
		if f.ir.Vars[i].Space == ir.LocalSpace {
			n += f.ir.Vars[i].Size()
		}
	}
	return n
}

// function begins a call about a function of the current context.
func (g *GPU) function(call string, h driver.Function) (*function, driver.Result) {
	c, r := g.enter(call, anyCall)
	if r != driver.Success {
		return nil, r
	}
	f, ok := lookup[*function](g, uintptr(h))
	if !ok || f.module.context != c {
		g.mu.Unlock()
		return nil, driver.InvalidHandle
	}
	return f, r
}

// FuncGetAttribute is an attribute of a kernel.
func (g *GPU) FuncGetAttribute(a driver.FuncAttribute, h driver.Function) (int, driver.Result) {
	f, r := g.function("FuncGetAttribute", h)
	if r != driver.Success {
		return 0, r
	}
	defer g.mu.Unlock()
	switch a {
	case driver.FuncMaxThreads:
		return f.maxThreads(), driver.Success
	case driver.FuncStaticShared:
		return f.kernel.StaticShared(), driver.Success
	case driver.FuncLocalBytes:
		return f.localBytes(), driver.Success
	case driver.FuncRegisters:
		return f.threadRegisters(), driver.Success
	case driver.FuncPTXVersion:
		v := f.module.ir.Version
		return 10*v.Major + v.Minor, driver.Success
	case driver.FuncBinaryVersion:
		return g.cfg.SM, driver.Success
	case driver.FuncMaxDynamicShared:
		return f.dynamic, driver.Success
	case driver.FuncNonPortableCluster:
		if f.nonPortable {
			return 1, driver.Success
		}
		return 0, driver.Success
	}
	return 0, driver.InvalidValue
}

// FuncSetAttribute sets FuncMaxDynamicShared or FuncNonPortableCluster.
func (g *GPU) FuncSetAttribute(a driver.FuncAttribute, h driver.Function, value int) driver.Result {
	f, r := g.function("FuncSetAttribute", h)
	if r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	switch {
	case a == driver.FuncMaxDynamicShared && value >= 0 && value+f.kernel.StaticShared() <= g.limits.MaxShared:
		f.dynamic = value
	case a == driver.FuncNonPortableCluster && value&^1 == 0:
		f.nonPortable = value == 1
	default:
		return driver.InvalidValue
	}
	return driver.Success
}

// FuncLoad does nothing: functions are there when their module is.
func (g *GPU) FuncLoad(h driver.Function) driver.Result {
	_, r := g.function("FuncLoad", h)
	if r == driver.Success {
		g.mu.Unlock()
	}
	return r
}

// FuncGetParamInfo is where a parameter lies, for drivers from 12.4 on.
func (g *GPU) FuncGetParamInfo(h driver.Function, i int) (offset, size uint64, r driver.Result) {
	f, r := g.function("FuncGetParamInfo", h)
	if r != driver.Success {
		return 0, 0, r
	}
	defer g.mu.Unlock()
	switch {
	case g.cfg.Version < 12040:
		return 0, 0, driver.NotSupported
	case i < 0 || i >= f.params.Len():
		return 0, 0, driver.InvalidValue
	}
	p := f.params.Param(i)
	return uint64(p.Offset), uint64(p.Size), driver.Success
}

// blocks is how many blocks a multiprocessor holds.
func (f *function) blocks(threads int, dynamic uint64) int {
	if threads > f.maxThreads() || dynamic > uint64(f.dynamic) {
		return 0
	}
	o, err := f.module.context.gpu.limits.Occupancy(threads, f.threadRegisters(), f.kernel.StaticShared()+int(dynamic))
	if err != nil {
		return 0
	}
	return o.Blocks
}

// OccupancyMaxActiveBlocks is how many blocks a multiprocessor holds at once; 0 if the kernel cannot run so.
func (g *GPU) OccupancyMaxActiveBlocks(h driver.Function, threads int, dynamic uint64) (int, driver.Result) {
	f, r := g.function("OccupancyMaxActiveBlocks", h)
	if r != driver.Success {
		return 0, r
	}
	defer g.mu.Unlock()
	if threads <= 0 {
		return 0, driver.InvalidValue
	}
	return f.blocks(threads, dynamic), driver.Success
}

// OccupancyMaxPotentialBlockSize is the block size, a multiple of a warp and at most limit unless that is 0, of the highest
// occupancy, the largest one of several, and the grid that fills the device with such blocks.
func (g *GPU) OccupancyMaxPotentialBlockSize(h driver.Function, dynamic uint64, limit int) (grid, block int, r driver.Result) {
	f, r := g.function("OccupancyMaxPotentialBlockSize", h)
	if r != driver.Success {
		return 0, 0, r
	}
	defer g.mu.Unlock()
	most := f.maxThreads()
	if limit > 0 {
		most = min(most, limit)
	}
	best := 0
	for n := (most + 31) / 32 * 32; n > 0; n -= 32 {
		size := min(n, most)
		if blocks := f.blocks(size, dynamic); blocks*size > best {
			best, block, grid = blocks*size, size, blocks*g.cfg.Multiprocessors
		}
	}
	if best == 0 {
		return 0, 0, driver.InvalidValue
	}
	return grid, block, driver.Success
}

// OccupancyMaxActiveClusters is how many clusters of a launch the device holds at once.
func (g *GPU) OccupancyMaxActiveClusters(h driver.Function, l *driver.Launch) (int, driver.Result) {
	f, r := g.function("OccupancyMaxActiveClusters", h)
	if r != driver.Success {
		return 0, r
	}
	defer g.mu.Unlock()
	if r := f.check(l, false); r != driver.Success {
		return 0, r
	}
	size := product(f.cluster(l))
	if size == 0 {
		return 0, driver.InvalidValue
	}
	return int(uint64(f.blocks(int(product(l.Block)), uint64(l.Shared))*g.cfg.Multiprocessors) / size), driver.Success
}
