//go:build ((linux && !android) || darwin || windows) && (amd64 || arm64)

package webgpu

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu/internal/wgpu"
	"github.com/wavelane/wavelane/wgsl"
)

// nativeMu serialises enumeration over the process, as it touches the environment.
var nativeMu sync.Mutex

// listings are the instances that list adapters, by library. They live as long as the process, so that drivers stay loaded.
//
// Each device has an instance of its own besides: the library numbers devices and their queues in two sequences per
// instance, takes it for granted that the numbers of a pair are equal, and ends the process at the first submission when
// they are not. They drift apart when a device is opened while another is being closed.
var listings = map[*wgpu.Library]uintptr{}

const backends = wgpu.InstanceBackend_Vulkan | wgpu.InstanceBackend_Metal | wgpu.InstanceBackend_DX12 // no GL: see package gpu

// newInstance loads the drivers.
func newInstance(l *wgpu.Library) (instance uintptr) {
	f := wgpu.Begin()
	defer f.End()
	// Labels are kept, as no flags are set: without them Direct3D's compiler is given an invalid pointer for the name of a kernel.
	f.Extras = wgpu.InstanceExtras{Chain: wgpu.ChainedStruct{SType: l.ABI.SType_InstanceExtras}, Backends: backends}
	f.Instance = wgpu.InstanceDescriptor{NextInChain: wgpu.Address(&f.Extras)}
	wgpu.Quietly(func() { instance = f.Call(l.CreateInstance, wgpu.Address(&f.Instance)) })
	return instance
}

// enumerate calls do for each adapter, which is released afterwards.
func enumerate(l *wgpu.Library, instance uintptr, do func(i int, f *wgpu.Frame, adapter uintptr)) {
	f := wgpu.Begin()
	defer f.End()
	f.Enumerate = wgpu.InstanceEnumerateAdapterOptions{Backends: backends}
	var n uintptr
	wgpu.Quietly(func() {
		n = f.Call(l.InstanceEnumerateAdapters, instance, wgpu.Address(&f.Enumerate), 0)
		if n > 0 && int(n) <= len(f.Handles) {
			n = f.Call(l.InstanceEnumerateAdapters, instance, wgpu.Address(&f.Enumerate), wgpu.Address(&f.Handles))
		}
	})
	for i := range min(int(n), len(f.Handles)) {
		adapter := f.Handles[i]
		do(i, f, adapter)
		f.Call(l.AdapterRelease, adapter)
	}
}

// Adapters lists the adapters, software ones included, that a library finds; see [wgpu.Find].
func Adapters(_ context.Context, library string) ([]Adapter, error) {
	nativeMu.Lock()
	defer nativeMu.Unlock()
	l, err := wgpu.Find(library)
	if err != nil {
		return nil, err
	}
	if listings[l] == 0 {
		listings[l] = newInstance(l)
	}
	var list []Adapter
	enumerate(l, listings[l], func(i int, f *wgpu.Frame, adapter uintptr) {
		list = append(list, describe(l, i, f, adapter))
	})
	return list, nil
}

// Library says which library a path stands for; see [wgpu.Find].
func Library(path string) (string, error) {
	l, err := wgpu.Find(path)
	if err != nil {
		return "", err
	}
	return l.String(), nil
}

