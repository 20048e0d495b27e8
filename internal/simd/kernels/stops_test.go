//go:build !amd64 && !arm64 && !js

package kernels

// stops: see the generated one of processors with assembly.
var stops map[string]func(c *call) (done int)
