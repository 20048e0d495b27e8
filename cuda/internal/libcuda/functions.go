//go:build ((linux && !android) || windows) && (amd64 || arm64)

package libcuda

import (
	"fmt"
	"reflect"
	"unsafe"
)

// functions are the library's, by their names in cuda.h. That maps a name to the latest version of the function by a macro; the
// library exports every version, and the tags say which one is meant. cuEventElapsedTime, cuGraphExecKernelNodeSetParams and
// cuStreamGetCaptureInfo have later ones that older drivers lack.
type functions struct {
	cuInit,
	cuDriverGetVersion,
	cuGetErrorString,

	cuDeviceGetCount,
	cuDeviceGet,
	cuDeviceGetName,
	cuDeviceGetPCIBusId,
	cuDeviceGetAttribute,
	cuDeviceCanAccessPeer,

	cuDevicePrimaryCtxRetain,
	cuCtxSetCurrent,
	cuCtxGetCurrent,
	cuCtxSynchronize,
	cuCtxEnablePeerAccess,
	cuCtxGetStreamPriorityRange,

	cuLinkComplete,
	cuLinkDestroy,
	cuModuleLoadDataEx,
	cuModuleUnload,
	cuModuleGetFunction,
	cuFuncGetAttribute,
	cuFuncSetAttribute,
	cuOccupancyMaxActiveBlocksPerMultiprocessor,
	cuOccupancyMaxPotentialBlockSize,
	cuLaunchKernel,

	cuMemHostAlloc,
	cuMemFreeHost,
	cuMemcpyPeerAsync,
	cuMemsetD8Async,
	cuMemsetD32Async,

	cuStreamCreateWithPriority,
	cuStreamSynchronize,
	cuStreamQuery,
	cuStreamWaitEvent,
	cuEventCreate,
	cuEventRecord,
	cuEventSynchronize,
	cuEventQuery,
	cuEventElapsedTime,

	cuStreamEndCapture,
	cuGraphDestroy,
	cuGraphInstantiateWithFlags,
	cuGraphExecDestroy,
	cuGraphUpload,
	cuGraphLaunch,
	cuGraphExecKernelNodeSetParams uintptr

	cuDeviceGetUuid,
	cuDeviceTotalMem,
	cuDevicePrimaryCtxSetFlags,
	cuDevicePrimaryCtxRelease,
	cuLinkCreate,
	cuLinkAddData,
	cuModuleGetGlobal,
	cuMemGetInfo,
	cuMemAlloc,
	cuMemFree,
	cuMemcpyHtoDAsync,
	cuMemcpyDtoHAsync,
	cuMemcpyDtoDAsync,
	cuStreamDestroy,
	cuEventDestroy,
	cuStreamBeginCapture,
	cuStreamGetCaptureInfo uintptr `version:"_v2"`

	// What drivers for CUDA 11.4 lack: 0 where it is missing.

	cuLaunchKernelEx             uintptr `since:"11.6"`
	cuOccupancyMaxActiveClusters uintptr `since:"11.7"`
	cuTensorMapEncodeTiled       uintptr `since:"12.0"`
	cuTensorMapEncodeIm2col      uintptr `since:"12.0"`
	cuFuncLoad                   uintptr `since:"12.4"`
	cuFuncGetParamInfo           uintptr `since:"12.4"`
}

// lookUpAll finds the functions in a loaded library.
func (fn *functions) lookUpAll(handle uintptr) error {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[functions]()) {
		symbol := field.Name + field.Tag.Get("version")
		at, err := lookUp(handle, symbol)
		if err != nil && field.Tag.Get("since") == "" {
			return fmt.Errorf("no function %s: %w; drivers since 470 (CUDA 11.4) have it", symbol, err)
		}
		*(*uintptr)(unsafe.Add(unsafe.Pointer(fn), field.Offset)) = at
	}
	return nil
}