// describe leaves the adapter's limits in f.Limits.
func describe(l *wgpu.Library, index int, f *wgpu.Frame, adapter uintptr) Adapter {
	f.Info, f.Limits, f.Features = wgpu.AdapterInfo{}, wgpu.Limits{}, wgpu.SupportedFeatures{}
	f.Call(l.AdapterGetInfo, adapter, wgpu.Address(&f.Info))
	f.Call(l.AdapterGetLimits, adapter, wgpu.Address(&f.Limits))
	f.Call(l.AdapterGetFeatures, adapter, wgpu.Address(&f.Features))
	c, m := &f.Info, &f.Limits
	a := Adapter{
		Index: index, Name: c.Device.String(), Vendor: c.VendorID, Device: c.DeviceID,
		Driver: c.Vendor.String(), DriverInfo: c.Description.String(),
		Limits: wgsl.Caps{
			MaxWorkgroups: m.MaxComputeWorkgroupsPerDimension, MaxInvocations: m.MaxComputeInvocationsPerWorkgroup,
			MaxWorkgroupSize: [3]uint32{m.MaxComputeWorkgroupSizeX, m.MaxComputeWorkgroupSizeY, m.MaxComputeWorkgroupSizeZ},
			MaxShared:        m.MaxComputeWorkgroupStorageSize, MaxStorageBuffers: m.MaxStorageBuffersPerShaderStage,
			// Bindings are sized in 32 bits inside, and vec4 kernels want whole multiples of 16.
			MaxBinding: min(m.MaxStorageBufferBindingSize, 1<<32-16) &^ 15, MaxBuffer: m.MaxBufferSize &^ 15,
			StorageAlign: max(m.MinStorageBufferOffsetAlignment, 4),
		},
		Features: []string{}, LanguageFeatures: []string{FeaturePackedDots},
		SubgroupMin: c.SubgroupMinSize, SubgroupMax: c.SubgroupMaxSize,
		Library: l.String(), library: l,
	}
	switch c.AdapterType {
	case wgpu.AdapterType_DiscreteGPU:
		a.Type = discreteAdapter
	case wgpu.AdapterType_IntegratedGPU:
		a.Type = integratedAdapter
	case wgpu.AdapterType_CPU:
		a.Type = cpuType(a.Vendor)
	default:
		a.Type = virtualAdapter
	}
	switch c.BackendType {
	case wgpu.BackendType_Vulkan:
		a.Backend = "vulkan"
	case wgpu.BackendType_Metal:
		a.Backend = "metal"
	case wgpu.BackendType_D3D12:
		a.Backend = "dx12"
	default:
		a.Backend = fmt.Sprint(c.BackendType)
	}
	f.FreeInfo(l)
	if n := int(f.Features.FeatureCount); n > 0 {
		offered := map[uint32]bool{}
		for _, x := range unsafe.Slice((*uint32)(wgpu.Pointer(f.Features.Features)), n) {
			offered[x] = true
		}
		for _, x := range features(l) {
			if offered[x.number] && (x.with == 0 || offered[x.with]) {
				a.Features = append(a.Features, x.name)
			}
		}
		f.FreeFeatures(l)
	}
	return a
}

// feature is a feature that kernels or runs may use, and another that it takes.
type feature struct {
	name         string
	number, with uint32
}

func features(l *wgpu.Library) [3]feature {
	return [3]feature{
		{FeatureTimestamps, l.ABI.FeatureName_TimestampQuery, wgpu.NativeFeature_TimestampQueryInsideEncoders},
		{FeatureF16, l.ABI.FeatureName_ShaderF16, 0},
		{FeatureSubgroups, wgpu.NativeFeature_Subgroup, 0},
	}
}

// Open opens an adapter of the list, with the limits that it has there. It returns the adapter with what was granted.
func Open(_ context.Context, want Adapter) (Driver, Adapter, error) {
	nativeMu.Lock()
	defer nativeMu.Unlock()
	l := want.library.(*wgpu.Library)
	instance := newInstance(l)
	var d *native
	err := fmt.Errorf("the adapter has disappeared: %w", compute.ErrUnavailable)
	enumerate(l, instance, func(i int, f *wgpu.Frame, adapter uintptr) {
		if i != want.Index {
			return
		}
		got := describe(l, i, f, adapter)
		if got.Name != want.Name || got.Vendor != want.Vendor || got.Device != want.Device {
			return
		}
		d, err = open(l, instance, f, adapter, &want)
	})
	if err != nil {
		wgpu.Call(l.InstanceRelease, instance)
		return nil, Adapter{}, err
	}
	return d, want, nil
}

