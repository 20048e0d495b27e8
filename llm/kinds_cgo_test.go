//go:build cgo && !js

package llm_test

// kinds of devices that are tested.
var kinds = []string{"cpu", "gpu", "cuda"}
