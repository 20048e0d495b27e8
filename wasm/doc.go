// Package wasm is the room for the browser: the library compiled to WebAssembly behind a JavaScript API of typed arrays and
// promises, with its loader, type declarations and demo site.
//
// The JavaScript API is not there yet. The Go packages below it build for GOOS=js already; those of the CPU device and of
// batches are tested there.
package wasm