// open opens a device with everything that the adapter offers, except where want says less. f has been described.
func open(l *wgpu.Library, instance uintptr, f *wgpu.Frame, adapter uintptr, want *Adapter) (*native, error) {
	m, w := &f.Limits, want.Limits
	m.MaxBufferSize, m.MaxStorageBufferBindingSize = w.MaxBuffer, w.MaxBinding
	m.MaxStorageBuffersPerShaderStage, m.MinStorageBufferOffsetAlignment = w.MaxStorageBuffers, w.StorageAlign
	m.MaxComputeWorkgroupStorageSize, m.MaxComputeInvocationsPerWorkgroup = w.MaxShared, w.MaxInvocations
	m.MaxComputeWorkgroupSizeX, m.MaxComputeWorkgroupSizeY, m.MaxComputeWorkgroupSizeZ = w.MaxWorkgroupSize[0], w.MaxWorkgroupSize[1], w.MaxWorkgroupSize[2]
	m.MaxComputeWorkgroupsPerDimension = w.MaxWorkgroups
	m.MaxImmediateSize = 0 // belongs to a feature that is not asked for
	f.Device = wgpu.DeviceDescriptor{RequiredLimits: wgpu.Address(m), RequiredFeatures: wgpu.Address(&f.Required)}
	require := func(number uint32) {
		f.Required[f.Device.RequiredFeatureCount] = number
		f.Device.RequiredFeatureCount++
	}
	for _, x := range features(l) {
		if slices.Contains(want.Features, x.name) {
			require(x.number)
			if x.with != 0 {
				require(x.with)
			}
		}
	}
	d := &native{l: l, instance: instance, lost: wgpu.NewLost()}
	d.device = f.RequestDevice(l, adapter, d.lost)
	if err := callError("open the device", f); err != nil {
		d.lost.Close()
		return nil, err
	}
	if d.device == 0 {
		d.lost.Close()
		return nil, fmt.Errorf("open the device: the library gives none: %w", compute.ErrUnavailable)
	}
	d.queue = f.Call(l.DeviceGetQueue, d.device)
	d.calibrated = sync.OnceValue(d.calibrate)
	return d, nil
}

// callError turns what was reported in a frame into an error of Go, and forgets it.
func callError(what string, f *wgpu.Frame) error {
	kind, text := f.Forget()
	text = strings.TrimSpace(text)
	switch {
	case kind == wgpu.ErrorType_NoError:
		return nil
	case kind == wgpu.ErrorLost || strings.Contains(text, "Parent device is lost"): // also typed as validation, on other threads at that time
		return lossError(what + ": " + text)
	case kind == wgpu.ErrorType_OutOfMemory || strings.Contains(text, noMemory): // typed as validation
		return fmt.Errorf("%s: %s: %w", what, text, compute.ErrOutOfMemory)
	}
	return fmt.Errorf("%s: %w", what, errors.New(text))
}

// native is the driver over wgpu-native. Errors of a call are in its frame: the library reports each at once, on the thread of the call,
// so that those of concurrent calls cannot mix, which WebGPU's error scopes, one stack per device, would let them do. Completion is a
// word that the library's callback changes and Go polls.
type native struct {
	l                       *wgpu.Library
	instance, device, queue uintptr
	lost                    *wgpu.Lost
	calibrated              func() error // finds period, once
	period                  float64      // nanoseconds of one timestamp tick

	mu       sync.Mutex
	inFlight []*pending
	polling  bool
	// waiting are submitted by the one goroutine that submits.
	waiting    []*pending
	submitting bool
	stamps     []*stamps // free
}

// begin takes a frame for calls that may lose the device.
func (d *native) begin() *wgpu.Frame {
	f := wgpu.Begin()
	f.Lost = d.lost
	return f
}

func (d *native) Together(f func() error) error { return f() }

// Ready has nothing to wait for: every call reports its errors itself.
func (d *native) Ready(_ Object, f func(error)) { f(nil) }

func (d *native) Lost() error {
	if reason := d.lost.Reason(); reason != nil {
		return lossError(*reason)
	}
	return nil
}

// noMemory is what the library says of memory that it, or a driver, does not get.
const noMemory = "Not enough memory left"

// lossError says why a device is lost, which may be for want of memory.
func lossError(reason string) error {
	if strings.Contains(reason, noMemory) {
		return fmt.Errorf("%s: %w: %w", reason, compute.ErrOutOfMemory, compute.ErrDeviceLost)
	}
	return fmt.Errorf("%s: %w", reason, compute.ErrDeviceLost)
}

// Idle reports whether nothing polls the device, for tests.
func (d *native) Idle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.polling && !d.submitting
}

// Lose makes the device count as lost, as its callback does, for tests: the library cannot be made to lose one.
func (d *native) Lose(reason string) { d.lost.Lose(reason) }

func (d *native) Close() {
	for _, s := range d.stamps {
		s.free(d)
	}
	d.stamps = nil
	if d.Lost() != nil {
		abandon(d) // releasing a device waits for its queue, which ends the process if the device is lost
		return
	}
	wgpu.Call(d.l.QueueRelease, d.queue)
	wgpu.Call(d.l.DeviceRelease, d.device)
	wgpu.Call(d.l.InstanceRelease, d.instance)
	d.lost.Close()
}

// abandoned is what the library may still write to, for the life of the process.
var abandoned struct {
	sync.Mutex
	list []any
}

