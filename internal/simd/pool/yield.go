//go:build !js

package pool

// Yield is for platforms where a run would keep others waiting.
func Yield() {}
