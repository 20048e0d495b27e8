//go:build ((linux && !android) || windows) && (amd64 || arm64)

package libcuda

import (
	"unsafe"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

func (*library) Kind() string { return "libcuda" }

func (d *library) Version() (int, driver.Result) {
	f := take()
	r := f.call(d.cuDriverGetVersion, f.at(0))
	version := f.int(0)
	f.give()
	return version, r
}

func (d *library) ResultText(r driver.Result) string {
	f := take()
	defer f.give()
	if f.call(d.cuGetErrorString, uintptr(uint32(r)), f.at(0)) != driver.Success || f.pointer(0) == nil {
		return r.Name()
	}
	return goString(f.pointer(0))
}

// goString copies a string of C.
func goString(p unsafe.Pointer) string {
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}

// Detail is always "": hardware says no more than the result.
func (*library) Detail(driver.Context) string { return "" }

func (d *library) DeviceCount() (int, driver.Result) {
	f := take()
	r := f.call(d.cuDeviceGetCount, f.at(0))
	count := f.int(0)
	f.give()
	return count, r
}

func (d *library) DeviceGet(ordinal int) (driver.Device, driver.Result) {
	f := take()
	r := f.call(d.cuDeviceGet, f.at(0), uintptr(ordinal))
	device := driver.Device(f.int(0))
	f.give()
	return device, r
}

func (d *library) DeviceName(device driver.Device) (string, driver.Result) {
	f := take()
	r := f.call(d.cuDeviceGetName, f.text(), maxText, uintptr(device))
	name := f.string()
	f.give()
	return name, r
}

func (d *library) DeviceUUID(device driver.Device) ([16]byte, driver.Result) {
	f := take()
	f.at(1)
	r := f.call(d.cuDeviceGetUuid, f.at(0), uintptr(device))
	uuid := *(*[16]byte)(unsafe.Pointer(&f.out))
	f.give()
	return uuid, r
}

func (d *library) DevicePCIBusID(device driver.Device) (string, driver.Result) {
	f := take()
	r := f.call(d.cuDeviceGetPCIBusId, f.text(), maxText, uintptr(device))
	id := f.string()
	f.give()
	return id, r
}

func (d *library) DeviceTotalMem(device driver.Device) (uint64, driver.Result) {
	f := take()
	r := f.call(d.cuDeviceTotalMem, f.at(0), uintptr(device))
	bytes := f.out[0]
	f.give()
	return bytes, r
}

func (d *library) DeviceGetAttribute(a driver.Attribute, device driver.Device) (int, driver.Result) {
	f := take()
	r := f.call(d.cuDeviceGetAttribute, f.at(0), uintptr(a), uintptr(device))
	value := f.int(0)
	f.give()
	return value, r
}

func (d *library) DeviceCanAccessPeer(device, peer driver.Device) (bool, driver.Result) {
	f := take()
	r := f.call(d.cuDeviceCanAccessPeer, f.at(0), uintptr(device), uintptr(peer))
	can := f.int(0) != 0
	f.give()
	return can, r
}
