//go:build ((linux && !android) || darwin || windows) && (amd64 || arm64)

package wgpu

import (
	"fmt"
	"reflect"
	"strings"
)

// Functions are the addresses of the library's functions, with the names of C less their prefix "wgpu".
type Functions struct {
	GetVersion,
	SetLogLevel,
	CreateInstance,
	InstanceEnumerateAdapters,
	InstanceRelease,
	AdapterGetInfo,
	AdapterInfoFreeMembers,
	AdapterGetLimits,
	AdapterGetFeatures,
	SupportedFeaturesFreeMembers,
	AdapterRequestDevice,
	AdapterRelease,
	DeviceGetQueue,
	DevicePoll,
	DeviceRelease,
	QueueRelease,
	DeviceCreateBuffer,
	BufferDestroy,
	BufferRelease,
	BufferGetMappedRange,
	BufferGetConstMappedRange,
	BufferMapAsync,
	BufferUnmap,
	DeviceCreateShaderModule,
	ShaderModuleRelease,
	DeviceCreateBindGroupLayout,
	BindGroupLayoutRelease,
	DeviceCreatePipelineLayout,
	PipelineLayoutRelease,
	DeviceCreateComputePipeline,
	ComputePipelineRelease,
	DeviceCreateBindGroup,
	BindGroupRelease,
	DeviceCreateQuerySet,
	QuerySetRelease,
	DeviceCreateCommandEncoder,
	CommandEncoderWriteTimestamp,
	CommandEncoderBeginComputePass,
	CommandEncoderCopyBufferToBuffer,
	CommandEncoderResolveQuerySet,
	CommandEncoderFinish,
	CommandEncoderRelease,
	ComputePassEncoderSetPipeline,
	ComputePassEncoderSetBindGroup,
	ComputePassEncoderDispatchWorkgroups,
	ComputePassEncoderEnd,
	ComputePassEncoderRelease,
	CommandBufferRelease,
	QueueSubmit,
	QueueOnSubmittedWorkDone uintptr
}

// fill looks the functions up.
func (fn *Functions) fill(lookUp func(name string) uintptr) error {
	var missing []string
	v := reflect.ValueOf(fn).Elem()
	for i := range v.NumField() {
		name := "wgpu" + v.Type().Field(i).Name
		address := lookUp(name)
		if address == 0 {
			missing = append(missing, name)
		}
		v.Field(i).SetUint(uint64(address))
	}
	if missing != nil {
		return fmt.Errorf("it lacks %s", strings.Join(missing, ", "))
	}
	return nil
}
