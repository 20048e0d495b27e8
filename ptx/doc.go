// Package ptx builds PTX, NVIDIA's portable assembly, in pure Go.
//
// A [Module] holds kernels, a [Kernel] is filled by calls that each append instructions, and [Module.Build] checks the
// whole and returns it as [ir.Module], whose String is the text. Packages beside this one parse, optimise, analyse and
// execute the same form.
//
// # Values
//
// A [Reg] is the result of one instruction and never changes. Its type is one of Go's own number types, bool (a predicate), or one
// of the types that Go lacks: [F16], [BF16], pairs of them, [TF32], packed bytes. What changes is a [Var], read by Get and written by
// Set.
//
// A Reg knows its kernel, so arithmetic is methods: warp.And(3).Mad(4, lane.Shr(3)). Further operands are a Reg of the same type, or
// a constant of Go that the type can hold: x.Add(1), y.Mul(0.5). Build reports operands of other types, with the line at fault, since
// methods take constants as any. The result has its type at compile time. [Imm], [U32] and [F32] make a Reg of a constant where a
// function wants one; an operation on constants alone needs [ConstIn].
//
// Floating-point operations are rounded one by one; only [Reg.Fma] fuses.
//
// A [Ptr] has a state space and an element type: Ptr[Global, float32]. [Ptr.At] moves it by elements and [Ptr.Bytes] by bytes, either
// by a register or by an int, which takes no instruction; [Cast] changes the elements. Addresses of shared memory have 32 bits.
//
// # Control flow
//
// [Kernel.If], [For], [Kernel.While], [Kernel.Loop], [Kernel.BreakIf], [Kernel.ReturnIf] make labels and branches;
// [Kernel.When], [LoadIf] and [StoreIf] predicate. A value is known in the block that defines it and in those inside;
// what has to outlive its block is a Var. A loop in Go around calls is an unrolled loop; [Unroll]
// unrolls a For partly.
//
// # Memory
//
// [Ptr.Load], [Ptr.Store], [Ptr.Load4] and their like have options such as [ReadOnly] or [Acquire]; [Ptr.Atomic] and [Ptr.Reduce]
// combine. [SharedArray] and [DynamicShared] are shared memory, [NewTile] a matrix in it, padded or swizzled, whose bank conflicts
// [TileLayout] knows. [CpAsync], [CopyBulk] and [TensorMap.Load] copy in the background; an [Mbarrier] and groups say when they are done.
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
