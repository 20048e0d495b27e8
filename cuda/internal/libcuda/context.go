//go:build ((linux && !android) || windows) && (amd64 || arm64)

package libcuda

import (
	"github.com/ebitengine/purego"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

func (d *library) PrimaryCtxSetFlags(device driver.Device, flags uint32) driver.Result {
	return call(d.cuDevicePrimaryCtxSetFlags, uintptr(device), uintptr(flags))
}

func (d *library) PrimaryCtxRetain(device driver.Device) (driver.Context, driver.Result) {
	h, r := create(d.cuDevicePrimaryCtxRetain, uintptr(device))
	return driver.Context(h), r
}

func (d *library) PrimaryCtxRelease(device driver.Device) driver.Result {
	return call(d.cuDevicePrimaryCtxRelease, uintptr(device))
}

// CtxSetCurrent comes before every call of the library above: its arguments are laid out once for a context, and need no frame.
func (d *library) CtxSetCurrent(c driver.Context) driver.Result {
	args := d.current.Load()
	if args == nil || args[0] != uintptr(c) {
		args = &[1]uintptr{uintptr(c)}
		d.current.Store(args)
	}
	r, _, _ := purego.SyscallN(d.cuCtxSetCurrent, args[:]...)
	return driver.Result(int32(r)) // the upper half of the register is anything
}

func (d *library) CtxGetCurrent() (driver.Context, driver.Result) {
	h, r := create(d.cuCtxGetCurrent)
	return driver.Context(h), r
}

func (d *library) CtxSynchronize() driver.Result { return call(d.cuCtxSynchronize) }

func (d *library) CtxEnablePeerAccess(peer driver.Context) driver.Result {
	return call(d.cuCtxEnablePeerAccess, uintptr(peer), 0)
}
