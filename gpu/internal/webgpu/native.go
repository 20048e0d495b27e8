//go:build cgo && !js

package webgpu

/*
#include <stdlib.h>
#include "shim.h"
#include "webgpu_abi.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/wgsl"

	// Only for its link flags: they bring wgpu-native's static library. Its Go half is not used, because it passes
	// addresses of Go variables to C as user data, which the garbage collector moves away under it, and reports neither
	// out-of-memory nor device loss.
	_ "github.com/cogentcore/webgpu/wgpu"
)

// nativeMu serialises enumeration over the process, as it touches the environment.
var nativeMu sync.Mutex

// listing is the instance that lists adapters. It lives as long as the process, so that drivers stay loaded.
//
// Each device has an instance of its own besides: the library numbers devices and their queues in two sequences per
// instance, takes it for granted that the numbers of a pair are equal, and ends the process at the first submission when
// they are not. They drift apart when a device is opened while another is being closed.
var listing C.wl_handle

// enumerate calls f for each adapter, which is released afterwards.
func enumerate(instance C.wl_handle, f func(i int, handle C.wl_handle)) {
	var handles [64]C.wl_handle
	n := int(C.wl_adapters(instance, &handles[0], C.size_t(len(handles))))
	for i := range n {
		f(i, handles[i])
		C.wl_adapter_release(handles[i])
	}
}

// Adapters lists the adapters, software ones included.
func Adapters(context.Context) ([]Adapter, error) {
	nativeMu.Lock()
	defer nativeMu.Unlock()
	if listing == 0 {
		listing = C.wl_instance_new()
	}
	var list []Adapter
	enumerate(listing, func(i int, h C.wl_handle) {
		var info C.wl_adapter_info
		C.wl_adapter_describe(h, &info)
		list = append(list, adapterInfo(i, &info))
	})
	return list, nil
}

func adapterInfo(index int, c *C.wl_adapter_info) Adapter {
	a := Adapter{
		Index: index, Name: C.GoString(&c.name[0]), Vendor: uint32(c.vendor_id), Device: uint32(c.device_id),
		Driver: C.GoString(&c.driver[0]), DriverInfo: C.GoString(&c.driver_info[0]),
		Limits: wgsl.Caps{
			MaxWorkgroups: uint32(c.max_groups), MaxInvocations: uint32(c.max_invocations),
			MaxWorkgroupSize: [3]uint32{uint32(c.max_size[0]), uint32(c.max_size[1]), uint32(c.max_size[2])},
			MaxShared:        uint32(c.max_shared), MaxStorageBuffers: uint32(c.max_storage_buffers),
			// Bindings are sized in 32 bits inside, and vec4 kernels want whole multiples of 16.
			MaxBinding: min(uint64(c.max_storage_binding), 1<<32-16) &^ 15, MaxBuffer: uint64(c.max_buffer) &^ 15,
			StorageAlign: max(uint32(c.storage_align), 4),
		},
		Features: []string{},
	}
	switch c._type {
	case C.WGPUAdapterType_DiscreteGPU:
		a.Type = discreteAdapter
	case C.WGPUAdapterType_IntegratedGPU:
		a.Type = integratedAdapter
	case C.WGPUAdapterType_CPU:
		a.Type = cpuType(a.Vendor)
	default:
		a.Type = virtualAdapter
	}
	switch c.backend {
	case C.WGPUBackendType_Vulkan:
		a.Backend = "vulkan"
	case C.WGPUBackendType_Metal:
		a.Backend = "metal"
	case C.WGPUBackendType_D3D12:
		a.Backend = "dx12"
	default:
		a.Backend = fmt.Sprint(uint32(c.backend))
	}
	if c.timestamps != 0 {
		a.Features = append(a.Features, FeatureTimestamps)
	}
	return a
}

// Open opens an adapter of the list, with the limits that it has there. It returns the adapter with what was granted.
func Open(_ context.Context, want Adapter) (Driver, Adapter, error) {
	nativeMu.Lock()
	defer nativeMu.Unlock()
	instance := C.wl_instance_new()
	var d *native
	err := fmt.Errorf("the adapter has disappeared: %w", compute.ErrUnavailable)
	enumerate(instance, func(i int, h C.wl_handle) {
		if i != want.Index {
			return
		}
		var c C.wl_adapter_info
		C.wl_adapter_describe(h, &c)
		if got := adapterInfo(i, &c); got.Name != want.Name || got.Vendor != want.Vendor || got.Device != want.Device {
			return
		}
		l := want.Limits
		c.max_groups, c.max_invocations = C.uint32_t(l.MaxWorkgroups), C.uint32_t(l.MaxInvocations)
		for j, s := range l.MaxWorkgroupSize {
			c.max_size[j] = C.uint32_t(s)
		}
		c.max_shared, c.max_storage_buffers = C.uint32_t(l.MaxShared), C.uint32_t(l.MaxStorageBuffers)
		c.max_storage_binding, c.max_buffer = C.uint64_t(l.MaxBinding), C.uint64_t(l.MaxBuffer)
		c.storage_align = C.uint32_t(l.StorageAlign)
		var e C.wl_error
		dev := C.wl_device_open(instance, h, &c, &e)
		if err = callError("open the device", &e); err == nil {
			d = &native{dev: dev}
			d.calibrated = sync.OnceValue(d.calibrate)
		}
	})
	if err != nil {
		C.wl_instance_release(instance)
		return nil, Adapter{}, err
	}
	return d, want, nil
}

// callError turns the error of one call into Go's, and frees it.
func callError(what string, e *C.wl_error) error {
	if e.kind == C.WGPUErrorType_NoError {
		return nil
	}
	text := strings.TrimSpace(C.GoString(e.message))
	C.free(unsafe.Pointer(e.message))
	switch e.kind {
	case C.WGPUErrorType_OutOfMemory:
		return fmt.Errorf("%s: %s: %w", what, text, compute.ErrOutOfMemory)
	case C.WGPUErrorType_DeviceLost:
		return fmt.Errorf("%s: %s: %w", what, text, compute.ErrDeviceLost)
	}
	return fmt.Errorf("%s: %w", what, errors.New(text))
}

// native is the driver over wgpu-native. See shim.c for how errors and completions travel.
type native struct {
	dev        *C.wl_device
	calibrated func() error // finds period, once
	period     float64      // nanoseconds of one timestamp tick

	mu       sync.Mutex
	inFlight []*pending
	polling  bool
	// queue is what waits for being submitted, by the one goroutine that does while submitting.
	queue      []*pending
	submitting bool
	stamps     []C.wl_stamps // free
}

func (d *native) Together(f func() error) error { return f() }

// Ready has nothing to wait for: every call reports its errors itself.
func (d *native) Ready(_ Object, f func(error)) { f(nil) }

func (d *native) Lost() error {
	if C.wl_device_lost(d.dev, nil, 0) == 0 {
		return nil
	}
	var text [512]C.char
	C.wl_device_lost(d.dev, &text[0], C.size_t(len(text)))
	return fmt.Errorf("%s: %w", C.GoString(&text[0]), compute.ErrDeviceLost)
}

// Idle reports whether nothing polls the device, for tests.
func (d *native) Idle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.polling && !d.submitting
}

// Lose makes the device count as lost, as its callback does, for tests: the library cannot be made to lose one.
func (d *native) Lose(reason string) {
	c := C.CString(reason)
	defer C.free(unsafe.Pointer(c))
	C.wl_device_lose(d.dev, c)
}

func (d *native) Close() {
	for _, s := range d.stamps {
		C.wl_stamps_free(s)
	}
	d.stamps = nil
	if d.Lost() != nil {
		C.wl_device_abandon(d.dev)
		return
	}
	C.wl_device_close(d.dev)
}

// nativeBuffer is a buffer of any kind.
type nativeBuffer struct {
	ref  C.wl_handle
	kind BufferKind
	size uint64
	at   unsafe.Pointer // C memory while mapped
}

func (b *nativeBuffer) Free() { C.wl_buffer_free(b.ref) }

var usages = [BufferKinds]C.uint32_t{
	StorageBuffer:  C.WGPUBufferUsage_Storage | C.WGPUBufferUsage_CopySrc | C.WGPUBufferUsage_CopyDst,
	UniformBuffer:  C.WGPUBufferUsage_Uniform | C.WGPUBufferUsage_CopyDst,
	UploadBuffer:   C.WGPUBufferUsage_MapWrite | C.WGPUBufferUsage_CopySrc,
	ReadbackBuffer: C.WGPUBufferUsage_MapRead | C.WGPUBufferUsage_CopyDst,
}

func (d *native) NewBuffer(kind BufferKind, size uint64) (Object, error) {
	b := &nativeBuffer{kind: kind, size: size}
	var mapped C.int
	if kind == UploadBuffer {
		mapped = 1
	}
	var e C.wl_error
	var at unsafe.Pointer
	b.ref = C.wl_buffer_new(d.dev, usages[kind], C.uint64_t(size), mapped, &at, &e)
	b.at = at
	if err := callError(fmt.Sprintf("create a %v buffer of %d bytes", kind, size), &e); err != nil {
		return nil, err
	}
	return b, nil
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
	var e C.wl_error
	C.wl_buffer_unmap(d.dev, b.ref, &e)
	return callError("unmap a readback buffer", &e)
}

type nativePipeline struct {
	c       C.wl_pipeline
	uniform bool
}

func (p *nativePipeline) Free() { C.wl_pipeline_free(p.c) }

func (d *native) NewPipeline(k *wgsl.Kernel) (Object, error) {
	entries := make([]C.wl_layout_entry, 0, len(k.Bindings)+1)
	for i, a := range k.Bindings {
		kind := C.uint32_t(C.WGPUBufferBindingType_ReadOnlyStorage)
		if a == wgsl.ReadWrite {
			kind = C.WGPUBufferBindingType_Storage
		}
		entries = append(entries, C.wl_layout_entry{C.uint32_t(i), kind})
	}
	if k.Uniform > 0 {
		entries = append(entries, C.wl_layout_entry{C.uint32_t(len(entries)), C.WGPUBufferBindingType_Uniform})
	}
	label, source, entry := C.CString(k.Key), C.CString(k.Source), C.CString(k.Entry)
	defer C.free(unsafe.Pointer(label))
	defer C.free(unsafe.Pointer(source))
	defer C.free(unsafe.Pointer(entry))
	p := &nativePipeline{uniform: k.Uniform > 0}
	var inShader C.int
	var e C.wl_error
	C.wl_pipeline_new(d.dev, label, source, entry, unsafe.SliceData(entries), C.size_t(len(entries)), &p.c, &inShader, &e)
	switch e.kind {
	case C.WGPUErrorType_NoError:
		return p, nil
	case C.WGPUErrorType_Validation, C.WGPUErrorType_Internal:
		text := C.GoString(e.message)
		C.free(unsafe.Pointer(e.message))
		return nil, newShaderError(k, text)
	}
	return nil, callError("create the pipeline of "+k.Key, &e)
}

// nativeGroup is a bind group.
type nativeGroup struct{ ref C.wl_handle }

func (g *nativeGroup) Free() { C.wl_group_free(g.ref) }

func (d *native) NewGroup(pipeline Object, bind []Binding) (Object, error) {
	var few [16]C.wl_binding
	list := few[:0]
	for _, b := range bind {
		list = append(list, C.wl_binding{b.Buffer.(*nativeBuffer).ref, C.uint64_t(b.Offset), C.uint64_t(b.Size)})
	}
	var e C.wl_error
	ref := C.wl_group_new(d.dev, pipeline.(*nativePipeline).c.layout, unsafe.SliceData(list), C.size_t(len(list)), &e)
	if err := callError("bind buffers", &e); err != nil {
		return nil, err
	}
	return &nativeGroup{ref}, nil
}
