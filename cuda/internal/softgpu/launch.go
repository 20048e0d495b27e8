package softgpu

import (
	"errors"
	"slices"

	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/ptx/sim"
)

// portableCluster is the largest cluster that all devices with clusters take, maxCluster that of these.
const (
	portableCluster = 8
	maxCluster      = 16
)

// kernelOp runs a kernel.
type kernelOp struct {
	done
	function *function
	launch   sim.Launch
}

var errUnloaded = errors.New("a kernel of a module that has been unloaded")

func (o *kernelOp) run(c *primary) error {
	c.gpu.mu.Lock()
	unloaded := o.function.module.unloaded
	c.gpu.mu.Unlock()
	if unloaded { // only graphs get here: unloading waits for what is queued
		return errUnloaded
	}
	_, err := c.sim.Run(c.alive, o.function.kernel, o.launch)
	return err
}

// LaunchKernel queues a run of the kernel.
func (g *GPU) LaunchKernel(h driver.Function, l *driver.Launch, stream driver.Stream) driver.Result {
	c, s, r := g.order("LaunchKernel", stream)
	if r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	f, ok := lookup[*function](g, uintptr(h))
	if !ok || f.module.context != c {
		return driver.InvalidHandle
	}
	if r := f.check(l, true); r != driver.Success {
		return r
	}
	return s.submit(f.op(l))
}

// op is the operation of a launch that has been checked.
func (f *function) op(l *driver.Launch) *kernelOp {
	return &kernelOp{function: f, launch: sim.Launch{Cooperative: l.Cooperative, Grid: dim(l.Grid), Block: dim(l.Block),
		Cluster: dim(f.cluster(l)), Shared: int(l.Shared), Params: slices.Clone(l.Params)}}
}

func dim(d [3]uint32) sim.Dim3 { return sim.Dim3{X: int(d[0]), Y: int(d[1]), Z: int(d[2])} }

// product is the number of elements of an extent. Factors are below 2^31 and 2^16 where it matters.
func product(d [3]uint32) uint64 { return uint64(d[0]) * uint64(d[1]) * uint64(d[2]) }

// declared is an extent as a kernel declares it, where 1 may be left out.
func declared(d [3]int) [3]uint32 {
	return [3]uint32{uint32(d[0]), uint32(max(d[1], 1)), uint32(max(d[2], 1))}
}

// cluster is that of the launch, or the one that the kernel declares, or none.
func (f *function) cluster(l *driver.Launch) [3]uint32 {
	if b := f.ir.Bounds.ReqCluster; l.Cluster == [3]uint32{} && b[0] > 0 {
		return declared(b)
	}
	return l.Cluster
}

// check is what the driver looks at before a launch. Without params the parameter block does not matter.
func (f *function) check(l *driver.Launch, params bool) driver.Result {
	g := f.module.context.gpu
	b := &f.ir.Bounds
	if l == nil || product(l.Grid) == 0 || product(l.Block) == 0 ||
		l.Grid[0] > maxGridX || l.Grid[1] > maxGridYZ || l.Grid[2] > maxGridYZ ||
		l.Block[0] > maxBlockXY || l.Block[1] > maxBlockXY || l.Block[2] > maxBlockZ {
		return driver.InvalidValue
	}
	threads := int(product(l.Block))
	switch {
	case threads > maxThreads || b.Threads() > 0 && threads > b.Threads() || params && len(l.Params) != f.params.Size():
		return driver.InvalidValue
	case b.ReqThreads[0] > 0 && l.Block != declared(b.ReqThreads):
		return driver.InvalidValue
	case uint64(l.Shared) > uint64(f.dynamic):
		return driver.InvalidValue
	case threads > f.maxThreads():
		return driver.LaunchOutOfResources
	}
	if r := f.checkCluster(l); r != driver.Success {
		return r
	}
	if l.Cooperative && product(l.Grid) > uint64(f.blocks(threads, uint64(l.Shared))*g.cfg.Multiprocessors) {
		return driver.CooperativeTooLarge
	}
	return driver.Success
}

func (f *function) checkCluster(l *driver.Launch) driver.Result {
	b := &f.ir.Bounds
	c := f.cluster(l)
	if c == [3]uint32{} {
		return driver.Success
	}
	if f.module.context.gpu.cfg.SM < 90 {
		return driver.NotSupported
	}
	for i := range c {
		if c[i] == 0 || c[i] > maxCluster {
			return driver.InvalidClusterSize
		}
		if l.Grid[i]%c[i] != 0 {
			return driver.InvalidValue
		}
	}
	n := product(c)
	switch {
	case n > maxCluster || n > portableCluster && !f.nonPortable || b.MaxClusterBlocks > 0 && n > uint64(b.MaxClusterBlocks):
		return driver.InvalidClusterSize
	case b.ReqCluster[0] > 0 && c != declared(b.ReqCluster):
		return driver.InvalidClusterSize
	}
	return driver.Success
}
