// Package quantised has the kernels that multiply with weights in block formats and that dequantise them. Few rows of activations are
// products of integers or of float32 with values unpacked in registers; many rows go to tensor cores.
package quantised
