//go:build ((linux && !android) || darwin || windows) && (amd64 || arm64)

package wgpu

import "structs"

// The structs of webgpu.h and wgpu.h, version 29, with the names of C less their prefix. TestLayout compares them with the headers by
// a C compiler. Pointers are numbers: what they point to is kept by its owner.

type StringView struct {
	_            structs.HostLayout
	Data, Length uintptr
}

type ChainedStruct struct {
	_     structs.HostLayout
	Next  uintptr
	SType uint32
}

type InstanceDescriptor struct {
	_                    structs.HostLayout
	NextInChain          uintptr
	RequiredFeatureCount uint64
	RequiredFeatures     uintptr
	RequiredLimits       uintptr
}

type InstanceExtras struct {
	_                       structs.HostLayout
	Chain                   ChainedStruct
	Backends, Flags         uint64
	Dx12ShaderCompiler      uint32
	Gles3MinorVersion       uint32
	GlFenceBehaviour        uint32
	DxcPath                 StringView
	DxcMaxShaderModel       uint32
	Dx12PresentationSystem  uint32
	BudgetForDeviceCreation uintptr
	BudgetForDeviceLoss     uintptr
	DisplayHandle           [3]uint64
}

type InstanceEnumerateAdapterOptions struct {
	_           structs.HostLayout
	NextInChain uintptr
	Backends    uint64
}

type AdapterInfo struct {
	_                                         structs.HostLayout
	NextInChain                               uintptr
	Vendor, Architecture, Device, Description StringView
	BackendType, AdapterType                  uint32
	VendorID, DeviceID                        uint32
	SubgroupMinSize, SubgroupMaxSize          uint32
}

type SupportedFeatures struct {
	_            structs.HostLayout
	FeatureCount uint64
	Features     uintptr
}

type Limits struct {
	_                                         structs.HostLayout
	NextInChain                               uintptr
	MaxTextureDimension1D                     uint32
	MaxTextureDimension2D                     uint32
	MaxTextureDimension3D                     uint32
	MaxTextureArrayLayers                     uint32
	MaxBindGroups                             uint32
	MaxBindGroupsPlusVertexBuffers            uint32
	MaxBindingsPerBindGroup                   uint32
	MaxDynamicUniformBuffersPerPipelineLayout uint32
	MaxDynamicStorageBuffersPerPipelineLayout uint32
	MaxSampledTexturesPerShaderStage          uint32
	MaxSamplersPerShaderStage                 uint32
	MaxStorageBuffersPerShaderStage           uint32
	MaxStorageTexturesPerShaderStage          uint32
	MaxUniformBuffersPerShaderStage           uint32
	MaxUniformBufferBindingSize               uint64
	MaxStorageBufferBindingSize               uint64
	MinUniformBufferOffsetAlignment           uint32
	MinStorageBufferOffsetAlignment           uint32
	MaxVertexBuffers                          uint32
	MaxBufferSize                             uint64
	MaxVertexAttributes                       uint32
	MaxVertexBufferArrayStride                uint32
	MaxInterStageShaderVariables              uint32
	MaxColorAttachments                       uint32
	MaxColorAttachmentBytesPerSample          uint32
	MaxComputeWorkgroupStorageSize            uint32
	MaxComputeInvocationsPerWorkgroup         uint32
	MaxComputeWorkgroupSizeX                  uint32
	MaxComputeWorkgroupSizeY                  uint32
	MaxComputeWorkgroupSizeZ                  uint32
	MaxComputeWorkgroupsPerDimension          uint32
	MaxImmediateSize                          uint32
}

type QueueDescriptor struct {
	_           structs.HostLayout
	NextInChain uintptr
	Label       StringView
}

// BufferMapCallbackInfo has the layout of every callback info with a mode.
type BufferMapCallbackInfo struct {
	_                    structs.HostLayout
	NextInChain          uintptr
	Mode                 uint32
	Callback             uintptr
	Userdata1, Userdata2 uintptr
}

