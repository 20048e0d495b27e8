package gpu

import (
	"fmt"
	"slices"
	"syscall/js"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu/internal/webgpu"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

// AdoptDevice makes a Device of a GPUDevice that the page has opened, with the limits and features that it has. The page stays
// its owner: closing the Device leaves it open, and its uncaptured errors are the page's. Options of choosing an adapter do not
// apply. It does not wait. Errors wrap compute.ErrArgument (no GPUDevice, or an option out of range), compute.ErrUnavailable (no
// WebGPU here) or compute.ErrUnsupported (limits or timestamps that the device was opened without).
func AdoptDevice(device js.Value, opts ...Option) (*Device, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	drv, adapter, err := webgpu.Adopt(device)
	if err != nil {
		return nil, fmt.Errorf("gpu.AdoptDevice: %w", err)
	}
	info := infoOf(adapter)
	if info.Limits, err = webgpu.Limits(info.Limits, c.limits); err == nil && c.timestamps && !info.has(webgpu.FeatureTimestamps) {
		err = fmt.Errorf("the device was opened without %s: %w", webgpu.FeatureTimestamps, compute.ErrUnsupported)
	}
	if err != nil {
		drv.Close()
		return nil, fmt.Errorf("gpu.AdoptDevice: %w", err)
	}
	return newDevice(drv, info, c), nil
}

// GPUDevice returns the browser's device, for code that works with it directly. It is destroyed when this Device is closed
// and its work has finished, unless it was adopted.
func (d *Device) GPUDevice() js.Value { return webgpu.DeviceOf(d.drv) }

// ImportBuffer makes a tensor of elements in a GPUBuffer of the page, without a copy. The buffer must be of the same GPUDevice,
// with the usages STORAGE, COPY_SRC and COPY_DST, and not be mapped while the tensor is used. Offset is in bytes, a multiple of
// the device's StorageAlign; from there the buffer must have room for the elements rounded up to 16 bytes, and what lies
// between may be overwritten. The page stays the buffer's owner and may destroy it when the tensor has been closed and the work
// that uses it is done. Errors wrap compute.ErrArgument, compute.ErrShape, compute.ErrTooLarge, compute.ErrClosed or
// compute.ErrDeviceLost.
func (d *Device) ImportBuffer(buffer js.Value, offset uint64, dtype compute.DType, shape ...int) (*Tensor, error) {
	t := program.Type{DType: dtype, Shape: slices.Clone(shape)}
	fail := func(err error) (*Tensor, error) {
		return nil, fmt.Errorf("gpu: import a buffer as %v: %w", t, err)
	}
	if err := t.Check(); err != nil {
		return fail(err)
	}
	if err := d.life.Begin(); err != nil {
		return fail(err)
	}
	defer d.life.End()
	if !buffer.InstanceOf(js.Global().Get("GPUBuffer")) {
		return fail(fmt.Errorf("no GPUBuffer: %w", compute.ErrArgument))
	}
	size, room := wgsl.BufferSize(t.Bytes()), uint64(buffer.Get("size").Float())
	switch usage := buffer.Get("usage").Int(); {
	case usage&webgpu.ImportUsage != webgpu.ImportUsage:
		return fail(fmt.Errorf("its usage is %#x and must have STORAGE, COPY_SRC and COPY_DST (%#x): %w", usage, webgpu.ImportUsage,
			compute.ErrArgument))
	case buffer.Get("mapState").String() != "unmapped":
		return fail(fmt.Errorf("it is mapped: %w", compute.ErrArgument))
	case offset%uint64(d.info.Limits.StorageAlign) != 0:
		return fail(fmt.Errorf("offset %d is no multiple of %d: %w", offset, d.info.Limits.StorageAlign, compute.ErrArgument))
	case offset > room || size > room-offset:
		return fail(fmt.Errorf("it has %d bytes, and %d are needed from %d on: %w", room, size, offset, compute.ErrShape))
	case size > d.info.Limits.MaxBuffer:
		return fail(fmt.Errorf("%d bytes, the device allows %d: %w", size, d.info.Limits.MaxBuffer, compute.ErrTooLarge))
	}
	return newTensor(d, t, d.pool.foreign(webgpu.Import(d.drv, buffer), offset, size)), nil
}

// GPUBuffer returns where the tensor's elements are, for code of the page: a buffer with the usages STORAGE, COPY_SRC and
// COPY_DST, the offset of the first element and the number of their bytes. Nothing is copied. What the page submits to the
// device's queue now is executed after the work that has been started already. The buffer may be used until the tensor is
// closed; then its memory is used for something else.
func (t *Tensor) GPUBuffer() (buffer js.Value, offset, size uint64, err error) {
	b, err := t.acquire()
	if err != nil {
		return js.Undefined(), 0, 0, err
	}
	defer b.release() // the tensor's own reference stays
	if err := b.fault(); err != nil {
		return js.Undefined(), 0, 0, fmt.Errorf("tensor of shape %v: %w", t.typ.Shape, err)
	}
	return webgpu.BufferOf(b.Object), b.base, uint64(t.typ.Bytes()), nil
}
