package webgpu

import (
	"fmt"
	"syscall/js"

	"github.com/wavelane/wavelane/compute"
)

// Adopt returns a driver of a GPUDevice that the page has opened. The page stays its owner.
func Adopt(device js.Value) (Driver, Adapter, error) {
	if _, err := entrance(); err != nil {
		return nil, Adapter{}, err
	}
	if !device.InstanceOf(js.Global().Get("GPUDevice")) {
		return nil, Adapter{}, fmt.Errorf("no GPUDevice: %w", compute.ErrArgument)
	}
	return newBrowserDriver(device, false), describe(device.Get("adapterInfo"), device), nil
}

// DeviceOf returns the GPUDevice of a driver.
func DeviceOf(d Driver) js.Value { return d.(*browser).device }

// ImportUsage are the usages that a buffer of the page must have to be imported.
const ImportUsage = usageStorage | usageCopySrc | usageCopyDst

// Import makes a storage buffer of a GPUBuffer of the page, which stays its owner.
func Import(d Driver, buffer js.Value) Object {
	return &browserBuffer{creation: &creation{known: true}, d: d.(*browser), ref: buffer, kind: StorageBuffer,
		size: uint64(buffer.Get("size").Float())}
}

// BufferOf returns the GPUBuffer of a buffer.
func BufferOf(o Object) js.Value { return o.(*browserBuffer).ref }

// Live returns the number of Go functions that JavaScript holds, for tests.
func Live() int { return live }
