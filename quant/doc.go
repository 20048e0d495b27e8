// Package quant converts between float32 and GGML's block formats, in which model files hold their weights: a row of values is
// cut into blocks of 32 or 256, and a block holds small integers with the scales that they are multiplied by.
//
//	type   values  bytes  bits per weight  x =
//	F32         1      4   32              the value
//	F16         1      2   16              the value, IEEE binary16
//	BF16        1      2   16              the value, bfloat16
//	Q4_0       32     18    4.5            d·(q − 8)
//	Q4_1       32     20    5              d·q + m
//	Q5_0       32     22    5.5            d·(q − 16)
//	Q5_1       32     24    6              d·q + m
//	Q8_0       32     34    8.5            d·q
//	Q8_1       32     36    9              d·q            (activations)
//	Q2_K      256     84    2.625          d·sc·q − dmin·mn
//	Q3_K      256    110    3.4375         d·sc·(q − 4)
//	Q4_K      256    144    4.5            d·sc·q − dmin·mn
//	Q5_K      256    176    5.5            d·sc·q − dmin·mn
//	Q6_K      256    210    6.5625         d·sc·(q − 32)
//	Q8_K      256    292    9.125          d·q            (activations)
//
// The layout of each format, byte by byte, is documented with its constants, which the kernels of all devices use. All
// numbers are little-endian. Types of GGML that are not in this table have a name, a block length and a size, so that files
// with them can be listed; converting them is [compute.ErrUnsupported].
//
// [Dequantize] returns the same floats as GGML, and [Quantize] the same bytes as GGML's reference quantisers, with importance
// weights ([QuantizeWeighted]) or without, on every processor: multiplications and additions are never fused. The source of
// formats and algorithms is ggml-quants.c and ggml-common.h of github.com/ggml-org/ggml.
//
// All functions are safe for concurrent use.
package quant
