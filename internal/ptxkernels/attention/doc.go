// Package attention has the kernels of attention: tiles of queries with online softmax on ordinary cores ([Attention], variant tiles)
// and on tensor cores (mma; wgmma on Hopper), splits over keys for decoding (split), caches in pages ([Paged]), and gradients ([Backward]).
//
// A row is a query of one of the heads that share a head of keys. For each row, softmax.Running keeps the maximum and the sum of what
// was seen, and says how to rescale accumulators.
//
//	kernel             block                                 warp                      lane
//	attention          32 or 64 rows × all keys of a head    2 × 16 threads            rows/8 rows × 4 keys of a tile of 64
//	attention_mma      64 or 128 rows × all keys of a head   16 or 32 rows             fragments of mma.sync
//	attention_wgmma    128 or 192 queries of one head        64 queries a warpgroup    fragments of wgmma
//	attention_decode   1 to 8 rows × a part of the keys      1 to 4 groups, 2+ keys    8 elements of a key and of all rows
//	..._combine        4 rows                                the parts of a row        every 32nd element
//	attention_dq       32 or 64 rows × all keys              as attention              as attention
//	attention_dk_dv    32 or 64 keys × all rows              as attention              as attention
//
//	q ──┐
//	k ──┴─▶ scores ──mask──▶ Update(maximum) ──▶ weights ──┐
//	                            └─▶ factor ────────────────┤
//	v ─────────────────────────────────────────────────────┴─▶ accumulators ──Finish──▶ y, lse
//
// Tiles of keys and values pass through shared memory; attention_decode reads them straight into registers, and merges what its groups
// have, then its warps, then, in attention_decode_combine, blocks.
package attention
