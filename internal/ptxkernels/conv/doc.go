// Package conv has the kernels of convolutions and pooling. Convolutions are implicit matrix products, or direct where a group has few
// channels; filters of one element are the products of package gemm.
package conv
