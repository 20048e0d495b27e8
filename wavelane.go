package wavelane

import (
	"fmt"
	"strings"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
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
)

// Device is an open device. It is safe for concurrent use.
type Device struct {
	compute.Ops // every operation of the catalogue on slices

	backend backend
	info    Info
	close   sync.Once
	err     error
}

// backend is what a device of any kind offers here.
type backend interface {
	program.Executor
	Close() error
}

// Info describes an open device.
type Info struct {
	Kind     string `json:"kind"`     // "cuda", "gpu" or "cpu", as [WithDevice] takes it
	Name     string `json:"name"`     // of the adapter or processor
	Backend  string `json:"backend"`  // what drives it: "sm_90, CUDA 12.8", "vulkan", "metal", "dx12", "go", …
	Software bool   `json:"software"` // a GPU interface computed by the CPU
	Reason   string `json:"reason"`   // why this one was chosen
	Routed   bool   `json:"routed"`   // programs on slices run on the CPU where they are done there first; see [WithoutRouting]

	identity string // what costs depend on: hardware, driver
}

// Info returns what the device is.
func (d *Device) Info() Info { return d.info }

// Explain says in a few lines which device was chosen and why the ones before it in order were not.
func (d *Device) Explain() string {
	var b strings.Builder
	b.WriteString(d.info.Kind + ": " + d.info.Name + " (" + d.info.Backend)
	if d.info.Software {
		b.WriteString(", software")
	}
	b.WriteString(")\n" + d.info.Reason)
	if d.info.Routed {
		b.WriteString("\nprograms on slices run on the CPU where they are done first")
	}
	return b.String()
}

// Compile prepares a program; batches call it.
func (d *Device) Compile(p *program.Program) (program.Executable, error) { return d.backend.Compile(p) }

// Place returns the device that a program is for; batches call it.
func (d *Device) Place(p *program.Program) program.Executor {
	switch b := d.backend.(type) {
	case *router:
		return b.Place(p)
	case borrowed:
		return b.backend
	}
	return d.backend
}

// ExplainPlace says where a program runs, and why; batches call it.
func (d *Device) ExplainPlace(p *program.Program) string {
	if r, ok := d.backend.(*router); ok {
		return r.ExplainPlace(p)
	}
	return d.info.Kind + ": the only device"
}

// Peaks returns the rates by which programs are routed to a device, for profiles; batches call it.
func (d *Device) Peaks(of program.Executor) program.Peaks {
	r, ok := d.backend.(*router)
	if !ok {
		return program.Peaks{}
	}
	r.ready()
	for _, x := range r.devices {
		if x.backend == of {
			return program.Peaks{Memory: 1e9 * x.costs.Memory, Math: 1e9 * x.costs.Math, Product: 1e9 * x.costs.Product}
		}
	}
	return program.Peaks{}
}

// Costs returns the costs by which programs are routed, by kind of device, nil where they are not; see [WithoutRouting]. It
// measures them if no program has needed them yet.
func (d *Device) Costs() map[string]Costs {
	r, ok := d.backend.(*router)
	if !ok {
		return nil
	}
	r.ready()
	costs := map[string]Costs{}
	for _, x := range r.devices {
		costs[x.info.Kind] = x.costs
	}
	return costs
}

// On returns the one of the devices that programs are routed to which is of that kind, "cpu" for example, for programs that are to run
// there whatever they cost: batches are made for it instead of d. Tensors of one are of no use to the other. It lives as long as d,
// and closing it does nothing. A kind that there is not is [ErrUnavailable].
func (d *Device) On(kind string) (*Device, error) {
	all := []*routed{{backend: d.backend, info: d.info}}
	if r, ok := d.backend.(*router); ok {
		all = r.devices
	}
	for _, x := range all {
		if x.info.Kind == kind {
			return &Device{Ops: device.NewOps(x.backend), backend: borrowed{x.backend}, info: x.info}, nil
		}
	}
	return nil, fmt.Errorf("no %q behind %s: %w", kind, d.info.Kind, compute.ErrUnavailable)
}

// borrowed is a backend that belongs to another device.
type borrowed struct{ backend }

func (borrowed) Close() error { return nil }

// UploadAsync copies a slice to the device, where it stays as a tensor until it is closed: []float32, []int32, []uint32,
// []compute.BF16, or []uint16 for Float16 bits. Without a shape it is a vector. The tensor can be used at once, in work that will run after the
// copy; the slice belongs to the upload until the future is done. The tensor is nil if the upload could not begin.
func (d *Device) UploadAsync(data any, shape ...int) (compute.Tensor, *compute.Future) {
	return device.Upload(d.backend, data, shape...)
}

// Unwrap returns the device behind this one, a *cuda.Device, *gpu.Device or *cpu.Device, for what only that kind offers. Closing either
// closes both.
func (d *Device) Unwrap() any {
	switch b := d.backend.(type) {
	case *router:
		return b.devices[0].backend
	case borrowed:
		return b.backend
	}
	return d.backend
}

// Close frees the device and its tensors. It is idempotent; later use is [ErrClosed].
func (d *Device) Close() error {
	d.close.Do(func() { d.err = d.backend.Close() })
	return d.err
}
