// Package norm has the kernels that compute rows from statistics of the same rows: softmax, layer norm, RMS norm, their fused forms and
// gradients. A row that fits registers is read once.
//
//	grid   a task for each row, or for each part of long rows (then two launches: PartRows, FinishRows)
//	block  256 threads: groups of lanes, one for each task
//	group  partial results ──▶ shuffles in warps ──▶ shared memory ──▶ coefficients, the same in all lanes
//	lane   units of four elements: 1 or 8 of them stay in registers, else the row is streamed twice
//
//	x, m ──load──▶ rowTile ──partial──▶ Combine over lanes, warps, parts ──coefficients──▶ apply ──store──▶ y
//	                  └──────────────────── elements in registers, or loaded again ───────────┘
//
// What a kernel computes is a rowOp (softmax.go, norms.go); how it gets there is rowsBuilder (kernel.go, tile.go) over
// threadgroup.Reducer. The gradients of the vectors are sums over columns: backward.go.
package norm
