package gpu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/gpu/internal/webgpu"
	"github.com/wavelane/wavelane/wgsl"
)

// AdapterType is the kind of hardware, or software, that an adapter is.
type AdapterType string

// Adapter types. Software adapters are left out of the automatic choice, and so are those of Direct3D 12, whatever their type.
const (
	Discrete   AdapterType = "discrete"
	Integrated AdapterType = "integrated"
	Virtual    AdapterType = "virtual" // a GPU passed to a virtual machine, or of a driver that does not tell
	Software   AdapterType = "software"
)

// AdapterInfo describes an adapter, or the adapter of an open device with the limits that were granted.
type AdapterInfo struct {
	Index      int         `json:"index"` // for WithAdapter; stable while drivers and hardware stay the same
	Name       string      `json:"name"`
	Vendor     uint32      `json:"vendor"` // PCI vendor, or Vulkan's number for software
	Device     uint32      `json:"device"`
	Driver     string      `json:"driver,omitempty"`
	DriverInfo string      `json:"driver_info,omitempty"`
	Type       AdapterType `json:"type"`
	Backend    string      `json:"backend"`           // "vulkan", "metal", "dx12" or "browser"
	Library    string      `json:"library,omitempty"` // "wgpu-native 29.0.1.1, loaded from …", or "…, linked"; empty in browsers
	Limits     wgsl.Caps   `json:"limits"`
	// "timestamp-query", "shader-f16" and "subgroups".
	Features []string `json:"features"`
	// LanguageFeatures are those of WGSL that kernels may use without requesting them: "packed_4x8_integer_dot_product".
	LanguageFeatures []string `json:"language_features,omitempty"`

	// Only some browsers tell these. They hide the numbers of vendor and device, and whether a GPU is discrete.
	VendorName   string `json:"vendor_name,omitempty"`  // "nvidia"
	Architecture string `json:"architecture,omitempty"` // "ampere"
	SubgroupMin  uint32 `json:"subgroup_min,omitempty"` // sizes of subgroups that kernels may meet
	SubgroupMax  uint32 `json:"subgroup_max,omitempty"`
}

// infoOf converts the driver's description of an adapter.
func infoOf(a webgpu.Adapter) AdapterInfo {
	return AdapterInfo{Index: a.Index, Name: a.Name, Vendor: a.Vendor, Device: a.Device, Driver: a.Driver, DriverInfo: a.DriverInfo,
		Type: AdapterType(a.Type), Backend: a.Backend, Library: a.Library, Limits: a.Limits, Features: a.Features, LanguageFeatures: a.LanguageFeatures,
		VendorName: a.VendorName, Architecture: a.Architecture, SubgroupMin: a.SubgroupMin, SubgroupMax: a.SubgroupMax}
}

func (a AdapterInfo) has(feature string) bool {
	for _, f := range a.Features {
		if f == feature {
			return true
		}
	}
	return false
}

// Caps returns what kernels are chosen by: the limits, and the features that kernels have variants for.
func (a AdapterInfo) Caps() wgsl.Caps {
	c := a.Limits
	c.Subgroups, c.F16 = a.has("subgroups"), a.has("shader-f16")
	c.IntegerDots = slices.Contains(a.LanguageFeatures, webgpu.FeaturePackedDots)
	c.Software = a.Type == Software
	c.CountedLoops = c.CountedLoops || a.onDirect3D() // by FXC
	return c
}

// onDirect3D reports whether an adapter is one of Direct3D 12, whose compiler takes seconds for a kernel and refuses some of users: those are
// opened only by their index.
func (a AdapterInfo) onDirect3D() bool { return a.Backend == "dx12" }

func (a AdapterInfo) String() string {
	s := fmt.Sprintf("%d: %s (%s, %s", a.Index, a.Name, a.Type, a.Backend)
	if driver := strings.TrimSpace(a.Driver + " " + a.DriverInfo); driver != "" {
		s += ", " + driver
	}
	return s + ")"
}
