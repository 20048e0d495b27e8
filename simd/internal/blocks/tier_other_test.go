//go:build !amd64

package blocks

func bytewise() bool { return false }

func withoutBytewise(f func()) { f() }
