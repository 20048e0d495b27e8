//go:build ((linux && !android) || windows) && (amd64 || arm64)

package libcuda

import (
	"structs"
	"unsafe"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// launch is what a launch passes to C besides numbers. The names and the layouts are those of cuda.h.
type launch struct {
	extra  extra
	config launchConfig
	attrs  [2]launchAttribute
	node   kernelNodeParams
	size   uintptr // of the parameter block
}

// extra is the void*[] through which a parameter block reaches a kernel in one piece.
type extra struct {
	_         structs.HostLayout
	bufferKey uintptr // CU_LAUNCH_PARAM_BUFFER_POINTER
	buffer    unsafe.Pointer
	sizeKey   uintptr // CU_LAUNCH_PARAM_BUFFER_SIZE
	size      *uintptr
	end       uintptr // CU_LAUNCH_PARAM_END
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
	params      uintptr // unused
	extra       *extra
}

// initialise sets what never changes.
func (l *launch) initialise() {
	l.extra = extra{bufferKey: 1, sizeKey: 2, size: &l.size}
	l.config.attrs = &l.attrs[0]
}

// parameters makes the void*[] of a block, nil for an empty one. It holds the block until release, after the call.
func (l *launch) parameters(block []byte) *extra {
	if len(block) == 0 {
		return nil
	}
	l.extra.buffer, l.size = unsafe.Pointer(unsafe.SliceData(block)), uintptr(len(block))
	return &l.extra
}

func (l *launch) release() { l.extra.buffer = nil }

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
	x := uintptr(unsafe.Pointer(f.parameters(l.Params)))
	var r driver.Result
	if l.Cooperative || l.Cluster != [3]uint32{} {
		r = f.call(d.cuLaunchKernelEx, f.configure(l, s), uintptr(fn), 0, x)
	} else {
		// In place, without f.call's copy: this is the hottest of all.
		f.args = [maxArguments]uintptr{uintptr(fn), uintptr(l.Grid[0]), uintptr(l.Grid[1]), uintptr(l.Grid[2]),
			uintptr(l.Block[0]), uintptr(l.Block[1]), uintptr(l.Block[2]), uintptr(l.Shared), uintptr(s), 0, x}
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
	f.node = kernelNodeParams{f: fn, grid: l.Grid, block: l.Block, shared: l.Shared, extra: f.parameters(l.Params)}
	r := f.call(d.cuGraphExecKernelNodeSetParams, uintptr(x), uintptr(node), uintptr(unsafe.Pointer(&f.node)))
	f.release()
	f.give()
	return r
}
