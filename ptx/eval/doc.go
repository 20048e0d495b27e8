// Package eval is the arithmetic of PTX: what each instruction computes, bit by bit, from the bits of its operands. The software GPU
// and constant folding both use it, so that they cannot disagree.
//
// Values are the bits of registers, zero-extended to 64. A function reads as many low bits as its instruction's types say; of what it
// returns the destination register keeps as many low bits as it has. Predicates are 0 and 1.
//
// Where PTX leaves a result open, this is what it is here:
//
//   - NaN: results of f32, tf32, f16 and bf16 are the canonical NaN 0x7fffffff, 0x7fffffff, 0x7fff and 0x7fff. Results of f64 are the
//     first NaN among the operands, quiet, or 0xfff8000000000000 where no operand is NaN. neg, abs and copysign change the sign bit
//     alone, also of a NaN.
//   - Integer division and remainder by zero give all ones, as NVIDIA's code sequences do. The most negative number by −1
//     gives itself, remainder 0. Remainders have the sign of the dividend.
//   - .sat turns NaN and −0 into +0.
//   - .ftz flushes a result that is subnormal after rounding.
//   - Approximate operations are correctly rounded, but for what PTX says of special values and ranges; [Perturbed] errs.
//
// Functions that [Of] returns keep no state and may be called from several goroutines.
package eval
