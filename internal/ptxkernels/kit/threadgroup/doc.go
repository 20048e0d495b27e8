// Package threadgroup divides rows among groups of threads: how a step's rows become tasks is decided on the host ([Split], [Lanes]),
// and a kernel finds its task by [Of], reads operands through [Operand] and reduces by a [Reducer].
//
//	host   rows × cols ──Split──▶ tasks (rows × parts) ──Lanes──▶ groups of 1 to 256 lanes ──Stages──▶ launches
//	lane   elements ──▶ Partial.Accumulate
//	warp   Reduce: shuffles among the group's lanes
//	block  Reduce: a word of shared memory for each warp, then shuffles again
//	grid   Run: partial results of parts in memory, combined by a second launch
package threadgroup
