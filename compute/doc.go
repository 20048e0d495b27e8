// Package compute is the vocabulary that devices, batches and programs share: element types, options of operations,
// errors, tensors and futures. It depends on nothing.
//
// Most programs use it through devices: [Ops] is embedded in every device and carries one method per operation of the
// catalogue, [Future] is what the asynchronous ones return, [Tensor] is data that stays on a device.
//
// # Concurrency
//
// Values of this package are safe for concurrent use unless their comment says otherwise. A slice passed to an
// operation belongs to that operation until its future is done.
//
// # Memory
//
// Nothing here holds device memory except a [Tensor], which the caller closes.
//
// # Platforms
//
// Everywhere. Methods that block the calling goroutine on a device do not exist for GOOS=js, where only their
// asynchronous forms do: blocking inside a JavaScript callback would stop the event loop that has to finish the work.
package compute
