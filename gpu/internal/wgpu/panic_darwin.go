//go:build amd64 || arm64

package wgpu

// intercept does nothing where nobody has tried it.
func intercept(uintptr) bool { return false }

func panicText(uintptr) string { return "the library has panicked" }
