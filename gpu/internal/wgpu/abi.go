//go:build ((linux && !android) || darwin || windows) && (amd64 || arm64)

package wgpu

import "fmt"

// Values of enumerations, the same in all versions of the table below. TestLayout compares them with the headers.
const (
	SType_ShaderSourceWGSL = 2

	InstanceBackend_Vulkan = 1
	InstanceBackend_Metal  = 4
	InstanceBackend_DX12   = 8

	LogLevel_Off = 0

	AdapterType_DiscreteGPU   = 1
	AdapterType_IntegratedGPU = 2
	AdapterType_CPU           = 3

	BackendType_D3D12  = 4
	BackendType_Metal  = 5
	BackendType_Vulkan = 6

	CallbackMode_AllowSpontaneous = 3

	RequestDeviceStatus_Success = 1
	MapAsyncStatus_Success      = 1
	QueueWorkDoneStatus_Success = 1

	ErrorType_NoError     = 1
	ErrorType_Validation  = 2
	ErrorType_OutOfMemory = 3
	ErrorType_Internal    = 4
	ErrorType_Unknown     = 5

	BufferUsage_MapRead      = 1
	BufferUsage_MapWrite     = 2
	BufferUsage_CopySrc      = 4
	BufferUsage_CopyDst      = 8
	BufferUsage_Uniform      = 0x40
	BufferUsage_Storage      = 0x80
	BufferUsage_QueryResolve = 0x200

	MapMode_Read  = 1
	MapMode_Write = 2

	ShaderStage_Compute = 4

	BufferBindingType_Uniform         = 2
	BufferBindingType_Storage         = 3
	BufferBindingType_ReadOnlyStorage = 4

	QueryType_Timestamp = 2

	NativeFeature_Subgroup                     = 0x30021
	NativeFeature_TimestampQueryInsideEncoders = 0x30024
)

// ErrorLost is none of the library's errors: what a call is told that loses the device.
const ErrorLost = 1 << 16

// ABI is what differs between versions of the library. Fields that only the newer version knows are at the end of its structs, so
// that the older one does not read them, but for one.
type ABI struct {
	Major                      uint32
	SType_InstanceExtras       uint32
	FeatureName_TimestampQuery uint32
	FeatureName_ShaderF16      uint32
	arraySize                  bool // a layout entry has bindingArraySize, in its middle
	workDoneText               bool // that callback has a message
	// What checks a trusted shader keeps, where there is that function; 0 where there is none.
	ShaderRuntimeChecks_BoundsChecks uint32
}

// abis are the versions that fit.
var abis = []ABI{
	{Major: 29, SType_InstanceExtras: 0x30004, FeatureName_TimestampQuery: 9, FeatureName_ShaderF16: 11, arraySize: true, workDoneText: true, ShaderRuntimeChecks_BoundsChecks: 1},
	{Major: 27, SType_InstanceExtras: 0x30006, FeatureName_TimestampQuery: 3, FeatureName_ShaderF16: 10},
}

// Version is what the library says of itself.
type Version uint32

func (v Version) String() string {
	return fmt.Sprintf("%d.%d.%d.%d", v>>24, v>>16&0xff, v>>8&0xff, v&0xff)
}

// fitting returns the table's entry for a version.
func fitting(v Version) (*ABI, error) {
	for i := range abis {
		if abis[i].Major == uint32(v>>24) {
			return &abis[i], nil
		}
	}
	return nil, fmt.Errorf("it is wgpu-native %v; this version of wavelane works with 29 and 27", v)
}

// layoutEntry27 is BindGroupLayoutEntry of version 27.
type layoutEntry27 struct {
	NextInChain    uintptr
	Binding        uint32
	Visibility     uint64
	Buffer         BufferBindingLayout
	Sampler        SamplerBindingLayout
	Texture        TextureBindingLayout
	StorageTexture StorageTextureBindingLayout
}
