// Package rope has the kernels of rotary position embeddings and their gradients.
//
//	grid    tokens × chunks of their heads × units of a head
//	thread  one unit: 1 or 4 pairs that are rotated, or elements that are copied; sine and cosine are computed once for all its heads
//
//	position ──▶ angle ──▶ sine, cosine ──┐
//	x[head]  ──▶ pair (a, b)            ──┴▶ (a·cos − b·sin, a·sin + b·cos) ──▶ y[head], for each head of the chunk
package rope
