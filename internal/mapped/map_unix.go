//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package mapped

import (
	"os"
	"syscall"
)

// mapFile returns nil if the file cannot be mapped.
func mapFile(f *os.File, size int) []byte {
	b, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil
	}
	return b
}

func unmap(b []byte) error { return syscall.Munmap(b) }
