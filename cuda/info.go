package cuda

import (
	"fmt"

	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/ptx/ir"
)

// Info describes a GPU. Sizes are in bytes, rates in MHz.
type Info struct {
	Ordinal         int    `json:"ordinal"`
	Name            string `json:"name"`
	UUID            string `json:"uuid"`
	PCIBus          string `json:"pci_bus"`
	Software        bool   `json:"software"` // computed by the CPU
	Driver          string `json:"driver"`   // version of CUDA that the driver speaks: "12.8"
	Capability      [2]int `json:"capability"`
	Memory          uint64 `json:"memory"`
	MemoryClock     int    `json:"memory_clock"`
	MemoryBus       int    `json:"memory_bus"` // bits
	L2              int    `json:"l2"`
	Clock           int    `json:"clock"`
	ECC             bool   `json:"ecc"`
	Integrated      bool   `json:"integrated"` // shares the host's memory
	Multiprocessors int    `json:"multiprocessors"`
	MaxThreads      int    `json:"max_threads"` // of a block
	MaxBlock        [3]int `json:"max_block"`   // threads along each axis
	MaxGrid         [3]int `json:"max_grid"`    // blocks along each axis
	Shared          int    `json:"shared"`      // of a block
	SharedOptin     int    `json:"shared_optin"`
	SharedMP        int    `json:"shared_multiprocessor"`
	Registers       int    `json:"registers"` // of a block
	RegistersMP     int    `json:"registers_multiprocessor"`
	ThreadsMP       int    `json:"threads_multiprocessor"`
	BlocksMP        int    `json:"blocks_multiprocessor"`
	Cooperative     bool   `json:"cooperative"`
	Clusters        bool   `json:"clusters"`
	driverNumber    int
}

// Target is the GPU's architecture, such as sm_90.
func (i Info) Target() ir.Target { return ir.Target{SM: 10*i.Capability[0] + i.Capability[1]} }

// CodeTarget is what code may be for, such as sm_90a: features of this architecture alone need a driver for CUDA 12.
func (i Info) CodeTarget() ir.Target {
	t := i.Target()
	if i.driverNumber >= 12000 {
		t.Suffix = "a"
	}
	return t
}

func (i Info) String() string {
	return fmt.Sprintf("%s, %s, %d multiprocessors, %.1f GiB, CUDA %s", i.Name, i.Target(), i.Multiprocessors,
		float64(i.Memory)/(1<<30), i.Driver)
}

// describe asks the driver about a device.
func describe(drv driver.Driver, ordinal int) (Info, driver.Device, error) {
	i := Info{Ordinal: ordinal, Software: drv.Kind() == "software"}
	var failed error
	check := func(call string, r driver.Result) {
		if failed == nil && r != driver.Success {
			failed = fmt.Errorf("device %d: %w", ordinal, newError(drv, call, r))
		}
	}
	version, r := drv.Version()
	check("cuDriverGetVersion", r)
	i.Driver, i.driverNumber = fmt.Sprintf("%d.%d", version/1000, version%1000/10), version
	d, r := drv.DeviceGet(ordinal)
	check("cuDeviceGet", r)
	if r == driver.InvalidDevice {
		if n, known := drv.DeviceCount(); known == driver.Success {
			failed = fmt.Errorf("%w; the driver knows %d, counted from 0", failed, n)
		}
	}
	if failed != nil {
		return i, d, failed
	}
	i.Name, r = drv.DeviceName(d)
	check("cuDeviceGetName", r)
	uuid, r := drv.DeviceUUID(d)
	check("cuDeviceGetUuid", r)
	i.UUID = fmt.Sprintf("GPU-%x-%x-%x-%x-%x", uuid[:4], uuid[4:6], uuid[6:8], uuid[8:10], uuid[10:])
	i.PCIBus, r = drv.DevicePCIBusID(d)
	check("cuDeviceGetPCIBusId", r)
	i.Memory, r = drv.DeviceTotalMem(d)
	check("cuDeviceTotalMem", r)
	attribute := func(a driver.Attribute) int {
		v, r := drv.DeviceGetAttribute(a, d)
		check(fmt.Sprintf("cuDeviceGetAttribute(%d)", a), r)
		return v
	}
	since := func(version int, a driver.Attribute) bool { return i.driverNumber >= version && attribute(a) != 0 }
	i.Capability = [2]int{attribute(driver.ComputeCapabilityMajor), attribute(driver.ComputeCapabilityMinor)}
	i.MemoryClock, i.MemoryBus = attribute(driver.MemoryClockRate)/1000, attribute(driver.MemoryBusWidth)
	i.L2, i.Clock = attribute(driver.L2CacheSize), attribute(driver.ClockRate)/1000
	i.ECC, i.Integrated = attribute(driver.ECCEnabled) != 0, attribute(driver.Integrated) != 0
	i.Multiprocessors, i.MaxThreads = attribute(driver.MultiprocessorCount), attribute(driver.MaxThreadsPerBlock)
	for k := range 3 {
		i.MaxBlock[k] = attribute(driver.MaxBlockDimX + driver.Attribute(k))
		i.MaxGrid[k] = attribute(driver.MaxGridDimX + driver.Attribute(k))
	}
	i.Shared, i.SharedOptin = attribute(driver.SharedPerBlock), attribute(driver.SharedPerBlockOptin)
	i.SharedMP = attribute(driver.SharedPerMultiprocessor)
	i.Registers, i.RegistersMP = attribute(driver.RegistersPerBlock), attribute(driver.RegistersPerMP)
	i.ThreadsMP, i.BlocksMP = attribute(driver.MaxThreadsPerMP), 0
	if i.driverNumber >= 11000 {
		i.BlocksMP = attribute(driver.MaxBlocksPerMP)
	}
	i.Cooperative, i.Clusters = attribute(driver.CooperativeLaunch) != 0, since(11080, driver.ClusterLaunch)
	return i, d, failed
}
