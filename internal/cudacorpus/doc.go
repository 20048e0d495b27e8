// Package cudacorpus tests the workbench of package ptx on CUDA C and Triton kernels: what people write, as their compilers translate it.
//
// The kernels are in testdata, and are compiled when the tests run, by NVRTC and Triton from Python packages that scripts/setup installs
// (requirements.txt), for several architectures. Every file is parsed, printed, optimised, analysed and executed with every check on
// several schedules, and NVIDIA's assembler takes what is printed. Results are those of Go functions beside the tests. Neither the
// analyser nor the software GPU may find anything in kernels that are right; those in testdata/wrong have what is found listed beside them.
package cudacorpus
