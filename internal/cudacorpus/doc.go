// Package cudacorpus tests the workbench of package ptx on CUDA C: what people write, as NVIDIA's compiler translates it.
//
// The kernels are in testdata/cuda. NVRTC compiles them when the tests run, for several architectures; scripts/setup installs it and
// ptxas from Python packages (requirements.txt). Every file is parsed, printed, optimised, analysed and executed with every check on several
// schedules; results are those of Go functions beside the tests. ptxas takes what is printed and optimised, and makes the same machine
// code of what is printed as of the original. Neither the analyser nor the software GPU may find anything. Tests take a third of the files
// for two architectures, by the seed; make proofs takes all for five.
package cudacorpus
