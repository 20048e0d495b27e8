package softgpu_test

import (
	"reflect"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// The tests here go over the methods of the interface, so that one that is new is tested too.

var (
	driverType = reflect.TypeFor[driver.Driver]()
	resultType = reflect.TypeFor[driver.Result]()
)

// calls are the methods that return a result.
func calls() []reflect.Method {
	var list []reflect.Method
	for i := range driverType.NumMethod() {
		m := driverType.Method(i)
		if n := m.Type.NumOut(); n > 0 && m.Type.Out(n-1) == resultType && m.Name != "ResultText" {
			list = append(list, m)
		}
	}
	return list
}

// call calls a method and returns its result.
func call(g *softgpu.GPU, name string, in []reflect.Value) driver.Result {
	out := reflect.ValueOf(g).MethodByName(name).Call(in)
	return out[len(out)-1].Interface().(driver.Result)
}

// zeros are arguments of a method.
func zeros(m reflect.Method) []reflect.Value {
	var in []reflect.Value
	for i := range m.Type.NumIn() {
		in = append(in, reflect.Zero(m.Type.In(i)))
	}
	return in
}

// noContext are the calls that need no current context.
var noContext = map[string]bool{"Version": true, "DeviceCount": true, "DeviceGet": true, "DeviceName": true, "DeviceUUID": true,
	"DevicePCIBusID": true, "DeviceTotalMem": true, "DeviceGetAttribute": true, "DeviceCanAccessPeer": true,
	"PrimaryCtxSetFlags": true, "PrimaryCtxRetain": true, "PrimaryCtxRelease": true, "CtxSetCurrent": true, "CtxGetCurrent": true}

// TestInject lets every call fail.
func TestInject(t *testing.T) {
	require.Greater(t, len(calls()), 50)
	for _, m := range calls() {
		var asked []string
		g := softgpu.New(softgpu.Config{Inject: func(call string) driver.Result {
			asked = append(asked, call)
			return driver.ECCUncorrectable
		}})
		require.Equal(t, driver.ECCUncorrectable, call(g, m.Name, zeros(m)), m.Name)
		require.Equal(t, []string{m.Name}, asked)
		require.Equal(t, map[string]uint64{m.Name: 1}, g.Calls())
		require.NoError(t, g.Leaks())
	}
}

// TestInjectedIsNotDone tells that the call has no effect, that its log says so, and that a sticky result stays.
func TestInjectedIsNotDone(t *testing.T) {
	fail := map[string]driver.Result{}
	inject := func(call string) driver.Result { return fail[call] }
	for _, m := range calls() {
		if noContext[m.Name] {
			continue
		}
		r := newRig(t, softgpu.Config{Inject: inject})
		r.abandon()
		in := arguments(r, m)
		before := r.Live()
		fail[m.Name] = driver.NotPermitted
		require.Equal(t, driver.NotPermitted, call(r.GPU, m.Name, in), m.Name)
		delete(fail, m.Name)
		require.Equal(t, before, r.Live(), m.Name)
	}
	r := newRig(t, softgpu.Config{Inject: inject})
	fail["ModuleLoadData"] = driver.JITCompilerNotFound
	o := driver.JIT{InfoLog: "old"}
	_, res := r.ModuleLoadData([]byte(kernelText), &o)
	r.is(driver.JITCompilerNotFound, res)
	require.Contains(t, o.ErrorLog, "JIT_COMPILER_NOT_FOUND")
	require.Empty(t, o.InfoLog)

	r.ok(r.CtxSynchronize())
	fail["StreamCreate"] = driver.IllegalAddress
	_, res = r.StreamCreate(0)
	r.is(driver.IllegalAddress, res)
	r.is(driver.IllegalAddress, r.CtxSynchronize())
	require.Contains(t, r.Detail(r.ctx), "StreamCreate")
}

// TestWithoutContext calls everything on a thread without a context.
func TestWithoutContext(t *testing.T) {
	r := newRig(t, softgpu.Config{})
	r.ok(r.CtxSetCurrent(0))
	for _, m := range calls() {
		if !noContext[m.Name] {
			require.Equal(t, driver.InvalidContext, call(r.GPU, m.Name, zeros(m)), m.Name)
		}
	}
	r.ok(r.CtxSetCurrent(r.ctx))
}

// destroys are the calls that take effect on a dead context.
var destroys = map[string]bool{"MemFree": true, "MemFreeHost": true, "StreamDestroy": true, "EventDestroy": true,
	"GraphDestroy": true, "GraphExecDestroy": true, "ModuleUnload": true}

// TestDeadContext calls everything on a context with a fault: all calls return it, those that destroy do so nevertheless.
func TestDeadContext(t *testing.T) {
	for _, m := range calls() {
		if noContext[m.Name] {
			continue
		}
		r := newRig(t, softgpu.Config{})
		in := arguments(r, m)
		before := r.Live()
		r.ok(r.LaunchKernel(r.fn("store"), one(1, driver.Ptr(16)), 0))
		for res := driver.Success; res != driver.IllegalAddress; _, _, res = r.StreamPriorityRange() { // it may be capturing
			require.Equal(t, driver.Success, res)
			runtime.Gosched()
		}
		require.Equal(t, driver.IllegalAddress, call(r.GPU, m.Name, in), m.Name)
		if destroys[m.Name] {
			require.NotEqual(t, before, r.Live(), m.Name)
		} else {
			require.Equal(t, before, r.Live(), m.Name)
		}
	}
}

// arguments are such that the method succeeds. What they need is made in the context, which is given up with it.
func arguments(r *rig, m reflect.Method) []reflect.Value {
	r.t.Helper()
	s, e, f, host := r.stream(), r.event(true), r.fn("add"), unsafe.Pointer(nil)
	_, host = r.pinned(64)
	memory := r.alloc(256)
	l := one(32, memory, 32, 1)
	r.ok(r.EventRecord(e, s))
	r.ok(r.StreamSynchronize(s))
	r.ok(r.StreamBeginCapture(s))
	r.ok(r.LaunchKernel(f, l, s))
	node, res := r.StreamCaptureNode(s)
	r.ok(res)
	graph, res := r.StreamEndCapture(s)
	r.ok(res)
	exec, res := r.GraphInstantiate(graph)
	r.ok(res)
	values := map[reflect.Type]any{
		reflect.TypeFor[driver.Device](): driver.Device(0), reflect.TypeFor[driver.Context](): r.ctx,
		reflect.TypeFor[driver.Module](): r.module, reflect.TypeFor[driver.Function](): f, reflect.TypeFor[driver.Stream](): s,
		reflect.TypeFor[driver.Event](): e, reflect.TypeFor[driver.Graph](): graph, reflect.TypeFor[driver.GraphNode](): node,
		reflect.TypeFor[driver.GraphExec](): exec, reflect.TypeFor[driver.Ptr](): memory, reflect.TypeFor[unsafe.Pointer](): host,
		reflect.TypeFor[*driver.Launch](): l, reflect.TypeFor[uint64](): uint64(16), reflect.TypeFor[[]byte](): []byte(kernelText),
		reflect.TypeFor[driver.FuncAttribute](): driver.FuncMaxDynamicShared, reflect.TypeFor[driver.Attribute](): driver.WarpSize,
	}
	if m.Name == "TensorMapEncode" {
		values[reflect.TypeFor[[]byte]()] = make([]byte, tensormap.Size)
		values[reflect.TypeFor[*tensormap.Map]()] = &tensormap.Map{Type: tensormap.F32, Rank: 1, Address: 16, Dims: [5]uint64{4}, Box: [5]uint32{4}}
	}
	if m.Name == "ModuleUnload" {
		values[reflect.TypeFor[driver.Module]()] = r.load(kernelText)
	}
	if m.Name == "ModuleGetFunction" {
		values[reflect.TypeFor[string]()] = "add"
	}
	if m.Name == "ModuleGetGlobal" {
		values[reflect.TypeFor[string]()] = "table"
	}
	if m.Name == "OccupancyMaxActiveBlocks" {
		values[reflect.TypeFor[int]()] = 32
	}
	if m.Name == "OccupancyMaxActiveClusters" {
		l.Cluster = [3]uint32{1, 1, 1}
	}
	in := zeros(m)
	second := m.Name == "MemcpyDtoDAsync" || m.Name == "MemcpyPeerAsync" // the source must not overlap
	for i := range in {
		if v, ok := values[m.Type.In(i)]; ok {
			in[i] = reflect.ValueOf(v)
		}
		if p, ok := in[i].Interface().(driver.Ptr); ok && second {
			values[m.Type.In(i)] = p + 128
		}
	}
	switch m.Name {
	case "LaunchForeign":
		in[2] = reflect.ValueOf(func([]unsafe.Pointer, driver.Stream) {})
	case "StreamEndCapture", "StreamCaptureNode":
		r.ok(r.StreamBeginCapture(s))
		r.ok(r.LaunchKernel(f, l, s))
	}
	return in
}

// TestWrongHandles replaces each handle and pointer of each call by others that do not fit. Before, the call fails and does
// nothing; with the right ones it succeeds.
func TestWrongHandles(t *testing.T) {
	for _, m := range calls() {
		if m.Name == "PrimaryCtxRelease" || m.Name == "CtxEnablePeerAccess" { // the first ends the rig; the second never succeeds
			continue
		}
		r := newRig(t, softgpu.Config{})
		in := arguments(r, m)
		spare := r.stream()
		ev := r.event(false)
		handles := []uint64{0, 1, 7, 1 << 40, ^uint64(0), uint64(spare), uint64(ev), uint64(r.module), uint64(r.ctx),
			uint64(r.fn("store"))}
		for i := range in {
			right := in[i]
			kind := right.Type()
			for _, h := range handles {
				var wrong reflect.Value
				switch kind {
				case reflect.TypeFor[unsafe.Pointer]():
					wrong = reflect.ValueOf(unsafe.Pointer(&handles[0]))
				case reflect.TypeFor[*driver.Launch]():
					wrong = reflect.Zero(kind)
				default:
					if kind.PkgPath() != resultType.PkgPath() || kind.Kind() == reflect.Int32 && kind != reflect.TypeFor[driver.Device]() {
						continue
					}
					wrong = reflect.New(kind).Elem()
					if kind.Kind() == reflect.Int32 {
						if h == 0 {
							continue
						}
						wrong.SetInt(int64(int32(h>>1 | 1)))
					} else {
						wrong.SetUint(h)
					}
				}
				fits := kind == reflect.TypeFor[driver.Stream]() && (h == 0 || h == uint64(spare)) ||
					kind == reflect.TypeFor[driver.Context]() && (h == 0 && m.Name == "CtxSetCurrent" || h == uint64(r.ctx)) ||
					kind == reflect.TypeFor[driver.Module]() && h == uint64(r.module) ||
					kind == reflect.TypeFor[driver.Function]() && h == uint64(r.fn("store")) ||
					kind == reflect.TypeFor[driver.Event]() && h == uint64(ev)
				if fits {
					continue
				}
				in[i] = wrong
				res := call(r.GPU, m.Name, in)
				require.Contains(t, []driver.Result{driver.InvalidHandle, driver.InvalidValue, driver.InvalidContext, driver.InvalidDevice},
					res, "%s with %v as argument %d", m.Name, h, i)
			}
			in[i] = right
		}
		require.Equal(t, "CUDA_SUCCESS", call(r.GPU, m.Name, in).Name(), m.Name)
		if m.Name == "PrimaryCtxRetain" {
			r.ok(r.PrimaryCtxRelease(0))
		}
		r.abandon()
	}
}
