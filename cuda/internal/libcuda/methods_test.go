//go:build linux && !android && (amd64 || arm64)

package libcuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// method is a method called with args: it returns outs, and what it did in C is trace.
type method struct {
	name  string
	args  []any
	outs  []any // without the Result
	trace string
}

type (
	in  = []any
	ret = []any
)

// methods has a row for each method of the interface, with fresh arguments and with the values that the library gives.
func methods(s *stub, r *rand.Rand) []method {
	o := s.outs(r)
	int32s := func(i int) int { return int(int32(o[i])) }
	handle := func() uintptr { return uintptr(r.Uint64()) }
	dev, peer := driver.Device(r.Uint32()), driver.Device(r.Uint32())
	ctx, ctx2 := driver.Context(handle()), driver.Context(handle())
	mod, fn := driver.Module(handle()), driver.Function(handle())
	stream, event, event2 := driver.Stream(handle()), driver.Event(handle()), driver.Event(handle())
	graph, exec, node := driver.Graph(handle()), driver.GraphExec(handle()), driver.GraphNode(handle())
	p, p2, n, n2 := driver.Ptr(r.Uint64()), driver.Ptr(r.Uint64()), r.Uint64(), r.Uint64()
	host := new([16]byte)
	hostAt := unsafe.Pointer(host)
	i, j := int(int32(r.Uint32())), int(int32(r.Uint32()))
	ptx, name := ".version 8.0 // "+fmt.Sprint(r.Uint64()), fmt.Sprintf("kernel_%d", r.Uint32())
	l := randomLaunch(r, fn)
	plain := *l
	plain.Cluster, plain.Cooperative = [3]uint32{}, false
	cubin := make([]byte, o[cubinSize])
	for i := range cubin {
		cubin[i] = byte(o[1] >> (i % 8 * 8))
	}
	log := []any{"info 65536", "error 65536"}

	return []method{
		{"Kind", nil, ret{"libcuda"}, ""},
		{"Version", nil, ret{int32s(0)}, line("cuDriverGetVersion")},
		{"ResultText", in{driver.Result(700)}, ret{"text of 700"}, line("cuGetErrorString", 700)},
		{"Detail", in{ctx}, ret{""}, ""},

		{"DeviceCount", nil, ret{int32s(0)}, line("cuDeviceGetCount")},
		{"DeviceGet", in{i}, ret{driver.Device(o[0])}, line("cuDeviceGet", i)},
		{"DeviceName", in{dev}, ret{fmt.Sprintf("GPU %d", o[0])}, line("cuDeviceGetName", maxText, dev)},
		{"DeviceUUID", in{dev}, ret{*(*[16]byte)(unsafe.Pointer(&o))}, line("cuDeviceGetUuid_v2", dev)},
		{"DevicePCIBusID", in{dev}, ret{strings.Repeat("x", maxText)}, line("cuDeviceGetPCIBusId", maxText, dev)},
		{"DeviceTotalMem", in{dev}, ret{o[0]}, line("cuDeviceTotalMem_v2", dev)},
		{"DeviceGetAttribute", in{driver.Attribute(i), dev}, ret{int32s(0)}, line("cuDeviceGetAttribute", i, dev)},
		{"DeviceCanAccessPeer", in{dev, peer}, ret{int32s(0) != 0}, line("cuDeviceCanAccessPeer", dev, peer)},

		{"PrimaryCtxSetFlags", in{dev, uint32(i)}, nil, line("cuDevicePrimaryCtxSetFlags_v2", dev, uint32(i))},
		{"PrimaryCtxRetain", in{dev}, ret{driver.Context(o[0])}, line("cuDevicePrimaryCtxRetain", dev)},
		{"PrimaryCtxRelease", in{dev}, nil, line("cuDevicePrimaryCtxRelease_v2", dev)},
		{"CtxSetCurrent", in{ctx}, nil, line("cuCtxSetCurrent", ctx)},
		{"CtxGetCurrent", nil, ret{driver.Context(o[0])}, line("cuCtxGetCurrent")},
		{"CtxSynchronize", nil, nil, line("cuCtxSynchronize")},
		{"CtxEnablePeerAccess", in{ctx}, nil, line("cuCtxEnablePeerAccess", ctx, 0)},

		{"Compile", in{[]byte(ptx), &driver.JIT{MaxRegisters: 32, LineInfo: true}}, ret{cubin},
			line("cuLinkCreate_v2", append(log, "registers 32", "lines 1")...) +
				line("cuLinkAddData_v2", o[0], 1, []byte(ptx+"\x00"), 0, 0, 0, 0) +
				line("cuLinkComplete", o[0]) + line("cuLinkDestroy", o[0])},
		{"ModuleLoadData", in{[]byte(ptx), &driver.JIT{}}, ret{driver.Module(o[0])},
			line("cuModuleLoadDataEx", append([]any{`"` + ptx + `"`}, log...)...)},
		{"ModuleUnload", in{mod}, nil, line("cuModuleUnload", mod)},
		{"ModuleGetFunction", in{mod, name}, ret{driver.Function(o[0])}, line("cuModuleGetFunction", mod, `"`+name+`"`)},
		{"ModuleGetGlobal", in{mod, name}, ret{driver.Ptr(o[0]), o[1]}, line("cuModuleGetGlobal_v2", mod, `"`+name+`"`)},
		{"FuncGetAttribute", in{driver.FuncAttribute(i), fn}, ret{int32s(0)}, line("cuFuncGetAttribute", i, fn)},
		{"FuncSetAttribute", in{driver.FuncAttribute(i), fn, j}, nil, line("cuFuncSetAttribute", fn, i, j)},
		{"FuncLoad", in{fn}, nil, line("cuFuncLoad", fn)},
		{"FuncGetParamInfo", in{fn, int(n >> 1)}, ret{o[0], o[1]}, line("cuFuncGetParamInfo", fn, n>>1)},
		{"TensorMapEncode", in{make([]byte, tensormap.Size), &tensormap.Map{Type: tensormap.BF16, Rank: 2, Address: n, Dims: [5]uint64{n, n2},
			Strides: [4]uint64{n2}, Box: [5]uint32{64, 8}, ElementStrides: [5]uint32{1, 2}, Swizzle: tensormap.Swizzle128,
			Promotion: tensormap.L2x256, Fill: tensormap.FillNaN}}, nil,
			line("cuTensorMapEncodeTiled", 0, 9, 2, n, n, 64, 1, n2, 8, 2, n2, 0, 3, 3, 1)},
		{"TensorMapEncode", in{make([]byte, tensormap.Size), &tensormap.Map{Type: tensormap.F16, Rank: 4, Address: n, Dims: [5]uint64{n, n2, 7, 3},
			Strides: [4]uint64{n2, n, 48}, Pixels: 128, Channels: 32, Lower: [3]int32{-1, -2}, Upper: [3]int32{-3, 4},
			ElementStrides: [5]uint32{1, 2, 3}}}, nil,
			line("cuTensorMapEncodeIm2col", 0, 6, 4, n, 32, 128, n, 1, n2, 2, n2, 7, 3, n, -1, -3, 3, 1, 48, -2, 4, 0, 0, 0, 0)},
		{"OccupancyMaxActiveBlocks", in{fn, i, n}, ret{int32s(0)},
			line("cuOccupancyMaxActiveBlocksPerMultiprocessor", fn, i, n)},
		{"OccupancyMaxPotentialBlockSize", in{fn, n, i}, ret{int32s(0), int32s(1)},
			line("cuOccupancyMaxPotentialBlockSize", fn, 0, n, i)},
		{"OccupancyMaxActiveClusters", in{fn, l}, ret{int32s(0)}, line("cuOccupancyMaxActiveClusters", fn, config(l, 0))},
		{"LaunchKernel", in{fn, l, stream}, nil, launched(fn, l, stream)},
		{"LaunchForeign", in{stream, []driver.Memory(nil), func([]unsafe.Pointer, driver.Stream) {}}, nil, ""},

		{"MemGetInfo", nil, ret{o[0], o[1]}, line("cuMemGetInfo_v2")},
		{"MemAlloc", in{n}, ret{driver.Ptr(o[0])}, line("cuMemAlloc_v2", n)},
		{"MemFree", in{p}, nil, line("cuMemFree_v2", p)},
		{"MemHostAlloc", in{n}, ret{*(*unsafe.Pointer)(unsafe.Pointer(&o))}, line("cuMemHostAlloc", n, 1)},
		{"MemFreeHost", in{hostAt}, nil, line("cuMemFreeHost", uintptr(hostAt))},
		{"MemcpyHtoDAsync", in{p, hostAt, n, stream}, nil, line("cuMemcpyHtoDAsync_v2", p, uintptr(hostAt), n, stream)},
		{"MemcpyDtoHAsync", in{hostAt, p, n, stream}, nil, line("cuMemcpyDtoHAsync_v2", uintptr(hostAt), p, n, stream)},
		{"MemcpyDtoDAsync", in{p, p2, n, stream}, nil, line("cuMemcpyDtoDAsync_v2", p, p2, n, stream)},
		{"MemcpyPeerAsync", in{p, ctx, p2, ctx2, n, stream}, nil, line("cuMemcpyPeerAsync", p, ctx, p2, ctx2, n, stream)},
		{"MemsetD8Async", in{p, uint8(i), n, stream}, nil, line("cuMemsetD8Async", p, uint8(i), n, stream)},
		{"MemsetD32Async", in{p, uint32(i), n2, stream}, nil, line("cuMemsetD32Async", p, uint32(i), n2, stream)},

		{"StreamCreate", in{i}, ret{driver.Stream(o[0])}, line("cuStreamCreateWithPriority", 1, i)},
		{"StreamPriorityRange", nil, ret{int32s(0), int32s(1)}, line("cuCtxGetStreamPriorityRange")},
		{"StreamDestroy", in{stream}, nil, line("cuStreamDestroy_v2", stream)},
		{"StreamSynchronize", in{stream}, nil, line("cuStreamSynchronize", stream)},
		{"StreamQuery", in{stream}, nil, line("cuStreamQuery", stream)},
		{"StreamWaitEvent", in{stream, event}, nil, line("cuStreamWaitEvent", stream, event, 0)},
		{"EventCreate", in{false}, ret{driver.Event(o[0])}, line("cuEventCreate", 3)},
		{"EventCreate", in{true}, ret{driver.Event(o[0])}, line("cuEventCreate", 1)},
		{"EventDestroy", in{event}, nil, line("cuEventDestroy_v2", event)},
		{"EventRecord", in{event, stream}, nil, line("cuEventRecord", event, stream)},
		{"EventSynchronize", in{event}, nil, line("cuEventSynchronize", event)},
		{"EventQuery", in{event}, nil, line("cuEventQuery", event)},
		{"EventElapsed", in{event, event2}, ret{uint32(o[0])}, line("cuEventElapsedTime", event, event2)},

		{"StreamBeginCapture", in{stream}, nil, line("cuStreamBeginCapture_v2", stream, 1)},
		{"StreamEndCapture", in{stream}, ret{driver.Graph(o[0])}, line("cuStreamEndCapture", stream)},
		{"GraphDestroy", in{graph}, nil, line("cuGraphDestroy", graph)},
		{"GraphInstantiate", in{graph}, ret{driver.GraphExec(o[0])}, line("cuGraphInstantiateWithFlags", graph, 0)},
		{"GraphExecDestroy", in{exec}, nil, line("cuGraphExecDestroy", exec)},
		{"GraphUpload", in{exec, stream}, nil, line("cuGraphUpload", exec, stream)},
		{"GraphLaunch", in{exec, stream}, nil, line("cuGraphLaunch", exec, stream)},
		{"GraphExecKernelNodeSetParams", in{exec, node, fn, &plain}, nil,
			line("cuGraphExecKernelNodeSetParams", exec, node, fn, shape(&plain), params(&plain))},
		{"StreamCaptureNode", in{stream}, ret{driver.GraphNode(o[0])}, line("cuStreamGetCaptureInfo_v2", stream)},
	}
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, r.Uint64())
	}
	return b[:n]
}

