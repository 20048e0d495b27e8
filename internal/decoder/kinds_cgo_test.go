//go:build cgo && !js

package decoder

// kinds of devices that are tested.
var kinds = []string{"cpu", "gpu", "cuda"}
