//go:build !amd64 && !arm64

package blocks

func bytewise() bool { return false }

func withoutBytewise(f func()) { f() }
