package softgpu

import (
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// deviceOf is the device with the handle, which is its ordinal; nil for none.
func (g *GPU) deviceOf(d driver.Device) *device {
	if d < 0 || int(d) >= len(g.devices) {
		return nil
	}
	return g.devices[d]
}

// onDevice begins a call about a device.
func (g *GPU) onDevice(call string, d driver.Device) driver.Result {
	if r := g.begin(call); r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	if g.deviceOf(d) == nil {
		return driver.InvalidDevice
	}
	return driver.Success
}

// Version is that of the driver API.
func (g *GPU) Version() (int, driver.Result) {
	if r := g.begin("Version"); r != driver.Success {
		return 0, r
	}
	defer g.mu.Unlock()
	return g.cfg.Version, driver.Success
}

// DeviceCount is the number of devices.
func (g *GPU) DeviceCount() (int, driver.Result) {
	if r := g.begin("DeviceCount"); r != driver.Success {
		return 0, r
	}
	defer g.mu.Unlock()
	return len(g.devices), driver.Success
}

// DeviceGet is the device with the ordinal.
func (g *GPU) DeviceGet(ordinal int) (driver.Device, driver.Result) {
	if r := g.begin("DeviceGet"); r != driver.Success {
		return 0, r
	}
	defer g.mu.Unlock()
	if ordinal < 0 || ordinal >= len(g.devices) {
		return 0, driver.InvalidDevice
	}
	return driver.Device(ordinal), driver.Success
}

// DeviceName is the same for all.
func (g *GPU) DeviceName(d driver.Device) (string, driver.Result) {
	if r := g.onDevice("DeviceName", d); r != driver.Success {
		return "", r
	}
	return "software GPU", driver.Success
}

// DeviceUUID is made of the ordinal.
func (g *GPU) DeviceUUID(d driver.Device) (id [16]byte, r driver.Result) {
	if r := g.onDevice("DeviceUUID", d); r != driver.Success {
		return id, r
	}
	copy(id[:], "software GPU")
	id[15] = byte(d)
	return id, driver.Success
}

// DevicePCIBusID is made of the ordinal.
func (g *GPU) DevicePCIBusID(d driver.Device) (string, driver.Result) {
	if r := g.onDevice("DevicePCIBusID", d); r != driver.Success {
		return "", r
	}
	return fmt.Sprintf("FFFF:%02X:00.0", int(d)), driver.Success
}

// DeviceTotalMem is what the configuration says.
func (g *GPU) DeviceTotalMem(d driver.Device) (uint64, driver.Result) {
	if r := g.onDevice("DeviceTotalMem", d); r != driver.Success {
		return 0, r
	}
	return g.cfg.Memory, driver.Success
}

// DeviceCanAccessPeer is false: devices cannot access each other's memory.
func (g *GPU) DeviceCanAccessPeer(d, peer driver.Device) (bool, driver.Result) {
	if r := g.onDevice("DeviceCanAccessPeer", d); r != driver.Success {
		return false, r
	}
	if peer < 0 || int(peer) >= len(g.devices) {
		return false, driver.InvalidDevice
	}
	return false, driver.Success
}

// What a launch may have.
const (
	maxThreads = 1024
	maxGridX   = 1<<31 - 1
	maxGridYZ  = 65535
	maxBlockXY = 1024
	maxBlockZ  = 64
)

// DeviceGetAttribute is an attribute by the architecture's limits. Clocks and the width of the memory bus are nominal.
func (g *GPU) DeviceGetAttribute(a driver.Attribute, d driver.Device) (int, driver.Result) {
	if r := g.onDevice("DeviceGetAttribute", d); r != driver.Success {
		return 0, r
	}
	since := func(sm int) int {
		if g.cfg.SM >= sm {
			return 1
		}
		return 0
	}
	l := &g.limits
	switch a {
	case driver.MaxThreadsPerBlock:
		return maxThreads, driver.Success
	case driver.MaxBlockDimX, driver.MaxBlockDimY:
		return maxBlockXY, driver.Success
	case driver.MaxBlockDimZ:
		return maxBlockZ, driver.Success
	case driver.MaxGridDimX:
		return maxGridX, driver.Success
	case driver.MaxGridDimY, driver.MaxGridDimZ:
		return maxGridYZ, driver.Success
	case driver.SharedPerBlock:
		return l.MaxStaticShared, driver.Success
	case driver.SharedPerBlockOptin:
		return l.MaxShared, driver.Success
	case driver.SharedPerMultiprocessor:
		return l.Shared, driver.Success
	case driver.ReservedSharedPerBlock:
		return l.SystemShared, driver.Success
	case driver.WarpSize:
		return 32, driver.Success
	case driver.RegistersPerBlock:
		return l.RegistersPerBlockMax, driver.Success
	case driver.RegistersPerMP:
		return l.Registers, driver.Success
	case driver.ClockRate:
		return 1_000_000, driver.Success
	case driver.MemoryClockRate:
		return 1_000_000, driver.Success
	case driver.MemoryBusWidth:
		return 64, driver.Success
	case driver.L2CacheSize:
		return 1 << 20, driver.Success
	case driver.MultiprocessorCount:
		return g.cfg.Multiprocessors, driver.Success
	case driver.MaxThreadsPerMP:
		return l.MaxThreads, driver.Success
	case driver.MaxBlocksPerMP:
		return l.MaxBlocks, driver.Success
	case driver.Integrated, driver.ECCEnabled:
		return 0, driver.Success
	case driver.ComputeCapabilityMajor:
		return g.cfg.SM / 10, driver.Success
	case driver.ComputeCapabilityMinor:
		return g.cfg.SM % 10, driver.Success
	case driver.CooperativeLaunch:
		return 1, driver.Success
	case driver.ClusterLaunch:
		return since(90), driver.Success
	}
	return 0, driver.InvalidValue
}

// ResultText describes a result in the driver's manner.
func (g *GPU) ResultText(r driver.Result) string {
	switch r {
	case driver.Success:
		return "no error"
	case driver.InvalidValue:
		return "invalid argument"
	case driver.OutOfMemory:
		return "out of memory"
	case driver.NotReady:
		return "device not ready"
	case driver.IllegalAddress:
		return "an illegal memory access was encountered"
	case driver.MisalignedAddress:
		return "misaligned address"
	case driver.LaunchFailed:
		return "unspecified launch failure"
	case driver.LaunchTimeout:
		return "the launch timed out and was terminated"
	case driver.Assert:
		return "device-side assert triggered"
	case driver.IllegalInstruction:
		return "an illegal instruction was encountered"
	case driver.InvalidPTX:
		return "a PTX JIT compilation failed"
	case driver.UnsupportedPTXVersion:
		return "the provided PTX was compiled with an unsupported toolchain"
	}
	if name := r.Name(); strings.HasPrefix(name, "CUDA_ERROR_") {
		return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "CUDA_ERROR_"), "_", " "))
	}
	return "unrecognized error code"
}
