//go:build cgo && ((linux && !android && (amd64 || arm64)) || (darwin && !ios && (amd64 || arm64)) || (windows && amd64))

package wgpu

/*
#cgo linux windows LDFLAGS: -Wl,--wrap=_Unwind_RaiseException
#include <stddef.h>
#include <string.h>

// The archive's functions, of which only the addresses are used. See functions.go.
#define FUNCTIONS(F) \
    F(GetVersion) F(SetLogLevel) F(CreateInstance) F(InstanceEnumerateAdapters) F(InstanceRelease) F(AdapterGetInfo) \
    F(AdapterInfoFreeMembers) F(AdapterGetLimits) F(AdapterGetFeatures) F(SupportedFeaturesFreeMembers) \
    F(AdapterRequestDevice) F(AdapterRelease) F(DeviceGetQueue) F(DevicePoll) F(DeviceRelease) F(QueueRelease) \
    F(DeviceCreateBuffer) F(BufferDestroy) F(BufferRelease) F(BufferGetMappedRange) F(BufferGetConstMappedRange) \
    F(BufferMapAsync) F(BufferUnmap) F(DeviceCreateShaderModule) F(ShaderModuleRelease) \
    F(DeviceCreateBindGroupLayout) F(BindGroupLayoutRelease) F(DeviceCreatePipelineLayout) F(PipelineLayoutRelease) \
    F(DeviceCreateComputePipeline) F(ComputePipelineRelease) F(DeviceCreateBindGroup) F(BindGroupRelease) \
    F(DeviceCreateQuerySet) F(QuerySetRelease) F(DeviceCreateCommandEncoder) F(CommandEncoderWriteTimestamp) \
    F(CommandEncoderBeginComputePass) F(CommandEncoderCopyBufferToBuffer) F(CommandEncoderResolveQuerySet) \
    F(CommandEncoderFinish) F(CommandEncoderRelease) F(ComputePassEncoderSetPipeline) \
    F(ComputePassEncoderSetBindGroup) F(ComputePassEncoderDispatchWorkgroups) F(ComputePassEncoderEnd) \
    F(ComputePassEncoderRelease) F(CommandBufferRelease) F(QueueSubmit) F(QueueOnSubmittedWorkDone)

#define DECLARE(name) extern void wgpu##name(void);
FUNCTIONS(DECLARE)

#define ENTER(name) {"wgpu" #name, wgpu##name},
static const struct {
    const char *name;
    void (*address)(void);
} table[] = {FUNCTIONS(ENTER)};

static void *look_up(const char *name) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0) return (void *)table[i].address;
    return NULL;
}

#ifdef __APPLE__

static int intercept(void (*f)(void *)) {
    (void)f;
    return 0;
}

#else

// What is thrown by Rust code that is linked into the program goes by this function first. See panic.go.

static void (*thrown)(void *);

static int intercept(void (*f)(void *)) {
    thrown = f;
    return 1;
}

int __real__Unwind_RaiseException(void *exception);

int __wrap__Unwind_RaiseException(void *exception) {
    if (thrown != NULL && memcmp(exception, "MOZ\0RUST", 8) == 0) thrown(exception); // returns if it is none of ours
    return __real__Unwind_RaiseException(exception);
}

#endif
*/
import "C"

import "unsafe"

// linked returns the archive that is part of the program.
func linked() (*Library, error) {
	l, err := check("", func(name string) uintptr {
		c := append([]byte(name), 0)
		return uintptr(C.look_up((*C.char)(unsafe.Pointer(&c[0]))))
	})
	if err != nil {
		return nil, err
	}
	l.survives = C.intercept((*[0]byte)(Pointer(thrown()))) != 0
	return l, nil
}
