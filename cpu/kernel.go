package cpu

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// KernelFunc computes one call of a user's kernel: it fills all of out.Data from the operands. Slices are of the types that
// [Device.Upload] takes; operands must not be written to, and nothing may be used after it returns. Launch is what the
// batch passed. It may run at the same time as other calls, on any goroutine.
type KernelFunc func(out compute.Operand, in []compute.Operand, launch any) error

// Kernel is a kernel of the user's: a Go function that batches call as a step.
type Kernel struct {
	checked
	d    *Device
	name string
	f    KernelFunc
}

type checked = program.KernelCheck

// NewKernel makes a kernel for the device. Errors of f, and panics, fail the batch that runs it.
func NewKernel(d *Device, name string, f KernelFunc) (*Kernel, error) {
	if d == nil || f == nil {
		return nil, fmt.Errorf("kernel %q needs a device and a function: %w", name, compute.ErrArgument)
	}
	if err := d.life.Begin(); err != nil {
		return nil, fmt.Errorf("kernel %q: %w", name, err)
	}
	defer d.life.End()
	any := func([]program.Type, program.Type, program.Attr) error { return nil } // f reports what it does not support
	return &Kernel{any, d, name, f}, nil
}

// Name returns the kernel's name.
func (k *Kernel) Name() string { return k.name }

func (k *Kernel) run(s *step, a *args) (err error) {
	out := operand(a.out, s.outs[0])
	in := make([]compute.Operand, len(a.in))
	for i, v := range a.in {
		in[i] = operand(v, s.types[i])
	}
	defer func() {
		switch v := recover(); {
		case v != nil:
			err = fmt.Errorf("kernel %q %v panicked: %v: %w", k.name, s.types, v, ErrKernel)
		case err != nil:
			err = fmt.Errorf("kernel %q %v: %w", k.name, s.types, err)
		}
	}()
	return k.f(out, in, s.attr.Options)
}

func operand(v view, t program.Type) compute.Operand {
	o := compute.Operand{Shape: append([]int{}, t.Shape...)}
	switch t.DType {
	case compute.Int32:
		o.Data = v.i32()
	case compute.Uint32:
		o.Data = v.u32()
	case compute.Uint8:
		o.Data = v.u8()
	case compute.Float16:
		o.Data = v.f16()
	case compute.BFloat16:
		o.Data = v.bf16()
	default:
		o.Data = v.f32()
	}
	return o
}
