package gpu

import (
	"fmt"
	"slices"
	"syscall/js"

	"github.com/wavelane/wavelane/compute"
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
	if _, err := entrance(); err != nil {
		return nil, err
	}
	if !device.InstanceOf(js.Global().Get("GPUDevice")) {
		return nil, fmt.Errorf("gpu.AdoptDevice: no GPUDevice: %w", compute.ErrArgument)
	}
	info := describe(device.Get("adapterInfo"), device)
	if info.Limits, err = limits(info.Limits, c.limits); err != nil {
		return nil, fmt.Errorf("gpu.AdoptDevice: %w", err)
	}
	if c.timestamps && !info.has(featureTimestamps) {
		return nil, fmt.Errorf("gpu.AdoptDevice: the device was opened without %s: %w", featureTimestamps, compute.ErrUnsupported)
	}
	return newDevice(newBrowserDriver(device, false), info, c), nil
}

// GPUDevice returns the browser's device, for code that works with it directly. It is destroyed when this Device is closed
// and its work has finished, unless it was adopted.
func (d *Device) GPUDevice() js.Value { return d.drv.(*browser).device }

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
	if err := d.begin(); err != nil {
		return fail(err)
	}
	defer d.end()
	if !buffer.InstanceOf(js.Global().Get("GPUBuffer")) {
		return fail(fmt.Errorf("no GPUBuffer: %w", compute.ErrArgument))
	}
	const needed = usageStorage | usageCopySrc | usageCopyDst
	size, room := wgsl.BufferSize(t.Bytes()), uint64(buffer.Get("size").Float())
	switch usage := buffer.Get("usage").Int(); {
	case usage&needed != needed:
		return fail(fmt.Errorf("its usage is %#x and must have STORAGE, COPY_SRC and COPY_DST (%#x): %w", usage, needed, compute.ErrArgument))
	case buffer.Get("mapState").String() != "unmapped":
		return fail(fmt.Errorf("it is mapped: %w", compute.ErrArgument))
	case offset%uint64(d.info.Limits.StorageAlign) != 0:
		return fail(fmt.Errorf("offset %d is no multiple of %d: %w", offset, d.info.Limits.StorageAlign, compute.ErrArgument))
	case offset > room || size > room-offset:
		return fail(fmt.Errorf("it has %d bytes, and %d are needed from %d on: %w", room, size, offset, compute.ErrShape))
	case size > d.info.Limits.MaxBuffer:
		return fail(fmt.Errorf("%d bytes, the device allows %d: %w", size, d.info.Limits.MaxBuffer, compute.ErrTooLarge))
	}
	drv := d.drv.(*browser)
	b := d.pool.foreign(&browserBuffer{creation: &creation{known: true}, d: drv, ref: buffer, kind: storageBuffer, size: room}, offset, size)
	return newTensor(d, t, b), nil
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
	return b.object.(*browserBuffer).ref, b.base, uint64(t.typ.Bytes()), nil
}
