// Package kernels holds the loops that simd is made of: elementwise arithmetic and functions, folds, searches and
// normalisations over float32 slices, for every instruction set ("tier") that wavelane has code for.
//
// A kernel, say Exp, is one exported function for all platforms. It is inlined as a call of expDispatch, which each platform has its own
// of and which picks the code of the active tier. Assembly (expSSE, expAVX2, expAVX512, expNEON) is generated from the definitions in
// internal/simd/asmgen; expGo, the portable fallback, computes what machines without assembly compute, what other tiers leave to it, and
// what tests compare them with.
//
// # Slices
//
// The first slice of a call says how many elements there are; the others must be at least as long, which is trusted, not
// checked. Y may be one of the inputs, or begin at a lower address and overlap it; other overlaps are not allowed. Nothing
// outside those elements is read or written. Kernels of no elements are fine. None allocates; all may run at the same time.
//
// # Numbers
//
// Arithmetic of one rounding an element (Add, Mul, Sqrt, Floor, Clip and the like) has the same bits on every tier, but for
// the bits of NaN and the sign of a zero that Maximum, Minimum, Clip or ReLU chooses between zeros. Where there are two
// (Axpy, MulAdd, Lerp, …) a tier may fuse them. Functions are within 2 ULP of the exact result. Folds add in an order that
// differs between tiers but depends on nothing else than the number of elements.
package kernels

//go:generate go run -C ../asmgen .
