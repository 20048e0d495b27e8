//go:build !cgo && !js

package decoder

// kinds of devices that are tested; WebGPU needs cgo.
var kinds = []string{"cpu", "cuda"}
