//go:build !cgo && !js

package llm_test

// kinds of devices that are tested; WebGPU needs cgo.
var kinds = []string{"cpu", "cuda"}
