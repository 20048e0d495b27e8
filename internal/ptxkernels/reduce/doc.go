// Package reduce has the kernels that reduce rows: sums, norms, extremes and their positions, scans, top-k, losses, and statistics of
// a tensor. Long rows are reduced in parts whose partial results a second launch combines.
//
//	grid   a task for each row or part of a row
//	block  256 threads: groups of lanes, one for each task
//	group  partial results ──▶ shuffles in warps ──▶ shared memory ──▶ lane 0
//	lane   batches of 4 accesses, of 16 bytes where rows are long, combined by a tree
//
//	family reduce  x ──value──▶ Combine (lanes; parts: PartRows, FinishRows) ──store──▶ one result for each row
//	family pass    x ──partial──▶ Combine (likewise) ──▶ a loss for each row, or gradients for each element
//	family scan    x ──sum of parts──▶ scan of the sums ──▶ each part from what is before it
//	family topk    x ──▶ arena in shared memory, sorted when it is full ──▶ the k first of each part ──▶ again, of these
package reduce
