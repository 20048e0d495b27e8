package cpu

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Blocks that are worth large pages are marked for them, if the system marks memory that the test asks for itself: emulators do not.
func TestHugePages(t *testing.T) {
	m := newMemory(0)
	defer m.close()
	b, err := m.Take(4 * hugeSize)
	require.NoError(t, err)
	defer b.release()
	own, err := syscall.Mmap(-1, 0, 4*hugeSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	defer syscall.Munmap(own)
	syscall.Madvise(own, syscall.MADV_HUGEPAGE)
	require.Equal(t, marked(&own[2*hugeSize]), marked((*byte)(unsafe.Pointer(&b.data[len(b.data)/2]))))
}

// marked reports whether the system says that memory is to have large pages.
func marked(p *byte) bool {
	maps, _ := os.ReadFile("/proc/self/smaps") // sandboxes may have none
	within := false
	for line := range bytes.Lines(maps) {
		var from, to uintptr
		if n, _ := fmt.Sscanf(string(line), "%x-%x ", &from, &to); n == 2 {
			within = from <= uintptr(unsafe.Pointer(p)) && uintptr(unsafe.Pointer(p)) < to
		}
		if within && bytes.HasPrefix(line, []byte("VmFlags:")) {
			return bytes.Contains(line, []byte(" hg"))
		}
	}
	return false
}
