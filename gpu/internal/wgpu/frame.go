//go:build ((linux && !android) || darwin || windows) && (amd64 || arm64)

package wgpu

import (
	"runtime"
	"sync"
	"unsafe"
)

// Frame is the memory of calls. It comes from a pool, so that it lies on the heap: addresses in it, which go to C as numbers, stay
// right while Go's stacks move.
type Frame struct {
	args   [maxArguments]uintptr
	thread uintptr
	failed uint32 // ErrorType_NoError, or what the library has reported
	text   string
	Lost   *Lost // of the device that is lost by a panic of the library, until End

	// What C reads or writes.
	Structs
}

// Structs are arguments of calls.
type Structs struct {
	Instance         InstanceDescriptor
	Extras           InstanceExtras
	Enumerate        InstanceEnumerateAdapterOptions
	Info             AdapterInfo
	Features         SupportedFeatures
	Limits           Limits
	Device           DeviceDescriptor
	Required         [4]uint32 // features
	Buffer           BufferDescriptor
	Source           ShaderSourceWGSL
	Module           ShaderModuleDescriptor
	Group            BindGroupDescriptor
	GroupLayout      BindGroupLayoutDescriptor
	PipelineLayout   PipelineLayoutDescriptor
	Pipeline         ComputePipelineDescriptor
	Queries          QuerySetDescriptor
	Encoder          CommandEncoderDescriptor
	Pass             ComputePassDescriptor
	Callback         BufferMapCallbackInfo
	Handle           uintptr
	Offset           uint32
	Handles          [64]uintptr
	Entries          [64]BindGroupEntry
	LayoutEntries    [64]BindGroupLayoutEntry
	oldLayoutEntries [64]layoutEntry27
}

// MaxBindings is how many bindings a group of a frame has at most.
const MaxBindings = 64

// maxArguments are those of a call with a struct passed by value, which on amd64 comes after six registers.
const maxArguments = 6 + int(unsafe.Sizeof(AdapterInfo{})/8)

var frames = sync.Pool{New: func() any { return &Frame{failed: ErrorType_NoError} }}

// catching are the frames of calls under way, by thread.
var catching struct {
	sync.Mutex
	by map[uintptr]*Frame
}

// Begin takes a frame, and has what the library reports on this thread until End put into it.
func Begin() *Frame {
	f := frames.Get().(*Frame)
	runtime.LockOSThread()
	f.thread = thread()
	catching.Lock()
	if catching.by == nil {
		catching.by = map[uintptr]*Frame{}
	}
	catching.by[f.thread] = f
	catching.Unlock()
	return f
}

// End gives the frame back. It returns the first error that was reported; later ones are its consequences.
func (f *Frame) End() (kind uint32, text string) {
	catching.Lock()
	delete(catching.by, f.thread)
	kept := panicked.by[f.thread]
	catching.Unlock()
	if !kept { // else the goroutine keeps the thread, which ends with it
		runtime.UnlockOSThread()
	}
	kind, text = f.failed, f.text
	f.failed, f.text, f.Lost = ErrorType_NoError, "", nil
	frames.Put(f)
	return kind, text
}

// Failed reports whether an error was reported since Begin, or since Forget.
func (f *Frame) Failed() bool { return f.failed != ErrorType_NoError }

// Fail reports an error itself.
func (f *Frame) Fail(kind uint32, text string) {
	if f.failed == ErrorType_NoError {
		f.failed, f.text = kind, text
	}
}

// Forget takes back what was reported.
func (f *Frame) Forget() (kind uint32, text string) {
	kind, text = f.failed, f.text
	f.failed, f.text = ErrorType_NoError, ""
	return kind, text
}

// Recall undoes Forget.
func (f *Frame) Recall(kind uint32, text string) { f.failed, f.text = kind, text }

// report is called by the library's callbacks, on the thread of the call.
func report(kind uint32, text string) {
	catching.Lock()
	f := catching.by[thread()]
	catching.Unlock()
	if f != nil {
		f.Fail(kind, text)
	}
}

// Call calls a function.
func (f *Frame) Call(fn uintptr, args ...uintptr) uintptr {
	return f.call(fn, copy(f.args[:], args))
}

// Call calls a function that reports no errors and takes nothing of a frame.
func Call(fn uintptr, args ...uintptr) uintptr {
	f := frames.Get().(*Frame)
	r := f.Call(fn, args...)
	frames.Put(f)
	return r
}

// How structs are passed by value. C's conventions differ in it: System V copies those of more than 16 bytes to the stack, the others
// pass an address; Windows on amd64 passes an address for all that do not fit a register.
const (
	infoOnStack = runtime.GOOS != "windows" && runtime.GOARCH == "amd64"
	viewAddress = runtime.GOOS == "windows" && runtime.GOARCH == "amd64"
)

// CallInfo calls a function whose last argument is f.Callback by value.
func (f *Frame) CallInfo(fn uintptr, args ...uintptr) uintptr {
	return f.callStruct(fn, unsafe.Pointer(&f.Callback), unsafe.Sizeof(f.Callback), args)
}

// FreeInfo frees what f.Info points to, FreeFeatures what f.Features does.
func (f *Frame) FreeInfo(l *Library) {
	f.callStruct(l.AdapterInfoFreeMembers, unsafe.Pointer(&f.Info), unsafe.Sizeof(f.Info), nil)
}

// FreeFeatures frees what f.Features points to.
func (f *Frame) FreeFeatures(l *Library) {
	if viewAddress {
		f.Call(l.SupportedFeaturesFreeMembers, Address(&f.Features))
		return
	}
	f.Call(l.SupportedFeaturesFreeMembers, uintptr(f.Features.FeatureCount), f.Features.Features)
}

func (f *Frame) callStruct(fn uintptr, p unsafe.Pointer, size uintptr, args []uintptr) uintptr {
	n := copy(f.args[:], args)
	if infoOnStack {
		n = 6
		n += copy(f.args[n:], unsafe.Slice((*uintptr)(p), size/8))
	} else {
		f.args[n] = uintptr(p)
		n++
	}
	return f.call(fn, n)
}

// SetLayout makes f.GroupLayout describe the first n of f.LayoutEntries, as the version wants them.
func (f *Frame) SetLayout(l *Library, n int) {
	f.GroupLayout = BindGroupLayoutDescriptor{EntryCount: uint64(n), Entries: Address(&f.LayoutEntries)}
	if l.ABI.arraySize {
		return
	}
	for i := range n {
		e := &f.LayoutEntries[i]
		f.oldLayoutEntries[i] = layoutEntry27{Binding: e.Binding, Visibility: e.Visibility, Buffer: e.Buffer}
	}
	f.GroupLayout.Entries = Address(&f.oldLayoutEntries)
}

// Address is the address of something in a frame or otherwise on the heap, that its owner keeps alive.
func Address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// Pointer is memory of C.
func Pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// View is a string for C, which must be kept alive.
func View(s string) StringView {
	return StringView{Data: uintptr(unsafe.Pointer(unsafe.StringData(s))), Length: uintptr(len(s))}
}

// String copies a string of C.
func (v StringView) String() string {
	if v.Data == 0 || v.Length == 0 {
		return ""
	}
	p := Pointer(v.Data)
	n := int(v.Length)
	if v.Length == ^uintptr(0) { // ends with a NUL
		for n = 0; *(*byte)(unsafe.Add(p, n)) != 0; n++ {
		}
	}
	return string(unsafe.Slice((*byte)(p), n))
}
