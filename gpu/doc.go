// Package gpu is the WebGPU device.
package gpu
