// Package ptx is the room for NVIDIA code in pure Go: a typed builder of PTX text, an analyser that checks it, a software GPU
// that executes it in tests on any machine, and the lowerings of the catalogue to it.
//
// None of it is there yet. Package cuda will execute on hardware what this package returns.
package ptx
