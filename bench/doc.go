// Command bench measures wavelane's CPU kernels beside what people would use instead, in one run: every instruction set that
// the machine has, plain Go loops, gonum, viterin/vek, OpenBLAS, BLIS, MKL, ONNX Runtime and ggml where they are installed, and
// two figures of the machine itself, the rate of fused multiply-adds and the bandwidth of a plain read or copy.
//
// All subjects of a case run within each round, those on one thread on the same processor, so that a changing clock and a busy core
// meet all of them alike; the report gives the least time over the rounds, since whatever else the machine does only adds to it. It
// writes text that benchstat reads, JSON, and one HTML page with plots.
//
// It is a module of its own: peers and cgo stay out of the module graph of wavelane's users.
package main
