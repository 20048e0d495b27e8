//go:build ((linux && !android) || windows) && (amd64 || arm64)

package libcuda

import (
	"structs"
	"unsafe"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// launch is what a launch passes to C besides numbers. The names and the layouts are those of cuda.h.
type launch struct {
	params []unsafe.Pointer // the void*[] of the parameters' places
	config launchConfig
	attrs  [2]launchAttribute
	node   kernelNodeParams
}

// launchConfig is CUlaunchConfig.
type launchConfig struct {
	_           structs.HostLayout
	grid, block [3]uint32
	shared      uint32
	stream      driver.Stream
	attrs       *launchAttribute
	numAttrs    uint32
}

// launchAttribute is CUlaunchAttribute, whose value is a union of 64 bytes, aligned to 8.
type launchAttribute struct {
	_     structs.HostLayout
	_     [0]uint64
	id    uint32
	_     uint32
	value [16]uint32
}

// Identifiers of attributes.
const (
	attributeCooperative      = 2
	attributeClusterDimension = 4
)

// kernelNodeParams is CUDA_KERNEL_NODE_PARAMS_v1.
type kernelNodeParams struct {
	_           structs.HostLayout
	f           driver.Function
	grid, block [3]uint32
	shared      uint32
	params      *unsafe.Pointer
	extra       uintptr // unused
}

// parameters makes the void*[] of a launch, nil if it has none. It holds the parameters until release, after the call.
func (l *launch) parameters(x *driver.Launch) *unsafe.Pointer {
	l.params = l.params[:0]
	for _, at := range x.Offsets {
		l.params = append(l.params, unsafe.Pointer(&x.Params[at]))
	}
	if len(l.params) == 0 {
		return nil
	}
	return &l.params[0]
}

func (l *launch) release() { clear(l.params) }

// configure fills the CUlaunchConfig and returns its address.
func (l *launch) configure(d *driver.Launch, s driver.Stream) uintptr {
	c := &l.config
	c.grid, c.block, c.shared, c.stream, c.numAttrs = d.Grid, d.Block, d.Shared, s, 0
	if d.Cluster != [3]uint32{} {
		a := &l.attrs[c.numAttrs]
		a.id, a.value = attributeClusterDimension, [16]uint32{d.Cluster[0], d.Cluster[1], d.Cluster[2]}
		c.numAttrs++
	}
	if d.Cooperative {
		a := &l.attrs[c.numAttrs]
		a.id, a.value = attributeCooperative, [16]uint32{1}
		c.numAttrs++
	}
	return uintptr(unsafe.Pointer(c))
}

func (d *library) LaunchKernel(fn driver.Function, l *driver.Launch, s driver.Stream) driver.Result {
	f := take()
	x := uintptr(unsafe.Pointer(f.parameters(l)))
	var r driver.Result
	if l.Cooperative || l.Cluster != [3]uint32{} {
		r = f.call(d.cuLaunchKernelEx, f.configure(l, s), uintptr(fn), x, 0)
	} else {
		// In place, without f.call's copy: this is the hottest of all.
		f.args = [maxArguments]uintptr{uintptr(fn), uintptr(l.Grid[0]), uintptr(l.Grid[1]), uintptr(l.Grid[2]),
			uintptr(l.Block[0]), uintptr(l.Block[1]), uintptr(l.Block[2]), uintptr(l.Shared), uintptr(s), x, 0}
		r = f.invoke(d.cuLaunchKernel, launchArguments)
	}
	f.release()
	f.give()
	return r
}

func (d *library) OccupancyMaxActiveBlocks(fn driver.Function, threads int, dynamicShared uint64) (int, driver.Result) {
	f := take()
	r := f.call(d.cuOccupancyMaxActiveBlocksPerMultiprocessor, f.at(0), uintptr(fn), uintptr(threads), uintptr(dynamicShared))
	blocks := f.int(0)
	f.give()
	return blocks, r
}

func (d *library) OccupancyMaxPotentialBlockSize(fn driver.Function, dynamicShared uint64, limit int) (grid, block int,
	r driver.Result) {
	f := take()
	const noCallback = 0 // the dynamic shared memory does not depend on the block
	r = f.call(d.cuOccupancyMaxPotentialBlockSize, f.at(0), f.at(1), uintptr(fn), noCallback, uintptr(dynamicShared),
		uintptr(limit))
	grid, block = f.int(0), f.int(1)
	f.give()
	return grid, block, r
}

func (d *library) OccupancyMaxActiveClusters(fn driver.Function, l *driver.Launch) (int, driver.Result) {
	f := take()
	r := f.call(d.cuOccupancyMaxActiveClusters, f.at(0), uintptr(fn), f.configure(l, 0))
	clusters := f.int(0)
	f.give()
	return clusters, r
}

func (d *library) GraphExecKernelNodeSetParams(x driver.GraphExec, node driver.GraphNode, fn driver.Function,
	l *driver.Launch) driver.Result {
	if l.Cluster != [3]uint32{} {
		return driver.NotSupported // there is no field for it
	}
	f := take()
	f.node = kernelNodeParams{f: fn, grid: l.Grid, block: l.Block, shared: l.Shared, params: f.parameters(l)}
	r := f.call(d.cuGraphExecKernelNodeSetParams, uintptr(x), uintptr(node), uintptr(unsafe.Pointer(&f.node)))
	f.release()
	f.give()
	return r
}
