//go:build !js

package pool

// Breathe is for platforms where a run would keep others waiting.
func Breathe() {}
