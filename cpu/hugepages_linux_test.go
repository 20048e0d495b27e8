package cpu

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Where the system has large pages, blocks that are worth them are marked for them.
func TestHugePages(t *testing.T) {
	m := newMemory(0)
	defer m.close()
	b, err := m.Take(4 * hugeSize)
	require.NoError(t, err)
	defer b.release()
	middle := uint64(uintptr(unsafe.Pointer(&b.data[len(b.data)/2])))
	maps, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	within, marked := false, false
	for line := range bytes.Lines(maps) {
		var from, to uint64
		if n, _ := fmt.Sscanf(string(line), "%x-%x ", &from, &to); n == 2 {
			within = from <= middle && middle < to
		}
		marked = marked || within && bytes.HasPrefix(line, []byte("VmFlags:")) && bytes.Contains(line, []byte(" hg"))
	}
	_, err = os.Stat("/sys/kernel/mm/transparent_hugepage/enabled")
	require.Equal(t, err == nil, marked)
}
