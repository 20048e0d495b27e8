package webgpu

import (
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/wgsl"
)

// Adapter describes an adapter, or the adapter of an open device with the limits and features that were granted.
type Adapter struct {
	Index            int // in the list of Adapters
	Name             string
	Vendor, Device   uint32 // PCI vendor, or Vulkan's number for software, and the vendor's number
	Driver           string
	DriverInfo       string
	Type             string // a type of adapter
	Backend          string // "vulkan", "metal", "dx12" or "browser"
	Limits           wgsl.Caps
	Features         []string
	LanguageFeatures []string

	// Library says which library drives it, "" in browsers.
	Library string
	library any // a *wgpu.Library

	// What only browsers tell.
	VendorName, Architecture string
	SubgroupMin, SubgroupMax uint32
	query                    int // the question that the browser answers with it
}

// Types of adapters.
const (
	discreteAdapter   = "discrete"
	integratedAdapter = "integrated"
	virtualAdapter    = "virtual"
	softwareAdapter   = "software"
)

// Names of features.
const (
	FeatureTimestamps = "timestamp-query"
	FeatureF16        = "shader-f16"
	FeatureSubgroups  = "subgroups"
	FeaturePackedDots = "packed_4x8_integer_dot_product" // of the language
)

// Vendors of software rasterisers: Mesa (Vulkan's vendor number), Google, Microsoft.
var softwareVendors = map[uint32]bool{0x10005: true, 0x1AE0: true, 0x1414: true}

// cpuType tells software from virtual GPUs, which the native library reports as one type.
func cpuType(vendor uint32) string {
	if vendor <= 0xffff && vendor != 0 && !softwareVendors[vendor] {
		return virtualAdapter
	}
	return softwareAdapter
}

// Limits merges what the options ask for into what the adapter offers.
func Limits(offer, ask wgsl.Caps) (wgsl.Caps, error) {
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
	offer.CountedLoops = offer.CountedLoops || ask.CountedLoops
	if too != nil {
		return wgsl.Caps{}, fmt.Errorf("requested limits: %s: %w", strings.Join(too, ", "), compute.ErrUnsupported)
	}
	return offer, nil
}
