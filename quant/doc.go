// Package quant is the room for quantised tensors: block formats of a few bits per weight, with packing, unpacking and
// their exact memory layouts, shared by the CPU kernels, the shaders and the PTX generator.
//
// None of the formats is there yet.
package quant
