//go:build !hardware && !js

package conformance

// cudaSoftware says whether the tests of CUDA take the software GPU.
const cudaSoftware = true