// randomLaunch is one of a kernel with as many parameters, of 8 bytes each, as the low bits of its handle say.
func randomLaunch(r *rand.Rand, fn driver.Function) *driver.Launch {
	three := func() [3]uint32 { return [3]uint32{r.Uint32(), r.Uint32(), r.Uint32()} }
	l := &driver.Launch{Grid: three(), Block: three(), Shared: r.Uint32(), Cooperative: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		l.Cluster = three()
	}
	at := 0
	for range uint64(fn) & 63 {
		at += r.IntN(100)
		l.Offsets = append(l.Offsets, at)
		at += 8
	}
	l.Params = randomBytes(r, at)
	return l
}

// shape, params, config and launched are what the library writes down of a launch.
func shape(l *driver.Launch) string {
	g, b := l.Grid, l.Block
	return fmt.Sprintf("%d %d %d,%d %d %d,%d", g[0], g[1], g[2], b[0], b[1], b[2], l.Shared)
}

func params(l *driver.Launch) string {
	s := ""
	for _, at := range l.Offsets {
		s += fmt.Sprintf("%x,", l.Params[at:at+8])
	}
	return s + "0"
}

func config(l *driver.Launch, s driver.Stream) string {
	text := fmt.Sprintf("%s,%d", shape(l), s)
	if c := l.Cluster; c != [3]uint32{} {
		text += fmt.Sprintf(",cluster %d %d %d", c[0], c[1], c[2])
	}
	if l.Cooperative {
		text += ",cooperative 1"
	}
	return text
}

