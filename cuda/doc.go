// Package cuda is the room for NVIDIA devices through the driver's own library, loaded at run time: no toolkit, no cgo.
// It will execute the code of package ptx, on hardware or on the software GPU.
//
// The device is not there yet: wavelane.Open reaches NVIDIA hardware through WebGPU, in package gpu.
package cuda
