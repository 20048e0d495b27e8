// Package norm has the kernels that compute rows from statistics of the same rows: softmax, layer norm, RMS norm, their fused forms and
// gradients. A row that fits registers is read once.
package norm