func abandon(x any) {
	abandoned.Lock()
	defer abandoned.Unlock()
	abandoned.list = append(abandoned.list, x)
}

// nativeBuffer is a buffer of any kind.
type nativeBuffer struct {
	d    *native
	ref  uintptr
	kind BufferKind
	size uint64
	at   unsafe.Pointer // C memory while mapped
}

// Free is for buffers that no submission in flight uses. Destroying frees the memory now; releasing alone waits for a poll.
func (b *nativeBuffer) Free() {
	wgpu.Call(b.d.l.BufferDestroy, b.ref)
	wgpu.Call(b.d.l.BufferRelease, b.ref)
}

var usages = [BufferKinds]uint64{
	StorageBuffer:  wgpu.BufferUsage_Storage | wgpu.BufferUsage_CopySrc | wgpu.BufferUsage_CopyDst,
	UniformBuffer:  wgpu.BufferUsage_Uniform | wgpu.BufferUsage_CopyDst,
	UploadBuffer:   wgpu.BufferUsage_MapWrite | wgpu.BufferUsage_CopySrc,
	ReadbackBuffer: wgpu.BufferUsage_MapRead | wgpu.BufferUsage_CopyDst,
}

func (d *native) NewBuffer(kind BufferKind, size uint64) (Object, error) {
	f := d.begin()
	defer f.End()
	b := &nativeBuffer{d: d, kind: kind, size: size}
	b.ref = d.newBuffer(f, usages[kind], size, kind == UploadBuffer)
	if f.Failed() {
		return nil, callError(fmt.Sprintf("create a %v buffer of %d bytes", kind, size), f)
	}
	if kind == UploadBuffer {
		b.mapped(f)
	}
	return b, nil
}

// newBuffer returns nothing if it fails: asking an invalid buffer for its mapping would end the process.
func (d *native) newBuffer(f *wgpu.Frame, usage, size uint64, mapped bool) uintptr {
	f.Buffer = wgpu.BufferDescriptor{Usage: usage, Size: size}
	if mapped {
		f.Buffer.MappedAtCreation = 1
	}
	ref := f.Call(d.l.DeviceCreateBuffer, d.device, wgpu.Address(&f.Buffer))
	if f.Failed() {
		f.Call(d.l.BufferRelease, ref)
		return 0
	}
	return ref
}

// mapped finds the memory of a buffer known to be mapped: asking for any other ends the process.
func (b *nativeBuffer) mapped(f *wgpu.Frame) {
	get := b.d.l.BufferGetConstMappedRange
	if b.kind == UploadBuffer {
		get = b.d.l.BufferGetMappedRange
	}
	b.at = wgpu.Pointer(f.Call(get, b.ref, 0, uintptr(b.size)))
}

func (d *native) Write(upload Object, offset uint64, data []byte) {
	b := upload.(*nativeBuffer)
	copy(unsafe.Slice((*byte)(b.at), b.size)[offset:], data)
}

func (d *native) Read(readback Object, offset uint64, dst []byte) {
	b := readback.(*nativeBuffer)
	copy(dst, unsafe.Slice((*byte)(b.at), b.size)[offset:])
}

func (d *native) Unmap(readback Object) error {
	b := readback.(*nativeBuffer)
	b.at = nil
	f := d.begin()
	defer f.End()
	f.Call(d.l.BufferUnmap, b.ref)
	return callError("unmap a readback buffer", f)
}

type nativePipeline struct {
	d           *native
	layout, ref uintptr // of its bind groups, and itself
	uniform     bool
}

func (p *nativePipeline) Free() {
	wgpu.Call(p.d.l.ComputePipelineRelease, p.ref)
	wgpu.Call(p.d.l.BindGroupLayoutRelease, p.layout)
}

// enableSubgroups is what the standard wants and this library's compiler does not know: it goes by the device's features.
const enableSubgroups = "enable subgroups;"

