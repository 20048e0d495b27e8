package misuse

import (
	"context"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/gpu"
)

// Every method of a device and of a tensor that are zero values.
func TestZeroValues(t *testing.T) {
	all := machines(t)
	for _, zero := range []any{
		&cpu.Device{}, &gpu.Device{}, &cuda.Device{}, &wavelane.Device{}, &cpu.Tensor{}, &gpu.Tensor{}, &cuda.Tensor{}, &batch.Plan{}, &batch.Batch{},
		&batch.Result{}, &batch.Kept{}, &compute.Future{},
	} {
		for _, m := range methods(reflect.TypeOf(zero)) {
			a := newArguments(rand.New(rand.NewPCG(1, 2)), all[0])
			a.batch = batch.New(all[0].device)
			a.values = []batch.Value{a.batch.Scalar(1)}
			if o := guarded(func() (error, []any) { return a.method(zero, m) }); o.class[0] == '!' {
				t.Errorf("%T.%s: %s", zero, m.Name, o.class)
			}
		}
		switch d := zero.(type) {
		case *cpu.Device:
			refused(t, func() error {
				_, err := cpu.NewKernel(d, "k", func(compute.Operand, []compute.Operand, any) error { return nil })
				return err
			})
		case *gpu.Device:
			refused(t, func() error { _, err := gpu.NewKernel(t.Context(), d, gpu.KernelDesc{}); return err })
		case *cuda.Device:
			refused(t, func() error { _, err := cuda.Alloc[float32](d, 1); return err })
			refused(t, func() error { _, err := cuda.AllocHost[float32](d, 1); return err })
			refused(t, func() error { _, err := cuda.CanAccessPeer(d, d); return err })
			refused(t, func() error { return cuda.EnablePeer(d, d) })
			refused(t, func() error { _, err := d.Load(".version 8.0\n.target sm_80\n.address_size 64\n"); return err })
		}
		if d, ok := zero.(batch.Device); ok {
			refused(t, func() error {
				b := batch.New(d)
				b.Read(b.Neg(b.Upload([]float32{1})))
				return b.Run(context.Background())
			})
		}
	}
}

// refused checks that a call is an error of its argument.
func refused(t *testing.T, call func() error) {
	t.Helper()
	if o := guarded(func() (error, []any) { return call(), nil }); o.class != "argument" {
		t.Errorf("%s: %v", o.class, o.err)
	}
}
