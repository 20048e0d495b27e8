//go:build !linux

package cpu

func hugePages([]uint64) {}
