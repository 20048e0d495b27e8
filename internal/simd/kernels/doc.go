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
//
// # What limits them
//
// Measured on a core of Zen 4 with AVX-512, which loads 64 bytes and stores 32 in a cycle and has 32 from L2; `wavelane bench --cpu`
// prints the same for another machine.
//
//   - Folds, in L1: loads. Sum and SumSquares reach 0.85 of them, Dot 0.81, Max 0.70, before its comparisons for NaN, one for two vectors,
//     were made under the mask of those before: they share ports with the maxima. On a Xeon of the fifth generation Max of 4,096 takes
//     1.3 times as long as Sum. From L2 all reach 0.95 of its bandwidth, there 0.96 to 1.02 of a plain read, but Max with AVX2 0.8; from
//     memory all reach what a plain read does.
//   - Arithmetic of one operation, in L1: loads and stores alike; Add reaches 0.67 of them. On that Xeon stores do, of which there is one
//     of 64 bytes a cycle: Axpy of 1,024 takes 1.05 times as long as they do alone, and a call of it from Go a quarter more, since that
//     stores too. From L2 on it is as fast as a copy, and results beyond the caches are stored around them.
//   - Functions: multiplications and additions. Exp has 12 that the multiply-add ports take, one vector a cycle, and takes 12.5 cycles.
//     Tanh takes 20, Gelu 28.
//   - Searches, as Max: on that Xeon Find takes 1.07 times as long in L1, and from L2 as long as a Sum.
//   - Normalisations: loads and stores. Normalize takes as long as a copy there.
//   - Softmax of rows: the same ports as functions; see asmgen/x86.
//   - Scores and AddValues: loads, by their count: of keys and values one for up to four rows, and one of queries for each multiply-add.
//   - Conversions: stores where they widen, which takes as long as a copy of as many float32 there; narrowing is limited by its
//     instructions but for F16, by 2.4 (U8) and 2.9 (BF16) times the time of that copy in L1.
//   - Transpose: shuffles of tiles, and in L1 2.7 times as long as a copy there; from L2 1.1 times.
//   - Dot64, Axpy64: as Dot and Axpy of as many bytes, within 3 %.
//
// With NEON the same limits hold for vectors of 16 bytes: how near they are has not been measured. On WebAssembly a call of the module
// takes 0.15 to 0.2 µs under Node.js 20, more than what a fold of 1,024 elements computes. Beyond that functions are as near to
// their multiplications and additions as with SSE2: on the same Xeon Tanh and GELUErf take as long as there, and Exp 1.25 times. Under
// Node.js 24, whose V8 makes constants anew at each use, Exp would take 1.8 times as long if they were not variables.
package kernels

//go:generate go run -C ../asmgen .
