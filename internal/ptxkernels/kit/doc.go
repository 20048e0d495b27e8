// Package kit is what the families of PTX kernels share: a step under lowering with its launches, copies, fills and scratch memory
// ([Step]); kernels and their modules ([Kernel], [Family], [JITModule]); the host's side of prologues and epilogues; steps that are
// made of other steps ([Step.Call]).
package kit
