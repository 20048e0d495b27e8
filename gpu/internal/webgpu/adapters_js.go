package webgpu

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall/js"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/wgsl"
)

// entrance returns navigator.gpu, which pages and workers have, or says why there is none.
func entrance() (js.Value, error) {
	navigator := js.Global().Get("navigator")
	if !navigator.Truthy() || !navigator.Get("gpu").Truthy() || api() == nil {
		return js.Undefined(), fmt.Errorf("no WebGPU here: navigator.gpu is missing, as in browsers without it and on pages "+
			"that came neither by https nor from localhost: %w", compute.ErrUnavailable)
	}
	return navigator.Get("gpu"), nil
}

// Library fails: the browser is the implementation.
func Library(string) (string, error) {
	return "", fmt.Errorf("browsers have WebGPU themselves and load no library: %w", compute.ErrUnavailable)
}

// queries are the questions that a browser answers with an adapter. There is no list of adapters; several questions may lead to
// the same one.
var queries = []map[string]any{
	{"powerPreference": "high-performance"}, {"powerPreference": "low-power"}, {"forceFallbackAdapter": true},
}

func request(ctx context.Context, query int) (js.Value, error) {
	gpu, err := entrance()
	if err != nil {
		return gpu, err
	}
	adapter, err := api().await(ctx, gpu.Call("requestAdapter", queries[query]))
	if err != nil {
		return adapter, fmt.Errorf("ask the browser for an adapter: %w", err)
	}
	return adapter, nil
}

// Adapters lists the adapters, software ones included.
func Adapters(ctx context.Context, _ string) ([]Adapter, error) {
	var list []Adapter
	for query := range queries {
		adapter, err := request(ctx, query)
		if err != nil {
			return nil, err
		}
		if adapter.IsNull() {
			continue
		}
		a := describe(adapter.Get("info"), adapter)
		a.query = query
		same := func(b Adapter) bool {
			return a.Name == b.Name && a.VendorName == b.VendorName && a.Architecture == b.Architecture && a.Type == b.Type
		}
		if slices.ContainsFunc(list, same) {
			continue
		}
		if len(list) == 1 && a.Type == virtualAdapter && list[0].Type == virtualAdapter { // the browser knows which is which
			list[0].Type, a.Type = discreteAdapter, integratedAdapter
		}
		a.Index = len(list)
		list = append(list, a)
	}
	return list, nil
}

// features are those that are requested wherever they are offered: for measuring, and for kernels of ours and the user's.
var features = []string{FeatureTimestamps, "shader-f16", "subgroups"}

// describe reads the information of an adapter or a device, and its limits and features.
func describe(info, of js.Value) Adapter {
	text := func(name string) string {
		if v := info.Get(name); info.Truthy() && v.Type() == js.TypeString {
			return v.String()
		}
		return ""
	}
	if !info.Truthy() { // devices of older browsers have none
		info = js.ValueOf(map[string]any{})
	}
	a := Adapter{
		Type: virtualAdapter, Backend: "browser", VendorName: text("vendor"), Architecture: text("architecture"), Features: []string{},
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
		a.Type = softwareAdapter
	}
	if v := info.Get("subgroupMinSize"); v.Type() == js.TypeNumber {
		a.SubgroupMin, a.SubgroupMax = uint32(v.Int()), uint32(info.Get("subgroupMaxSize").Int())
	}
	for _, f := range features {
		if of.Get("features").Call("has", f).Bool() {
			a.Features = append(a.Features, f)
		}
	}
	if known := js.Global().Get("navigator").Get("gpu").Get("wgslLanguageFeatures"); known.Truthy() && known.Call("has", FeaturePackedDots).Bool() {
		a.LanguageFeatures = []string{FeaturePackedDots}
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

// Open opens an adapter of the list, with the limits that it has there. It returns the adapter with what was granted.
func Open(ctx context.Context, want Adapter) (Driver, Adapter, error) {
	adapter, err := request(ctx, want.query)
	if err != nil {
		return nil, Adapter{}, err
	}
	if adapter.IsNull() {
		return nil, Adapter{}, fmt.Errorf("the adapter has disappeared: %w", compute.ErrUnavailable)
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
		return nil, Adapter{}, fmt.Errorf("open the device: %w", err)
	}
	// Browsers grant no less than WebGPU's defaults, whatever is requested: what is below is up to our own checks.
	granted := describe(adapter.Get("info"), device)
	if _, err := Limits(granted.Limits, want.Limits); err != nil {
		device.Call("destroy")
		return nil, Adapter{}, fmt.Errorf("the browser granted less: %w", err)
	}
	want.Features = granted.Features
	return newBrowserDriver(device, true), want, nil
}
