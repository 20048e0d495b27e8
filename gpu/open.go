package gpu

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu/internal/webgpu"
	"github.com/wavelane/wavelane/internal/program"
)

// Adapters lists what could be opened on this machine, software adapters included. An empty list is no error. Of the options only
// [WithLibrary] matters.
func Adapters(ctx context.Context, opts ...Option) ([]AdapterInfo, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	_, list, err := listAdapters(ctx, c.library)
	return list, err
}

// Library loads the WebGPU library of a path, or "linked", as [WithLibrary] takes them, and says what it is and where it comes from: "wgpu-native
// 29.0.1.1, loaded from …". An empty path stands for the library that Open uses without that option. Errors wrap compute.ErrUnavailable
// and say why the library does not fit, or where one was looked for.
func Library(path string) (string, error) {
	name, err := webgpu.Library(path)
	if err != nil {
		return "", fmt.Errorf("gpu: %w", err)
	}
	return name, nil
}

// listAdapters returns the driver's adapters and their descriptions.
func listAdapters(ctx context.Context, library string) (found []webgpu.Adapter, list []AdapterInfo, err error) {
	if err = compute.CheckContext(ctx); err == nil {
		if found, err = webgpu.Adapters(ctx, library); err != nil {
			err = fmt.Errorf("gpu: %w", err)
		}
	}
	for _, a := range found {
		list = append(list, infoOf(a))
	}
	return found, list, err
}

// Available returns nil if [Open] without options would find a hardware adapter, else an error wrapping
// compute.ErrUnavailable that says why not.
func Available(ctx context.Context) error {
	list, err := Adapters(ctx)
	if err != nil {
		return err
	}
	_, err = choose(list, &config{adapter: -1})
	return err
}

// Open opens a device: by default the fastest hardware adapter of Vulkan or Metal, with all the limits it offers. Errors wrap
// compute.ErrUnavailable (no such adapter; the text lists those there are), compute.ErrUnsupported (limits or features
// beyond the adapter) or compute.ErrArgument (an option out of range). When ctx ends first it returns ctx.Err().
func Open(ctx context.Context, opts ...Option) (*Device, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if err := compute.CheckContext(ctx); err != nil {
		return nil, fmt.Errorf("gpu.Open: %w", err)
	}
	return program.Within(ctx, func() (*Device, error) {
		drv, info, err := openDriver(ctx, c)
		if err != nil {
			return nil, err
		}
		return newDevice(drv, info, c), nil
	}, func(d *Device) { d.Close() })
}

// openDriver opens the adapter that the options select.
func openDriver(ctx context.Context, c *config) (webgpu.Driver, AdapterInfo, error) {
	found, list, err := listAdapters(ctx, c.library)
	if err != nil {
		return nil, AdapterInfo{}, err
	}
	info, err := choose(list, c)
	if err != nil {
		return nil, info, err
	}
	if info.Limits, err = webgpu.Limits(info.Limits, c.limits); err != nil {
		return nil, info, fmt.Errorf("gpu.Open: adapter %v: %w", info, err)
	}
	if c.timestamps && !info.has(webgpu.FeatureTimestamps) {
		return nil, info, fmt.Errorf("gpu.Open: adapter %v has no timestamps; open it without WithTimestamps: %w", info, compute.ErrUnsupported)
	}
	want := found[info.Index]
	want.Limits = info.Limits
	drv, granted, err := webgpu.Open(ctx, want)
	if err != nil {
		return nil, info, fmt.Errorf("gpu.Open: adapter %v: %w", info, err)
	}
	return drv, infoOf(granted), nil
}

// choose picks the adapter that the options select.
func choose(list []AdapterInfo, c *config) (AdapterInfo, error) {
	none := func(format string, args ...any) (AdapterInfo, error) {
		var names []string
		for _, a := range list {
			names = append(names, a.String())
		}
		there := "none"
		if len(names) > 0 {
			there = strings.Join(names, "; ")
		}
		return AdapterInfo{}, fmt.Errorf("gpu: %s (adapters: %s): %w", fmt.Sprintf(format, args...), there, compute.ErrUnavailable)
	}
	if c.adapter >= 0 {
		if c.adapter >= len(list) {
			return none("no adapter %d", c.adapter)
		}
		a := list[c.adapter]
		if a.Type == Software && !c.software {
			return none("adapter %d is software, slower than the CPU device; ask for it with WithSoftware", c.adapter)
		}
		return a, nil
	}
	if len(list) == 0 {
		return none("no Vulkan, Metal or DX12 adapter; on Linux install the GPU's Vulkan driver " +
			"(mesa-vulkan-drivers for AMD, Intel and the software adapter, the vendor's driver for NVIDIA)")
	}
	rank := func(a AdapterInfo) int { // lower is better, negative is out
		switch {
		case (a.Type == Software) != c.software || a.onDirect3D():
			return -1
		case a.Type == Software:
			return 0
		case a.Type == Virtual:
			return 2
		case (a.Type == Discrete) == (c.preference == HighPerformance):
			return 0
		}
		return 1
	}
	best := -1
	for i, a := range list {
		if r := rank(a); r >= 0 && (best < 0 || r < rank(list[best])) {
			best = i
		}
	}
	if best < 0 && slices.ContainsFunc(list, AdapterInfo.onDirect3D) {
		return none("no Vulkan adapter; one of Direct3D 12 is opened only when its index is asked for with WithAdapter")
	}
	if best < 0 && c.software {
		return none("no software adapter; on Debian and Ubuntu install mesa-vulkan-drivers")
	}
	if best < 0 {
		return none("only software adapters, slower than the CPU device; ask for one with WithSoftware")
	}
	return list[best], nil
}
