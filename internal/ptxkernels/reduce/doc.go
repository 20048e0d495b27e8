// Package reduce has the kernels that reduce rows: sums, norms, extremes and their positions, scans, top-k, losses, and statistics of
// a tensor. Long rows are reduced in parts whose partial results a second launch joins.
package reduce
