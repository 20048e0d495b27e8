// Package move has the kernels that move elements: transpose, slice, pad, concat, gather, scatter, casts, and copies and fills that
// need no kernel.
package move
