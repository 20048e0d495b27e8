// Package driver is the seam between the library and what executes: NVIDIA's own driver (package libcuda) or the software GPU
// (package softgpu). The methods of [Driver] are the calls of the CUDA driver API that the library makes, with its names and its
// rules: a context is current to an OS thread, calls go to that context, work is ordered by streams, and an error may be that of
// an earlier asynchronous call. Nothing above the seam knows which of the two is below.
package driver

import (
	"unsafe"

	"github.com/wavelane/wavelane/ptx/tensormap"
)

// Handles of the driver. 0 is none.
type (
	Device    int32 // an ordinal's device
	Context   uintptr
	Module    uintptr
	Function  uintptr
	Stream    uintptr
	Event     uintptr
	Graph     uintptr
	GraphNode uintptr
	GraphExec uintptr
)

// Ptr is an address in a device's memory.
type Ptr uint64

// Driver is the driver API. All methods are safe for concurrent use.
type Driver interface {
	// Kind is "libcuda" or "software".
	Kind() string
	// Version is that of the driver API, 12040 for 12.4.
	Version() (int, Result)
	// ResultText describes a result in a few words; the library knows the names.
	ResultText(Result) string
	// Detail says more about the last fault of a context, such as the software GPU's position of a bad access; "" if nothing.
	Detail(Context) string

	DeviceCount() (int, Result)
	DeviceGet(ordinal int) (Device, Result)
	DeviceName(Device) (string, Result)
	DeviceUUID(Device) ([16]byte, Result)
	DevicePCIBusID(Device) (string, Result)
	DeviceTotalMem(Device) (uint64, Result)
	DeviceGetAttribute(Attribute, Device) (int, Result)
	DeviceCanAccessPeer(d, peer Device) (bool, Result)

	PrimaryCtxSetFlags(d Device, flags uint32) Result
	PrimaryCtxRetain(Device) (Context, Result)
	PrimaryCtxRelease(Device) Result
	CtxSetCurrent(Context) Result
	CtxGetCurrent() (Context, Result)
	CtxSynchronize() Result
	CtxEnablePeerAccess(peer Context) Result

	// Compile makes the binary for the current context's device of PTX text, through the driver's linker: its only way to hand
	// a binary out. The linker compiles relocatably and so ignores setmaxnreg: load modules that use it as text.
	Compile(ptx []byte, o *JIT) (cubin []byte, r Result)
	// ModuleLoadData loads a binary or PTX text.
	ModuleLoadData(image []byte, o *JIT) (Module, Result)
	ModuleUnload(Module) Result
	ModuleGetFunction(m Module, name string) (Function, Result)
	ModuleGetGlobal(m Module, name string) (at Ptr, bytes uint64, r Result)
	FuncGetAttribute(FuncAttribute, Function) (int, Result)
	FuncSetAttribute(a FuncAttribute, f Function, value int) Result
	// FuncLoad brings a lazily loaded function to the device. Drivers before 12.4 have no such call: Success.
	FuncLoad(Function) Result
	// FuncGetParamInfo is where the i-th parameter lies; InvalidValue after the last. NotSupported before 12.4.
	FuncGetParamInfo(f Function, i int) (offset, size uint64, r Result)
	OccupancyMaxActiveBlocks(f Function, threads int, dynamicShared uint64) (int, Result)
	OccupancyMaxPotentialBlockSize(f Function, dynamicShared uint64, limit int) (grid, block int, r Result)
	OccupancyMaxActiveClusters(f Function, l *Launch) (int, Result)

	// TensorMapEncode writes the opaque bytes of a tensor map, tensormap.Size, as kernels take them. NotSupported before 12.0. It
	// allocates nothing.
	TensorMapEncode(to []byte, m *tensormap.Map) Result

	// LaunchKernel allocates nothing and is done with l when it returns.
	LaunchKernel(f Function, l *Launch, s Stream) Result

	// LaunchForeign has another library give work to a stream. It is no call of the driver API, with whose streams and memory a library
	// works as they are: NVIDIA's driver makes the call at once, with the addresses of the pieces of memory. The software GPU makes it on a
	// thread of its own when the stream has come there, with copies of the pieces in the host's memory, and waits for its end; if the
	// stream is captured, in each replay. The call looks after its errors.
	LaunchForeign(s Stream, memory []Memory, call func(at []unsafe.Pointer, s Stream)) Result

	MemGetInfo() (free, total uint64, r Result)
	MemAlloc(bytes uint64) (Ptr, Result)
	MemFree(Ptr) Result
	// MemHostAlloc returns pinned memory of the host, which asynchronous copies may use.
	MemHostAlloc(bytes uint64) (unsafe.Pointer, Result)
	MemFreeHost(unsafe.Pointer) Result
	// Copies return before they are done; host memory has to be pinned.
	MemcpyHtoDAsync(dst Ptr, src unsafe.Pointer, bytes uint64, s Stream) Result
	MemcpyDtoHAsync(dst unsafe.Pointer, src Ptr, bytes uint64, s Stream) Result
	MemcpyDtoDAsync(dst, src Ptr, bytes uint64, s Stream) Result
	MemcpyPeerAsync(dst Ptr, dstCtx Context, src Ptr, srcCtx Context, bytes uint64, s Stream) Result
	MemsetD8Async(dst Ptr, value uint8, bytes uint64, s Stream) Result
	MemsetD32Async(dst Ptr, value uint32, words uint64, s Stream) Result

	// StreamCreate makes a stream that does not wait for the default one. Lower numbers go first.
	StreamCreate(priority int) (Stream, Result)
	// StreamPriorityRange is from the least to the greatest priority: 0 to −5.
	StreamPriorityRange() (least, greatest int, r Result)
	StreamDestroy(Stream) Result
	StreamSynchronize(Stream) Result
	// StreamQuery is NotReady while there is work.
	StreamQuery(Stream) Result
	StreamWaitEvent(Stream, Event) Result
	// EventCreate makes an event for ordering, or for measuring time as well. Waiting for it blocks instead of spinning.
	EventCreate(timing bool) (Event, Result)
	EventDestroy(Event) Result
	EventRecord(Event, Stream) Result
	EventSynchronize(Event) Result
	EventQuery(Event) Result
	// EventElapsed is the time between two events in milliseconds.
	EventElapsed(start, end Event) (float32, Result)

	// StreamBeginCapture records into a graph what follows, in thread-local mode: on the same OS thread until the end.
	StreamBeginCapture(Stream) Result
	StreamEndCapture(Stream) (Graph, Result)
	// StreamCaptureNode is the node that the last captured call made.
	StreamCaptureNode(Stream) (GraphNode, Result)
	GraphDestroy(Graph) Result
	GraphInstantiate(Graph) (GraphExec, Result)
	GraphExecDestroy(GraphExec) Result
	GraphUpload(GraphExec, Stream) Result
	GraphLaunch(GraphExec, Stream) Result
	// GraphExecKernelNodeSetParams changes a kernel's launch in later replays. l may not have a cluster.
	GraphExecKernelNodeSetParams(x GraphExec, node GraphNode, f Function, l *Launch) Result
}

