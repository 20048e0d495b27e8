// Package attention has the kernels of attention: tiles of queries with online softmax on ordinary cores ([Attention], variant tiles)
// and on tensor cores (mma), splits over keys for decoding (split), caches in pages ([Paged]), and gradients ([Backward]).
package attention
