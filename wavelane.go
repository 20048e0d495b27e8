package wavelane

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/route"
)

// Errors, the same values as in every package of this module; see package compute.
var (
	ErrShape         = compute.ErrShape
	ErrDType         = compute.ErrDType
	ErrArgument      = compute.ErrArgument
	ErrUnavailable   = compute.ErrUnavailable
	ErrUnsupported   = compute.ErrUnsupported
	ErrDeviceLost    = compute.ErrDeviceLost
	ErrOutOfMemory   = compute.ErrOutOfMemory
	ErrTooLarge      = compute.ErrTooLarge
	ErrClosed        = compute.ErrClosed
	ErrForeignTensor = compute.ErrForeignTensor
	ErrNotRun        = compute.ErrNotRun
	ErrNotFinite     = compute.ErrNotFinite
	ErrDiverged      = compute.ErrDiverged
)

// Device is an open device. It is safe for concurrent use.
type Device struct {
	compute.Ops // every operation of the catalogue on slices
	sealed

	devices  []*opened     // the first has the tensors
	router   *route.Router // between several devices, else nil
	borrowed bool          // devices belong to another Device
	close    sync.Once
	err      error
}

type sealed = program.Sealed

// opened is an open device of one kind.
type opened struct {
	backend
	info     Info
	identity string // of hardware and driver, for which costs hold
}

type backend interface {
	program.Device
	Close() error
}

// newDevice returns a device that routes programs between these.
func newDevice(router *route.Router, devices ...*opened) *Device {
	d := &Device{devices: devices, router: router}
	var x program.Executor = router
	if router == nil {
		x = only{program.ExecutorOf(devices[0]), devices[0].info.Kind}
	}
	d.Ops, d.sealed = device.NewOps(x), program.Seal(x)
	return d
}

// only is the executor of a device that does everything itself.
type only struct {
	program.Executor
	kind string
}

func (o only) Place(context.Context, *program.Program) (program.Executor, error) {
	return o.Executor, nil
}
func (o only) ExplainPlace(*program.Program) string     { return o.kind + ": the only device" }
func (o only) Peaks(program.Executor) (p program.Peaks) { return p }

// Info describes an open device.
type Info struct {
	Kind     string `json:"kind"`     // "cuda", "gpu" or "cpu", as [WithDevice] takes it
	Name     string `json:"name"`     // of the adapter or processor
	Backend  string `json:"backend"`  // what drives it: "sm_90, CUDA 12.8", "vulkan", "metal", "dx12", "go", …
	Software bool   `json:"software"` // a GPU interface computed by the CPU
	Reason   string `json:"reason"`   // why this one was chosen
	Routed   bool   `json:"routed"`   // programs on slices run on the CPU where they are done there first; see [WithoutRouting]
}

// Info returns what the device is.
func (d *Device) Info() Info {
	if len(d.devices) == 0 {
		return Info{} // the zero Device
	}
	return d.devices[0].info
}

// Explain tells in a few lines which device was chosen, and why the preferred ones were not.
func (d *Device) Explain() string {
	info := d.Info()
	var b strings.Builder
	b.WriteString(info.Kind + ": " + info.Name + " (" + info.Backend)
	if info.Software {
		b.WriteString(", software")
	}
	b.WriteString(")\n" + info.Reason)
	if info.Routed {
		b.WriteString("\nprograms on slices run on the CPU where they are done first")
	}
	return b.String()
}

// On returns the device of the given kind, such as "cpu", among those that programs are routed to: for batches and operations that
// should run there whatever they cost. The device is valid as long as d, closing it does nothing, and neither can use tensors of the
// other. If d has no device of that kind, the error is [ErrUnavailable].
func (d *Device) On(kind string) (*Device, error) {
	for _, x := range d.devices {
		if x.info.Kind == kind {
			on := newDevice(nil, x)
			on.borrowed = true
			return on, nil
		}
	}
	return nil, fmt.Errorf("no device %q under %s: %w", kind, d.Info().Kind, compute.ErrUnavailable)
}

// Unwrap returns the underlying device, a *cuda.Device, *gpu.Device or *cpu.Device, for features that only that kind has.
// Closing either closes both.
func (d *Device) Unwrap() any {
	if len(d.devices) == 0 {
		return nil // the zero Device
	}
	return d.devices[0].backend
}

// Close frees the device and its tensors. It is idempotent; later use fails with [ErrClosed].
func (d *Device) Close() error {
	d.close.Do(func() {
		if d.borrowed {
			return
		}
		for _, x := range d.devices {
			if err := x.Close(); d.err == nil {
				d.err = err
			}
		}
	})
	return d.err
}
