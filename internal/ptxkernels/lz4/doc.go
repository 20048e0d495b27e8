// Package lz4 has the kernels that compress and decompress pages of LZ4: a warp for each page.
package lz4
