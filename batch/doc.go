// Package batch records chains of operations and runs each chain as one program: one upload, one submission, one readback.
//
//	b := batch.New(dev)
//	x := b.Upload(pixels, h, w)
//	out := b.Read(b.Scale(b.ReLU(x), 0.5))
//	err := b.Run(ctx) // the first error of recording surfaces here too
//	use(out.Float32s())
//
// Nothing runs while a batch is recorded: its methods check shapes, append steps and return values, which are handles.
// The first error sticks, names the line that caused it and is returned by Err, Compile and Run; everything recorded after
// it is ignored, so calls may be nested without checking each.
//
// A batch that runs often is compiled once: [Batch.Compile] returns a [Plan], which replays without recording again, with other
// inputs ([Plan.SetInput]), tensors ([Plan.SetTensor]) and scalars ([Batch.Vary], [Plan.SetScalar]), and on another device after a
// loss ([Plan.Recompile]).
//
// Batches are parts of others through [Batch.Parameter], [Batch.Return], [Batch.Include] and [Batch.Loop].
//
// # What is compiled
//
// Equal steps are computed once, and steps whose results nothing uses are dropped. Chains and trees of elementwise steps
// become one pass over memory, and become prologues of reductions and rows or epilogues of products where the device can do
// that: [Plan.String] lists the compiled steps, [Plan.Dot] draws them, [Plan.Code] writes the code of GPUs, and
// [WithoutFusion] leaves steps as they were recorded. A device that routes programs chooses another one for each plan;
// [Plan.Explain] says why.
//
// # Several processes and devices
//
// [Batch.AllReduce] and the other collectives are steps that the members of a [Group] carry out together, each with a batch of its own.
//
// # Watching
//
// [WithGuard] and [Batch.Guard] find the first step with NaN, infinities or overflow, [Compare] the first step in which two devices
// disagree, [WithDeterminismCheck] differences between two runs. [WithProfile] measures each step: a table, JSON, or a trace for
// Perfetto.
//
// Any device of this module works.
//
// # Concurrency
//
// A batch belongs to one goroutine. A plan may be run from any goroutine, one run at a time; [Plan.Fork] makes plans for runs at
// the same time. Devices may serve many batches and plans at once.
//
// # Memory
//
// Slices given to Upload are read when the batch runs, not when it is recorded, and must not change until the run is done.
// Intermediate values live on the device during a run, and share memory where they are not needed at the same time:
// [Plan.Memory] tells how much a run takes, [WithMemoryLimit] bounds it. Results are allocated once per plan and overwritten
// by each run. Tensors made by Keep belong to the caller once [Kept.Tensor] has returned them; a run closes those of the run
// before that nobody took.
//
// # Platforms
//
// Everywhere, without cgo. The Run methods block and do not exist for GOOS=js; use Start and await its future.
package batch
