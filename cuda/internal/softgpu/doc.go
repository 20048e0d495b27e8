// Package softgpu is the driver on the software GPU of package sim, as strict as NVIDIA's: host code that is wrong on hardware
// is wrong here too.
//
//	d := softgpu.New(softgpu.Config{Sim: sim.Config{Checks: sim.AllChecks, Seed: 1}})
//
// # What is as on hardware
//
// The current context belongs to the OS thread. Streams are queues: calls return at once, and memory is read and written when
// the operation runs. Operations of one stream run in order, those of different streams in any, unless events say otherwise;
// stream 0 is a stream like others. What can be checked at the call is: handles, bounds of copies (within one allocation, host
// memory pinned), sizes and shared memory of launches, the parameter block's size. A fault of a kernel comes when it runs; from
// then on every call of the context returns it, queued work is dropped, and only the last release of the context helps. Calls
// that destroy something do so on a dead context too, and return the fault all the same.
//
// MemFree, MemFreeHost and ModuleUnload wait for the work that is queued. New pinned memory, and new memory of the device where
// the software GPU does not check for missing values, is full of 0xff (NaNs). Freed pinned memory is overwritten so, and freed
// memory of the device faults. Addresses of devices and handles are never used again.
//
// A capture in thread-local mode takes launches, copies and memsets. Calls that allocate, free, load, wait or ask, on the
// thread that captures, return CaptureUnsupported and break the capture, whose calls then return CaptureInvalidated. Other
// streams join by waiting for an event recorded in the capture, and have to be joined again before it ends. A graph within a
// graph is CaptureUnsupported.
//
// # What is not
//
// One operation of a device runs at a time, so that kernels of two streams that wait for each other end in a timeout, and calls
// that allocate or load wait until the one that runs has ended. A graph's operations run in the order in which they were captured. Devices cannot access each other's memory; MemcpyPeerAsync copies.
// Overlapping device copies, which hardware leaves undefined, are InvalidValue. The default stream does not wait for others, as
// those made by StreamCreate do not wait for it. Registers of kernels are an estimate from liveness. On systems where Go cannot
// tell OS threads apart (all but Linux and Windows) the current context is the process's, and there is one device at most.
//
// An injected result that is sticky kills the current context as the fault itself would.
package softgpu
