// Package ptx builds PTX, NVIDIA's portable assembly, in pure Go.
//
// A [Module] holds kernels, a [Kernel] is filled by calls that each append instructions, and [Module.Build] checks the
// whole and returns it as [ir.Module], whose String is the text. Packages beside this one parse, optimise, analyse and
// execute the same form.
//
// # Values
//
// Values carry their type: a [Reg] of float32 where an address or an integer belongs does not compile. T is one of Go's
// own number types, bool (a predicate), or one of the types that Go lacks: [F16], [BF16], pairs of them, [TF32], packed
// bytes. A Reg is the result of one instruction and never changes; [Imm] is a constant. What changes is a [Var], read by
// Get and written by Set.
//
// A [Ptr] has a state space and an element type: Ptr[Global, float32]. [At] with a register and the method [Ptr.At] with
// a constant (which takes no instruction) move it by elements, [AtByte] and [Ptr.Bytes] by bytes, [Cast] changes the
// elements. Addresses of shared memory have 32 bits.
//
// Arithmetic is done by functions that take the kernel first: Add(k, x, y). Floating-point operations are rounded one by
// one; only [Fma] fuses.
//
// # Control flow
//
// [Kernel.If], [For], [Kernel.While], [Kernel.Loop], [Kernel.BreakIf], [Kernel.ReturnIf] make labels and branches;
// [Kernel.When], [LoadIf] and [StoreIf] predicate. A value is known in the block that defines it and in those inside;
// what has to outlive its block is a Var. A loop in Go around calls is an unrolled loop, as is [Unroll]; [UnrollBy]
// unrolls a For partly.
//
// # Memory
//
// [Load], [Store], [Load4] and their like take any pointer, with options such as [ReadOnly] or [Acquire]; [Atomic] and [Reduce]
// combine. [SharedArray] and [DynamicShared] are shared memory, [NewTile] a matrix in it, padded or swizzled, whose bank conflicts
// [TileLayout] knows. [CpAsync], [CopyBulk] and [CopyTensor] copy in the background; mbarriers and groups say when they are done.
//
// # Matrices
//
// [LdMatrix] with [Mma] runs on every GPU from sm_80 on, [Wgmma] on sm_90a; fragments are slices of registers of a packed type.
//
// # Errors
//
// Calls do not return errors. Build reports all at once, each of type [*Error] with the line that made it: results that
// nobody uses, variables read before they are set, values used outside their block, after their variable changed, or in
// another kernel, code that is never reached, and instructions that PTX does not have. It also finds the least version
// of PTX and the least target that the instructions need.
//
// # Concurrency
//
// A module and its kernels belong to one goroutine.
package ptx
