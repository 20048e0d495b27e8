//go:build !amd64 && !arm64 && !js

package blocks

func bytewise() bool { return false }

func withoutBytewise(f func()) { f() }
