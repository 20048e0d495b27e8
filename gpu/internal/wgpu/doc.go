// Package wgpu calls wgpu-native, the C library under WebGPU on desktop systems, without cgo: a library that is loaded at run time,
// or the static archive in programs that are built with cgo. Both are called alike, through addresses of functions.
//
// # Which library
//
// [Find] takes, in this order, the library of a path, of the environment variable WAVELANE_WGPU, beside the executable, of the
// system's search path, and the archive. Loaded ones have the name [FileName]. The library says its version, and each version that
// fits has an entry in a table (abi.go) of what differs; any other is an error.
//
// # Calls
//
// Everything that C reads or writes lies in a [Frame], which is on the heap, where nothing moves. [Begin] has the errors of the calls
// that follow put into the frame: the library reports each on the thread of the call that caused it. So are its panics, where they can be caught (panic.go);
// elsewhere they end the process.
package wgpu
