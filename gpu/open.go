package gpu

import (
	"context"
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/wgsl"
)

// Adapters lists what could be opened on this machine, software adapters included. An empty list is no error.
func Adapters(ctx context.Context) ([]AdapterInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return builtin.adapters(ctx)
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

// Open opens a device: by default the fastest hardware adapter, with all the limits it offers. Errors wrap
// compute.ErrUnavailable (no such adapter; the text lists those there are), compute.ErrUnsupported (limits or features
// beyond the adapter) or compute.ErrArgument (an option out of range).
func Open(ctx context.Context, opts ...Option) (*Device, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	list, err := Adapters(ctx)
	if err != nil {
		return nil, err
	}
	want, err := choose(list, c)
	if err != nil {
		return nil, err
	}
	if want.Limits, err = limits(want.Limits, c.limits); err != nil {
		return nil, fmt.Errorf("gpu.Open: adapter %v: %w", want, err)
	}
	if c.timestamps && !want.has(featureTimestamps) {
		return nil, fmt.Errorf("gpu.Open: adapter %v has no timestamps; open it without WithTimestamps: %w", want, compute.ErrUnsupported)
	}
	drv, info, err := builtin.open(ctx, want)
	if err != nil {
		return nil, fmt.Errorf("gpu.Open: adapter %v: %w", want, err)
	}
	return newDevice(drv, info, c), nil
}

const featureTimestamps = "timestamp-query"

// choose picks the adapter that the options ask for.
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
		case (a.Type == Software) != c.software:
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
	if best < 0 && c.software {
		return none("no software adapter; on Debian and Ubuntu install mesa-vulkan-drivers")
	}
	if best < 0 {
		return none("only software adapters, slower than the CPU device; ask for one with WithSoftware")
	}
	return list[best], nil
}

// limits merges what the options ask for into what the adapter offers.
func limits(offer, ask wgsl.Caps) (wgsl.Caps, error) {
	var too []string
	u32 := func(name string, offer *uint32, ask uint32) {
		if ask > *offer {
			too = append(too, fmt.Sprintf("%s %d of at most %d", name, ask, *offer))
		} else if ask > 0 {
			*offer = ask
		}
	}
	u64 := func(name string, offer *uint64, ask uint64) {
		if ask > *offer {
			too = append(too, fmt.Sprintf("%s %d of at most %d", name, ask, *offer))
		} else if ask > 0 {
			*offer = ask
		}
	}
	u32("MaxWorkgroups", &offer.MaxWorkgroups, ask.MaxWorkgroups)
	u32("MaxInvocations", &offer.MaxInvocations, ask.MaxInvocations)
	for i := range ask.MaxWorkgroupSize {
		u32(fmt.Sprintf("MaxWorkgroupSize[%d]", i), &offer.MaxWorkgroupSize[i], ask.MaxWorkgroupSize[i])
	}
	u32("MaxShared", &offer.MaxShared, ask.MaxShared)
	u32("MaxStorageBuffers", &offer.MaxStorageBuffers, ask.MaxStorageBuffers)
	u64("MaxBinding", &offer.MaxBinding, ask.MaxBinding)
	u64("MaxBuffer", &offer.MaxBuffer, ask.MaxBuffer)
	if ask.StorageAlign != 0 && ask.StorageAlign < offer.StorageAlign { // here smaller is more
		too = append(too, fmt.Sprintf("StorageAlign %d of at least %d", ask.StorageAlign, offer.StorageAlign))
	} else if ask.StorageAlign != 0 {
		offer.StorageAlign = ask.StorageAlign
	}
	if too != nil {
		return wgsl.Caps{}, fmt.Errorf("limits asked for: %s: %w", strings.Join(too, ", "), compute.ErrUnsupported)
	}
	return offer, nil
}
