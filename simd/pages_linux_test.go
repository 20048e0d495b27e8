package simd_test

import (
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/simd/simdtest"
	"github.com/wavelane/wavelane/simd"
)

// paged returns n floats that end, or begin, at a page that faults when touched.
func paged(t *testing.T, n int, atEnd bool) []float32 {
	page := os.Getpagesize()
	size := (4*n + page - 1) / page * page
	m, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(m)) })
	require.NoError(t, syscall.Mprotect(m[:page], syscall.PROT_NONE))
	require.NoError(t, syscall.Mprotect(m[page+size:], syscall.PROT_NONE))
	all := unsafe.Slice((*float32)(unsafe.Pointer(&m[page])), size/4)
	if atEnd {
		return all[len(all)-n:]
	}
	return all[:n:n]
}

// Nothing before or after the operands of the functions with assembly of their own is touched.
func TestTransformGuardPages(t *testing.T) {
	inOneThread(t)
	r := newRand(t)
	simdtest.OnEveryTier(t, func(t *testing.T) {
		for i := range 60 {
			t.Run("", func(t *testing.T) { // unmaps at its end
				inPages := func(x []float32) []float32 {
					p := paged(t, len(x), i%2 == 0)
					copy(p, x)
					return p
				}
				rows, cols := 1+r.IntN(70), 1+r.IntN(70)
				x := inPages(numbers(r, rows*cols, true))
				simd.Transpose(paged(t, rows*cols, i%2 == 0), x, rows, cols)
				if n := min(rows, cols); n > 0 {
					x := inPages(x[:n*n])
					simd.Transpose(x, x, n, n)
				}
				c := newConvCase(r)
				c.check(t, inPages(numbers(r, product(c.x), false)), inPages(numbers(r, product(c.w), false)),
					inPages(numbers(r, c.w[0], false)), paged(t, product(c.out), i%2 == 0))
			})
		}
	})
}