func launched(fn driver.Function, l *driver.Launch, s driver.Stream) string {
	if l.Cooperative || l.Cluster != [3]uint32{} {
		return line("cuLaunchKernelEx", fn, config(l, s), params(l))
	}
	return line("cuLaunchKernel", fn, shape(l), s, params(l))
}

// call calls a method. Floats come back as their bits, so that NaN equals itself.
func (s *stub) call(m method) (outs []any, r driver.Result) {
	args := make([]reflect.Value, len(m.args))
	for i, a := range m.args {
		args[i] = reflect.ValueOf(a)
	}
	for _, v := range reflect.ValueOf(s.Driver).MethodByName(m.name).Call(args) {
		switch v := v.Interface().(type) {
		case driver.Result:
			r = v
		case float32:
			outs = append(outs, math.Float32bits(v))
		default:
			outs = append(outs, v)
		}
	}
	return outs, r
}

// functions are those that a method calls, by its trace.
func (m method) functions() (names []string) {
	for _, f := range regexp.MustCompile(`(?m)^(cu\w+)\(`).FindAllStringSubmatch(m.trace, -1) {
		names = append(names, f[1])
	}
	return names
}

// TestMethods calls every method of the interface: the right function with the right arguments, and its answers.
func TestMethods(t *testing.T) {
	s, r := openStub(t), random(t, 1)
	covered := map[string]bool{}
	called := map[string]bool{}
	for range 20 {
		for _, m := range methods(s, r) {
			outs, result := s.call(m)
			require.Equal(t, driver.Success, result, m.name)
			require.Equal(t, m.outs, outs, m.name)
			require.Equal(t, m.trace, s.take(), m.name)
			covered[m.name] = true
			for _, f := range m.functions() {
				called[f] = true
			}
		}
	}
	for m := range reflect.TypeFor[driver.Driver]().Methods() {
		require.True(t, covered[m.Name], "no row for %s", m.Name)
		delete(covered, m.Name)
	}
	require.Empty(t, covered, "rows for methods that are not in the interface")
	for _, f := range reflect.VisibleFields(reflect.TypeFor[functions]()) {
		symbol := f.Name + f.Tag.Get("version")
		require.True(t, called[symbol] || symbol == "cuInit", "nothing calls %s", symbol)
	}
}