// Launch is how to run a kernel once.
type Launch struct {
	Grid, Block [3]uint32
	Cluster     [3]uint32 // zeros for none, or for what the kernel declares
	Shared      uint32    // bytes of dynamic shared memory
	Cooperative bool      // all blocks are resident at once
	Params      []byte    // the parameters
	Offsets     []int     // of each parameter in Params; where a kernel has them is up to the driver
}

// Memory is a piece of a device's memory that is read, or written as a whole.
type Memory struct {
	At      Ptr
	Bytes   uint64
	Written bool
}

// JIT are the options of a compilation, and its logs.
type JIT struct {
	MaxRegisters int  // per thread; 0 as the compiler likes
	LineInfo     bool // for profilers

	// InfoLog and ErrorLog are set by the call, whether it succeeds or fails.
	InfoLog, ErrorLog string
}

// ScheduleBlockingSync is a flag of primary contexts: threads that wait sleep.
const ScheduleBlockingSync = 4

// Attribute of a device.
type Attribute int32

// Attributes.
const (
	MaxThreadsPerBlock      Attribute = 1
	MaxBlockDimX            Attribute = 2
	MaxBlockDimY            Attribute = 3
	MaxBlockDimZ            Attribute = 4
	MaxGridDimX             Attribute = 5
	MaxGridDimY             Attribute = 6
	MaxGridDimZ             Attribute = 7
	SharedPerBlock          Attribute = 8
	WarpSize                Attribute = 10
	RegistersPerBlock       Attribute = 12
	ClockRate               Attribute = 13 // kHz
	MultiprocessorCount     Attribute = 16
	Integrated              Attribute = 18
	ECCEnabled              Attribute = 32
	MemoryClockRate         Attribute = 36 // kHz
	MemoryBusWidth          Attribute = 37 // bits
	L2CacheSize             Attribute = 38
	MaxThreadsPerMP         Attribute = 39
	ComputeCapabilityMajor  Attribute = 75
	ComputeCapabilityMinor  Attribute = 76
	SharedPerMultiprocessor Attribute = 81
	RegistersPerMP          Attribute = 82
	CooperativeLaunch       Attribute = 95
	SharedPerBlockOptin     Attribute = 97
	MaxBlocksPerMP          Attribute = 106
	ReservedSharedPerBlock  Attribute = 111
	ClusterLaunch           Attribute = 120
)

// FuncAttribute of a function.
type FuncAttribute int32

// Function attributes.
const (
	FuncMaxThreads         FuncAttribute = 0
	FuncStaticShared       FuncAttribute = 1
	FuncLocalBytes         FuncAttribute = 3
	FuncRegisters          FuncAttribute = 4
	FuncPTXVersion         FuncAttribute = 5
	FuncBinaryVersion      FuncAttribute = 6
	FuncMaxDynamicShared   FuncAttribute = 8
	FuncNonPortableCluster FuncAttribute = 14
)
