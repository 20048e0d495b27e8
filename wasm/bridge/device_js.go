package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"syscall/js"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/gpu"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/simd"
)

// opened is an open device and the queue of what is to be started on it. All goroutines of a page share one thread, and give it up only
// where they wait, so that nothing here needs a lock.
type opened struct {
	executor
	gpu      *gpu.Device // nil on the CPU
	queue    []func()
	draining bool
}

type executor interface {
	batch.Device
	Close() error
}

// wish is a page's request for a device.
type wish struct {
	kind     int
	software bool
	lowPower bool
	adopted  js.Value // a GPUDevice, or null
}

// Kinds of devices, as in wasm/js/wavelane.js.
const (
	auto = iota
	webGPU
	onCPU
)

// openDevice opens a device and says what it is, in the form of Info in wavelane.d.ts.
func openDevice(ctx context.Context, w wish) (*opened, map[string]any, error) {
	reason := "asked for"
	if w.kind != onCPU {
		d, err := openGPU(ctx, w)
		switch {
		case err == nil:
			if w.kind == auto {
				reason = "chosen as the best device available"
			}
			return &opened{executor: d, gpu: d}, gpuInfo(d.Info(), reason), nil
		case w.kind == webGPU || !errors.Is(err, compute.ErrUnavailable): // a device that exists and fails is reported
			return nil, nil, err
		}
		reason = "no WebGPU: " + strings.TrimPrefix(said(err), "gpu: ")
	}
	d, err := cpu.Open(context.Background(), cpu.WithMemoryLimit(deviceLimit))
	if err != nil {
		return nil, nil, err
	}
	return &opened{executor: d}, cpuInfo(reason), nil
}

func openGPU(ctx context.Context, w wish) (*gpu.Device, error) {
	if w.adopted.Truthy() {
		return gpu.AdoptDevice(w.adopted)
	}
	var options []gpu.Option
	if w.software {
		options = append(options, gpu.WithSoftware())
	}
	if w.lowPower {
		options = append(options, gpu.WithPowerPreference(gpu.LowPower))
	}
	d, err := gpu.Open(ctx, options...)
	if w.software && errors.Is(err, compute.ErrUnavailable) { // an adapter of either kind will do
		d, err = gpu.Open(ctx, options[1:]...)
	}
	return d, err
}

func gpuInfo(a gpu.AdapterInfo, reason string) map[string]any {
	features := make([]any, len(a.Features))
	for i, f := range a.Features {
		features[i] = f
	}
	limits := map[string]any{}
	v := reflect.ValueOf(a.Limits)
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.Bool {
			continue // a feature
		}
		name := v.Type().Field(i).Name
		limits[strings.ToLower(name[:1])+name[1:]] = number(v.Field(i))
	}
	return map[string]any{"kind": "webgpu", "name": a.Name, "vendor": a.VendorName, "backend": a.Backend, "software": a.Type == gpu.Software,
		"features": features, "limits": limits, "reason": reason}
}

func number(v reflect.Value) any {
	if v.Kind() != reflect.Array {
		return float64(v.Uint())
	}
	list := make([]any, v.Len())
	for i := range list {
		list[i] = number(v.Index(i))
	}
	return list
}

func cpuInfo(reason string) map[string]any {
	return map[string]any{"kind": "cpu", "name": "WebAssembly", "vendor": "", "backend": simd.Tier(), "software": false,
		"features": []any{}, "limits": map[string]any{}, "reason": reason}
}

// memory is in the form of Memory in wavelane.d.ts.
func (d *opened) memory() map[string]any {
	if d.gpu != nil {
		m := d.gpu.Memory()
		return map[string]any{"inUse": m.InUse, "cached": m.Cached}
	}
	m := d.executor.(*cpu.Device).Memory()
	return map[string]any{"inUse": m.InUse, "cached": m.Cached}
}

// own reports a tensor of another device.
func (d *opened) own(in []operand) error {
	for i, x := range in {
		if x.tensor != nil && x.tensor.device != d {
			return fmt.Errorf("operand %d %v: %w", i, x.tensor.Shape(), compute.ErrForeignTensor)
		}
	}
	return nil
}

var entries = catalogue.All()

// entry is the operation of an index in the catalogue, whose order JavaScript shares.
func entry(index int) (*program.Entry, error) {
	if index < 0 || index >= len(entries) {
		return nil, fmt.Errorf("operation %d: %w", index, compute.ErrArgument)
	}
	return entries[index], nil
}