// TestErrors lets every function that a method calls return every code.
func TestErrors(t *testing.T) {
	s, r := openStub(t), random(t, 2)
	codes := results()
	require.Greater(t, len(codes), 90)
	for _, m := range methods(s, r) {
		for _, f := range m.functions() {
			s.fail("", 0)
			s.DevicePCIBusID(0) // fills all that C writes to, for the next call to find
			for _, code := range codes {
				s.fail(f, code)
				outs, result := s.call(m)
				if m.name == "ResultText" {
					require.Equal(t, ret{driver.Result(700).Name()}, outs)
					continue
				}
				require.Equal(t, code, result, "%s when %s fails", m.name, f)
				for _, o := range outs {
					require.Zero(t, o, "%s when %s fails", m.name, f)
				}
			}
			s.take()
		}
		s.fail("", 0)
	}
}

// TestConcurrent calls everything from many threads at once: frames are shared, their contents are not.
func TestConcurrent(t *testing.T) {
	path := stubPath(t)
	openStub(t)
	random(t, 0)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			s, r := control(t, path), random(t, 3+uint64(g))
			d, err := Open(path)
			if !assert.NoError(t, err) {
				return
			}
			s.begin(d)
			defer s.trace(0)
			for range 10 {
				for _, m := range methods(s, r) {
					outs, result := s.call(m)
					if trace := s.take(); result != driver.Success || !reflect.DeepEqual(outs, m.outs) || trace != m.trace {
						t.Errorf("%s: %v, %v, %s", m.name, outs, result, trace)
					}
				}
				runtime.GC()
			}
		})
	}
	wg.Wait()
}

// TestForeign has a call made with the stream and the addresses of memory.
func TestForeign(t *testing.T) {
	s, calls := openStub(t), 0
	memory := []driver.Memory{{At: 0x7000_0000_0000, Bytes: 8}, {At: 0x7000_0000_0100, Written: true}}
	require.Equal(t, driver.Success, s.LaunchForeign(42, memory, func(at []unsafe.Pointer, given driver.Stream) {
		calls++
		require.Equal(t, driver.Stream(42), given)
		require.Len(t, at, 2)
		for i, m := range memory {
			require.Equal(t, uintptr(m.At), uintptr(at[i]))
		}
	}))
	require.Equal(t, 1, calls)
}
