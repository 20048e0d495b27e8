// Package cudacorpus tests the workbench of package ptx on what people write: CUDA C as NVIDIA's compiler and clang translate it, and Python
// as Triton does.
//
// The kernels are in testdata/cuda and testdata/triton. NVRTC, clang and Triton compile them when the tests run, for several architectures
// and without a GPU; scripts/setup installs them, and ptxas, from Python packages (cuda.txt, triton.txt) and the system's. Every module is
// parsed, printed, optimised, analysed and executed with every check on several schedules; results are those of Go functions beside the
// tests. ptxas takes what is printed and optimised, and makes the same machine code of what is printed as of the original. Neither the
// analyser nor the software GPU may find anything. In the kernels of testdata/mistakes the software GPU has to find the mistake that is in
// each. Tests take a third of the files for two architectures, by the seed; make proofs takes all, and compares what it has seen with
// docs/ptx-corpus.md.
package cudacorpus
