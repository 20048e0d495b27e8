// Package wgslkernels maps the steps of programs to dispatches of WGSL shaders: text, bindings, workgroup sizes and grids. [Lower]
// looks up a step's entry in one table. It touches no GPU, so that its results can be inspected anywhere; package gpu executes them.
//
// Kernels are small values made on demand; devices cache pipelines by their keys. The text uses only what WebGPU's first edition
// offers: no override constants, no subgroups, no enable directives. Kernels for devices whose
// [wgsl.Caps] have further features are the exception.
package wgslkernels
