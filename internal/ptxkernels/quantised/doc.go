// Package quantised has the kernels that multiply activations x with weights in block formats, and that dequantise these.
//
//	rows of x      x as        kernel          weights are unpacked                       multiplied by
//	1 to 8         float32     quant_gemv      in registers of the lane that reads them   fma
//	1 to 8         bytes       quant_dp4a      likewise, as bytes                         dp4a (rows of x: 1, or before sm_80)
//	2 to 8         bytes       quant_thin      likewise, as fragments                     mma.sync on int8, 16 rows of weights × 8 of x
//	more           float32     quant_gemm      on the way to shared memory                fma, see tiling.Product
//	more           bytes       quant_mma_s8    as fragments                               mma.sync on int8, 16 rows of weights × 8 of x
//	more           halves      quant_mma_f16…  as fragments                               mma.sync on halves, likewise
//	1 to 8         float32     quant_columns   where rows of weights lie along the result
//
//	x ──quant_bytes, quant_halves──▶ values, scales ──cp.async──▶ stages ──ldmatrix──▶ ┌─────┐
//	                                                                                   │ mma │──▶ Σ integers · scale of x · scale of w
//	w ──────────────────────────global memory────────────────────▶ unitReader ───────▶ └─────┘
//
// All formats are alike, see blockFormat: a unit is 32 values of a row in two runs of 16, whose low bits are in the same 16 bytes.
//
//	unitReader   (format.go, scales.go)  loads and unpacks units, whole or word by word
//	pieceReader  (piece.go)              one or two units whose bytes dp4a takes where they are in their words
//	Four         (dequantize.go)         four values as float32, exactly as package quant has them
package quantised
