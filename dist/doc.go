// Package dist lets several processes, on one machine or many, and several devices of one process compute together: they form a [Group],
// whose members call the same collectives in the same order.
//
//	w, err := dist.Init(ctx)
//	defer w.Close()
//	err = w.AllReduce(ctx, gradients, gradients, dist.Mean)
//
// Processes are started by the launcher of an MPI library, mpirun or srun, and talk through that library, which is loaded when the program
// runs: Open MPI, MPICH and its derivatives, or one with the ABI of MPI 5. Processes with an NVIDIA GPU each may talk through NCCL instead,
// started by torchrun or anything that sets the same variables: [EngineNCCL]. There is no cgo. A process without a launcher is a world of
// one, in which collectives copy. [Local] makes groups of devices of one process, [LocalNCCL] a world of its CUDA devices.
//
// Batches record collectives as steps: see [github.com/wavelane/wavelane/batch.Group].
//
// # Rules
//
//   - All members of a group begin the same collectives with the same sizes in the same order; a process that is in several groups uses them
//     in an order that all agree on. Where that is violated, MPI waits for ever: see [WithTimeout].
//   - Calls block until the data of this member are complete. They may come from several goroutines; those on one group are carried out one after
//     another, except Send and Recv, which do not wait for others but with NCCL: see [Group.Send].
//   - Slices are []float32, []compute.F16, []compute.BF16, []int32, []uint32 or []byte. Bytes are moved but not reduced.
//   - When a context ends, or a call fails after it has begun, other members may wait for what does not come: the group is broken, with all that share its world, and
//     stays so: what the call was to set may still change. Every later call returns the same [*BrokenError]. Wrong arguments do not break a group, as nothing has been sent.
//
// # Sums
//
// Sums and means of Float16 and BFloat16 are computed in float32, in the order of ranks, and rounded once. Maximum and minimum are NaN where an element is. Int32 wraps
// around, and has no mean. All members get the same bits. Sums of float32 and of int32 are left to the library, whose
// order of float32 depends on size, algorithm and machine; [WithRankOrder] has them in the order of ranks. The sums of ReduceScatter are in that order but on streams of CUDA
// devices, see [github.com/wavelane/wavelane/batch.Group].
package dist
