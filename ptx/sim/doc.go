// Package sim is a software GPU: it executes PTX, as builders and compilers make it, on any machine, and finds mistakes that hardware
// keeps to itself.
//
//	gpu := sim.New(sim.Config{Checks: sim.AllChecks, Seed: 1})
//	module, err := gpu.Load(m)               // an ir.Module, built or parsed
//	kernel, err := module.Kernel("saxpy")
//	x, err := gpu.Alloc(4 * n)               // an address, as a driver gives it
//	err = gpu.Write(x, bytes)
//	params, err := kernel.Pack(uint32(n), float32(2), x, y)
//	stats, err := gpu.Run(ctx, kernel, sim.Launch{Grid: sim.Dim3{X: 4}, Block: sim.Dim3{X: 256}, Params: params})
//	err = gpu.Read(bytes, y)
//
// # What is executed
//
// Blocks and clusters of warps of 32 lanes, with a program counter per lane: lanes at the lowest one run together, or a subset that the
// seed chooses. All of PTX's integer, floating-point and bit arithmetic comes from package eval, and rounds as PTX says; approximate
// instructions are correctly rounded, or err as far as they may with Config.Perturb. Tensor cores add exact products in double precision
// and round once. Asynchronous copies and products (cp.async, bulk and tensor copies, wgmma) take effect late, at a time that the seed
// chooses. Textures and surfaces are images in global memory ([Image], [GPU.Texture], [GPU.Surface]), of one level of detail. Of CUDA's
// device runtime there are printf (Config.Output), assert, malloc and free ([GPU.Leaks]). Addresses have 64 bits. Each block has the tensor
// memory of sm_100 for itself, and products of tcgen05 are those of one block, of two, of elements with scales and of sparse matrices; not
// weight-stationary. What is not there is an error of Load or Kernel, or a fault.
//
// # What is found
//
// A [Fault] ends a launch. It names the instruction, its line in PTX or in the Go program that built it, block, thread and address, and,
// for races and missing values, the other access or the origin. Bounds and alignment are checked always; with [Checks] also values that
// nobody wrote (as they reach an address, a branch or the host; a register has one or has none, as a whole), races (by happens-before over
// bytes: barriers, fences, scopes, atomics), and asynchronous operations that nobody waits for. Barriers that not all threads reach, named
// lanes that cannot arrive, deadlocks and bad descriptors are faults in any mode.
//
// A seed determines a launch: the order of warps and blocks, the choice of lanes and the time of completions. Seed 0 is round robin.
//
// # Concurrency and cost
//
// A GPU is safe for concurrent use; one launch runs at a time. Without checks Config.Workers goroutines share the blocks of a launch. Memory
// of the simulated GPU is Go memory, with some bytes of bookkeeping for each one checked.
package sim

// The prefix of a file says what it is about:
//
//	gpu, load, launch, fault   the public face
//	exec_    compiling a kernel to steps; warps, blocks, clusters, scheduling; control flow, barriers, atomic operations
//	fast_    loops of their own for the instructions in which kernels spend their time
//	mem      address spaces, segments, frames; loads and stores
//	check_   what Config.Checks asks for: values, races, asynchronous hazards
//	count_   what Config.Counters asks for
//	async_   cp.async, bulk and tensor copies, mbarriers, asynchronous products
//	tensor_  ldmatrix, mma, wmma, wgmma, tcgen05
//
// Most of it is methods of warp and compiler, which share their state; hence one package. What needs none of that is below
// internal: tensorcore (arithmetic and layouts of matrices), shadow (values, vector clocks and races), mbarrier (phases).