type (
	QueueWorkDoneCallbackInfo = BufferMapCallbackInfo
	DeviceLostCallbackInfo    = BufferMapCallbackInfo
	RequestDeviceCallbackInfo = BufferMapCallbackInfo
)

type UncapturedErrorCallbackInfo struct {
	_                    structs.HostLayout
	NextInChain          uintptr
	Callback             uintptr
	Userdata1, Userdata2 uintptr
}

type DeviceDescriptor struct {
	_                           structs.HostLayout
	NextInChain                 uintptr
	Label                       StringView
	RequiredFeatureCount        uint64
	RequiredFeatures            uintptr
	RequiredLimits              uintptr
	DefaultQueue                QueueDescriptor
	DeviceLostCallbackInfo      DeviceLostCallbackInfo
	UncapturedErrorCallbackInfo UncapturedErrorCallbackInfo
}

type BufferDescriptor struct {
	_                structs.HostLayout
	NextInChain      uintptr
	Label            StringView
	Usage            uint64
	Size             uint64
	MappedAtCreation uint32
}

type ShaderSourceWGSL struct {
	_     structs.HostLayout
	Chain ChainedStruct
	Code  StringView
}

type ShaderModuleDescriptor struct {
	_           structs.HostLayout
	NextInChain uintptr
	Label       StringView
}

type BufferBindingLayout struct {
	_                structs.HostLayout
	NextInChain      uintptr
	Type             uint32
	HasDynamicOffset uint32
	MinBindingSize   uint64
}

type SamplerBindingLayout struct {
	_           structs.HostLayout
	NextInChain uintptr
	Type        uint32
}

type TextureBindingLayout struct {
	_             structs.HostLayout
	NextInChain   uintptr
	SampleType    uint32
	ViewDimension uint32
	Multisampled  uint32
}

type StorageTextureBindingLayout struct {
	_             structs.HostLayout
	NextInChain   uintptr
	Access        uint32
	Format        uint32
	ViewDimension uint32
}

type BindGroupLayoutEntry struct {
	_                structs.HostLayout
	NextInChain      uintptr
	Binding          uint32
	Visibility       uint64
	BindingArraySize uint32
	Buffer           BufferBindingLayout
	Sampler          SamplerBindingLayout
	Texture          TextureBindingLayout
	StorageTexture   StorageTextureBindingLayout
}

type BindGroupLayoutDescriptor struct {
	_           structs.HostLayout
	NextInChain uintptr
	Label       StringView
	EntryCount  uint64
	Entries     uintptr
}

type PipelineLayoutDescriptor struct {
	_                    structs.HostLayout
	NextInChain          uintptr
	Label                StringView
	BindGroupLayoutCount uint64
	BindGroupLayouts     uintptr
	ImmediateSize        uint32
}

type ComputeState struct {
	_             structs.HostLayout
	NextInChain   uintptr
	Module        uintptr
	EntryPoint    StringView
	ConstantCount uint64
	Constants     uintptr
}

type ComputePipelineDescriptor struct {
	_           structs.HostLayout
	NextInChain uintptr
	Label       StringView
	Layout      uintptr
	Compute     ComputeState
}

type BindGroupEntry struct {
	_            structs.HostLayout
	NextInChain  uintptr
	Binding      uint32
	Buffer       uintptr
	Offset, Size uint64
	Sampler      uintptr
	TextureView  uintptr
}

type BindGroupDescriptor struct {
	_           structs.HostLayout
	NextInChain uintptr
	Label       StringView
	Layout      uintptr
	EntryCount  uint64
	Entries     uintptr
}

type QuerySetDescriptor struct {
	_           structs.HostLayout
	NextInChain uintptr
	Label       StringView
	Type        uint32
	Count       uint32
}

type CommandEncoderDescriptor struct {
	_           structs.HostLayout
	NextInChain uintptr
	Label       StringView
}

type ComputePassDescriptor struct {
	_               structs.HostLayout
	NextInChain     uintptr
	Label           StringView
	TimestampWrites uintptr
}