func (d *native) NewPipeline(k *wgsl.Kernel) (Object, error) {
	if len(k.Bindings) >= wgpu.MaxBindings {
		return nil, fmt.Errorf("create the pipeline of %s: %d bindings, at most %d are possible: %w", k.Key, len(k.Bindings), wgpu.MaxBindings-1, compute.ErrTooLarge)
	}
	f := d.begin()
	defer f.End()
	l := d.l
	p := &nativePipeline{d: d, uniform: k.Uniform > 0}
	source := strings.Replace(k.Source, enableSubgroups, "", 1)
	defer runtime.KeepAlive(k)
	defer runtime.KeepAlive(source)
	label := wgpu.View(k.Key)
	f.Source = wgpu.ShaderSourceWGSL{Chain: wgpu.ChainedStruct{SType: wgpu.SType_ShaderSourceWGSL}, Code: wgpu.View(source)}
	f.Module = wgpu.ShaderModuleDescriptor{NextInChain: wgpu.Address(&f.Source), Label: label}
	var module uintptr
	if k.Finite && l.DeviceCreateShaderModuleTrusted != 0 {
		module = f.Call(l.DeviceCreateShaderModuleTrusted, d.device, wgpu.Address(&f.Module), uintptr(l.ABI.ShaderRuntimeChecks_BoundsChecks))
	} else {
		module = f.Call(l.DeviceCreateShaderModule, d.device, wgpu.Address(&f.Module))
	}
	defer wgpu.Call(l.ShaderModuleRelease, module)
	if f.Failed() { // going on with an invalid module ends the process
		return nil, pipelineError(k, f)
	}
	n := 0
	bind := func(kind uint32) {
		f.LayoutEntries[n] = wgpu.BindGroupLayoutEntry{Binding: uint32(n), Visibility: wgpu.ShaderStage_Compute,
			Buffer: wgpu.BufferBindingLayout{Type: kind}}
		n++
	}
	for _, a := range k.Bindings {
		if a == wgsl.ReadWrite {
			bind(wgpu.BufferBindingType_Storage)
		} else {
			bind(wgpu.BufferBindingType_ReadOnlyStorage)
		}
	}
	if p.uniform {
		bind(wgpu.BufferBindingType_Uniform)
		f.LayoutEntries[n-1].Buffer.HasDynamicOffset = 1
	}
	f.SetLayout(l, n)
	p.layout = f.Call(l.DeviceCreateBindGroupLayout, d.device, wgpu.Address(&f.GroupLayout))
	var layout uintptr
	if !f.Failed() {
		f.Handle = p.layout
		f.PipelineLayout = wgpu.PipelineLayoutDescriptor{BindGroupLayoutCount: 1, BindGroupLayouts: wgpu.Address(&f.Handle)}
		layout = f.Call(l.DeviceCreatePipelineLayout, d.device, wgpu.Address(&f.PipelineLayout))
		defer wgpu.Call(l.PipelineLayoutRelease, layout)
	}
	if !f.Failed() {
		f.Pipeline = wgpu.ComputePipelineDescriptor{Label: label, Layout: layout, Compute: wgpu.ComputeState{Module: module, EntryPoint: wgpu.View(k.Entry)}}
		p.ref = f.Call(l.DeviceCreateComputePipeline, d.device, wgpu.Address(&f.Pipeline))
	}
	if f.Failed() {
		if p.ref != 0 {
			f.Call(l.ComputePipelineRelease, p.ref)
		}
		f.Call(l.BindGroupLayoutRelease, p.layout)
		return nil, pipelineError(k, f)
	}
	return p, nil
}

// pipelineError takes what was reported in a frame for an error of the shader where it can be one.
func pipelineError(k *wgsl.Kernel, f *wgpu.Frame) error {
	err := callError("create the pipeline of "+k.Key, f)
	if errors.Is(err, compute.ErrOutOfMemory) || errors.Is(err, compute.ErrDeviceLost) {
		return err
	}
	return newShaderError(k, errors.Unwrap(err).Error())
}

// nativeGroup is a bind group.
type nativeGroup struct {
	d   *native
	ref uintptr
}

func (g *nativeGroup) Free() { wgpu.Call(g.d.l.BindGroupRelease, g.ref) }

func (d *native) NewGroup(pipeline Object, bind []Binding) (Object, error) {
	f := d.begin()
	defer f.End()
	for i, b := range bind {
		f.Entries[i] = wgpu.BindGroupEntry{Binding: uint32(i), Buffer: b.Buffer.(*nativeBuffer).ref, Offset: b.Offset, Size: b.Size}
	}
	f.Group = wgpu.BindGroupDescriptor{Layout: pipeline.(*nativePipeline).layout, EntryCount: uint64(len(bind)), Entries: wgpu.Address(&f.Entries)}
	ref := f.Call(d.l.DeviceCreateBindGroup, d.device, wgpu.Address(&f.Group))
	if f.Failed() {
		f.Call(d.l.BindGroupRelease, ref)
		return nil, callError("bind buffers", f)
	}
	return &nativeGroup{d, ref}, nil
}
