package gpu

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall/js"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/wgsl"
)

// builtin is the platform of builds for the browser.
var builtin platform = browserPlatform{}

type browserPlatform struct{}

// entrance returns navigator.gpu, which pages and workers have, or says why there is none.
func entrance() (js.Value, error) {
	navigator := js.Global().Get("navigator")
	if !navigator.Truthy() || !navigator.Get("gpu").Truthy() || api() == nil {
		return js.Undefined(), fmt.Errorf("gpu: no WebGPU here: navigator.gpu is missing, as in browsers without it and on pages "+
			"that came neither by https nor from localhost: %w", compute.ErrUnavailable)
	}
	return navigator.Get("gpu"), nil
}

// ways are the questions that a browser answers with an adapter. There is no list of adapters; several questions may lead to
// the same one.
var ways = []map[string]any{
	{"powerPreference": "high-performance"}, {"powerPreference": "low-power"}, {"forceFallbackAdapter": true},
}

func (browserPlatform) request(ctx context.Context, way int) (js.Value, error) {
	gpu, err := entrance()
	if err != nil {
		return gpu, err
	}
	adapter, err := api().await(ctx, gpu.Call("requestAdapter", ways[way]))
	if err != nil {
		return adapter, fmt.Errorf("gpu: ask the browser for an adapter: %w", err)
	}
	return adapter, nil
}

func (p browserPlatform) adapters(ctx context.Context) ([]AdapterInfo, error) {
	var list []AdapterInfo
	for way := range ways {
		adapter, err := p.request(ctx, way)
		if err != nil {
			return nil, err
		}
		if adapter.IsNull() {
			continue
		}
		a := describe(adapter.Get("info"), adapter)
		a.way = way
		same := func(b AdapterInfo) bool {
			return a.Name == b.Name && a.VendorName == b.VendorName && a.Architecture == b.Architecture && a.Type == b.Type
		}
		if slices.ContainsFunc(list, same) {
			continue
		}
		if len(list) == 1 && a.Type == Virtual && list[0].Type == Virtual { // the browser knows which is which
			list[0].Type, a.Type = Discrete, Integrated
		}
		a.Index = len(list)
		list = append(list, a)
	}
	return list, nil
}

// features are those that are asked for wherever they are offered: for measuring, and for kernels of ours and the user's.
var features = []string{featureTimestamps, "shader-f16", "subgroups"}

// describe reads the information of an adapter or a device, and its limits and features.
func describe(info, of js.Value) AdapterInfo {
	text := func(name string) string {
		if v := info.Get(name); info.Truthy() && v.Type() == js.TypeString {
			return v.String()
		}
		return ""
	}
	if !info.Truthy() { // devices of older browsers have none
		info = js.ValueOf(map[string]any{})
	}
	a := AdapterInfo{
		Type: Virtual, Backend: "browser", VendorName: text("vendor"), Architecture: text("architecture"), Features: []string{},
	}
	a.Name = text("description")
	if a.Name == "" {
		a.Name = strings.TrimSpace(a.VendorName + " " + a.Architecture)
	}
	if device := text("device"); device != "" && device != a.Name {
		a.Name = strings.TrimSpace(a.Name + " " + device)
	}
	if a.Name == "" {
		a.Name = "unnamed adapter" // some browsers hide what could tell users apart
	}
	fallback := info.Get("isFallbackAdapter").Truthy() || of.Get("isFallbackAdapter").Truthy()
	if fallback || slices.Contains(softwareArchitectures, a.Architecture) {
		a.Type = Software
	}
	if v := info.Get("subgroupMinSize"); v.Type() == js.TypeNumber {
		a.SubgroupMin, a.SubgroupMax = uint32(v.Int()), uint32(info.Get("subgroupMaxSize").Int())
	}
	for _, f := range features {
		if of.Get("features").Call("has", f).Bool() {
			a.Features = append(a.Features, f)
		}
	}
	if known := js.Global().Get("navigator").Get("gpu").Get("wgslLanguageFeatures"); known.Truthy() && known.Call("has", packedDots).Bool() {
		a.LanguageFeatures = []string{packedDots}
	}
	offered := of.Get("limits")
	for name, field := range limitFields(&a.Limits) {
		field.set(offered.Get(name).Float())
	}
	a.Limits.MaxBinding, a.Limits.MaxBuffer = a.Limits.MaxBinding&^15, a.Limits.MaxBuffer&^15 // vec4 kernels want multiples of 16
	return a
}

// softwareArchitectures are the names of software rasterisers.
var softwareArchitectures = []string{"swiftshader", "llvmpipe", "lavapipe", "warp"}

// limitField is a limit of 32 or 64 bits.
type limitField struct {
	small *uint32
	large *uint64
}

func (f limitField) set(v float64) {
	if f.small != nil {
		*f.small = uint32(min(v, 1<<32-1))
	} else {
		*f.large = uint64(v)
	}
}

func (f limitField) get() float64 {
	if f.small != nil {
		return float64(*f.small)
	}
	return float64(*f.large)
}

// limitFields names the limits of WebGPU that we care about.
func limitFields(c *wgsl.Caps) map[string]limitField {
	return map[string]limitField{
		"maxComputeWorkgroupsPerDimension":  {small: &c.MaxWorkgroups},
		"maxComputeInvocationsPerWorkgroup": {small: &c.MaxInvocations},
		"maxComputeWorkgroupSizeX":          {small: &c.MaxWorkgroupSize[0]},
		"maxComputeWorkgroupSizeY":          {small: &c.MaxWorkgroupSize[1]},
		"maxComputeWorkgroupSizeZ":          {small: &c.MaxWorkgroupSize[2]},
		"maxComputeWorkgroupStorageSize":    {small: &c.MaxShared},
		"maxStorageBuffersPerShaderStage":   {small: &c.MaxStorageBuffers},
		"maxStorageBufferBindingSize":       {large: &c.MaxBinding},
		"maxBufferSize":                     {large: &c.MaxBuffer},
		"minStorageBufferOffsetAlignment":   {small: &c.StorageAlign},
	}
}

func (p browserPlatform) open(ctx context.Context, want AdapterInfo) (driver, AdapterInfo, error) {
	adapter, err := p.request(ctx, want.way)
	if err != nil {
		return nil, AdapterInfo{}, err
	}
	if adapter.IsNull() {
		return nil, AdapterInfo{}, fmt.Errorf("the adapter has disappeared: %w", compute.ErrUnavailable)
	}
	required := map[string]any{}
	for name, field := range limitFields(&want.Limits) {
		required[name] = field.get()
	}
	ask := make([]any, len(want.Features))
	for i, f := range want.Features {
		ask[i] = f
	}
	device, err := api().await(ctx, adapter.Call("requestDevice", map[string]any{"requiredLimits": required, "requiredFeatures": ask}))
	if err != nil {
		return nil, AdapterInfo{}, fmt.Errorf("open the device: %w", err)
	}
	// Browsers grant no less than WebGPU's defaults, whatever is asked for: what is below is up to our own checks.
	granted := describe(adapter.Get("info"), device)
	if _, err := limits(granted.Limits, want.Limits); err != nil {
		device.Call("destroy")
		return nil, AdapterInfo{}, fmt.Errorf("the browser granted less: %w", err)
	}
	want.Features = granted.Features
	return newBrowserDriver(device, true), want, nil
}
