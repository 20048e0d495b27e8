package kernels

import (
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// pages returns memory between two pages that fault when touched.
func pages(t *testing.T, floats int) []float32 {
	page := os.Getpagesize()
	size := (4*floats + page - 1) / page * page
	m, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(m)) })
	require.NoError(t, syscall.Mprotect(m[:page], syscall.PROT_NONE))
	require.NoError(t, syscall.Mprotect(m[page+size:], syscall.PROT_NONE))
	return unsafe.Slice((*float32)(unsafe.Pointer(&m[page])), size/4)
}

// Operands at the very beginning and end of memory: nothing before or after them is touched.
func TestGuardPages(t *testing.T) {
	const most = 257
	eachKernel(t, func(t *testing.T, k *kernel) {
		r := random(t)
		var memory [4][]float32
		for i := range memory {
			memory[i] = pages(t, most)
		}
		for n := range most + 1 {
			tr := newTrial(t, k, r, n, mix(n)%mixes)
			for _, atEnd := range []bool{false, true} {
				slice := func(i int) []float32 {
					if atEnd {
						return memory[i][len(memory[i])-n:]
					}
					return memory[i][:n:n]
				}
				c := call{p: tr.p}
				for j := range k.inputs {
					c.in[j] = slice(1 + j)
					copy(c.in[j], tr.x[j])
				}
				if k.store {
					c.y = slice(0)
				}
				k.run(&c)
				tr.check(t, &c, "beside guard pages")
			}
		}
	})
}

// Conversions beside pages that fault.
func TestHalfGuardPages(t *testing.T) {
	const most = 70
	wide, short := pages(t, most), pages(t, most)
	u16 := unsafe.Slice((*uint16)(unsafe.Pointer(&short[0])), 2*len(short))
	onTiers(t, func(t *testing.T) {
		for _, h := range halves {
			for n := range most {
				for _, end := range []bool{false, true} {
					y, x := wide[:n], u16[:n]
					if end {
						y, x = wide[len(wide)-n:], u16[len(u16)-n:]
					}
					h.widen(y, x)
					h.narrow(x, y)
				}
			}
		}
	})
}

// Softmax of rows beside pages that fault.
func TestSoftmaxGuardPages(t *testing.T) {
	const most = 3 * 70
	from, to := pages(t, most), pages(t, most)
	onTiers(t, func(t *testing.T) {
		for n := 1; n <= 70; n++ {
			rows := 1 + n%3
			SoftmaxRows(to[:rows*n], from[:rows*n], n)
			SoftmaxRows(to[len(to)-rows*n:], from[len(from)-rows*n:], n)
		}
	})
}
