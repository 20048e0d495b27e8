package gemm

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// fenced returns n elements that end where memory ends: what follows faults on any access.
func fenced(t *testing.T, n int) []float32 {
	page := syscall.Getpagesize()
	size := roundUp(4*n, page)
	m, err := syscall.Mmap(-1, 0, size+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(m)) })
	require.NoError(t, syscall.Mprotect(m[size:], syscall.PROT_NONE))
	return unsafe.Slice((*float32)(unsafe.Pointer(&m[size-4*n])), n)
}

// TestPagesBehind: no operand is read or written past its end.
func TestPagesBehind(t *testing.T) {
	inOneThread(t)
	tiers(t, func(t *testing.T) {
		r := random(t)
		a, b, c := fenced(t, 1<<16), fenced(t, 1<<16), fenced(t, 1<<16)
		for range 400 {
			m, n, k := 1+r.IntN(60), 1+r.IntN(70), 1+r.IntN(40)
			switch r.IntN(8) {
			case 0:
				m = 113 + r.IntN(50)
			case 1:
				m = 1
			case 2:
				n = 1
			}
			p := newProblem(r, m, n, k, 1, layout(r.IntN(3)), layout(r.IntN(3)), 1, float32(r.IntN(2)))
			p.A, p.B, p.C = atEnd(a, p.A), atEnd(b, p.B), atEnd(c, p.C)
			p.random(r)
			Run(&p.Product, &p.Operands, 1)
			p.check(t)
		}
	})
}

// atEnd copies x to the end of memory.
func atEnd(memory, x []float32) []float32 {
	to := memory[len(memory)-len(x):]
	copy(to, x)
	return to
}

// TestTilesAtEnd: micro-kernels and packing touch nothing past operands either.
func TestTilesAtEnd(t *testing.T) {
	inOneThread(t)
	tiers(t, func(t *testing.T) {
		r, s := random(t), active()
		a, b, c := fenced(t, 1<<12), fenced(t, 1<<12), fenced(t, 1<<12)
		for range 2000 {
			tileAtEnd(r, s, a, b, c)
		}
	})
}

func tileAtEnd(r *rand.Rand, s *shape, a, b, c []float32) {
	cols, k := 1+r.IntN(s.nr), 1+r.IntN(80)
	if !s.masked {
		cols = roundUp(cols, s.lanes)
	}
	rows := 1 + r.IntN(s.most(cols))
	wide := roundUp(cols, s.lanes)
	t := Tile{K: k, AI: 1, AK: rows, BK: wide, LDC: cols, Rows: rows, Cols: cols, Alpha: 1, Beta: float32(r.IntN(2)), Panels: 1}
	if r.IntN(2) == 0 {
		t.AI, t.AK = k, 1
	}
	t.A, t.B, t.C = &a[len(a)-rows*k], &b[len(b)-k*wide], &c[len(c)-rows*cols]
	s.tile(&t)
}

// TestHalvesAtEnd: nothing is read past a matrix of 16 bits.
func TestHalvesAtEnd(t *testing.T) {
	inOneThread(t)
	tiers(t, func(t *testing.T) {
		r, memory := random(t), fenced(t, 1<<14)
		bits := unsafe.Slice((*uint16)(unsafe.Pointer(&memory[0])), 2*len(memory))
		for range 300 {
			p := newProblem(r, 1, 1+r.IntN(70), 1+r.IntN(70), 1, rowMajor, layout(r.IntN(2)), 1, 0)
			if r.IntN(2) == 0 {
				p = newProblem(r, 1+r.IntN(70), 1, 1+r.IntN(70), 1, layout(r.IntN(2)), rowMajor, 1, 0)
			}
			pl := NewPlan(&p.Product, 1)
			half := func(x []float32) Half {
				h := narrowed(x, r.IntN(2) == 0)
				to := bits[len(bits)-len(x):]
				copy(to, h.Bits)
				return Half{to, h.Brain}
			}
			o := p.Operands
			if a, _ := pl.Halves(); a {
				o.HalfA = half(p.A)
				o.A = nil
			} else {
				o.HalfB = half(p.B)
				o.B = nil
			}
			p.solve(r)
			planned(&pl, &o)
			p.check(t)
		}
	})
}

// TestWindowsAtEnd: kernels of convolutions touch nothing past operands.
func TestWindowsAtEnd(t *testing.T) {
	inOneThread(t)
	tiers(t, func(t *testing.T) {
		r := random(t)
		x, y, w := fenced(t, 1<<14), fenced(t, 1<<14), fenced(t, 1<<10)
		copy(x, small(r, len(x)))
		for range 1000 {
			n, rows, stride := 1+r.IntN(70), 1+r.IntN(9), 1+r.IntN(3)
			xstep := n*stride + r.IntN(5)
			Spread(y[len(y)-rows*n:], x[len(x)-(rows-1)*xstep-(n-1)*stride-1:], n, rows, n, xstep, stride, 0)
			if size := 3 + 2*r.IntN(3); HasFilter(size, stride) {
				offsets := make([]int32, size)
				offsets[size-1] = int32(r.IntN(9))
				from := len(x) - ((rows-1)*stride+size-1)*xstep - int(offsets[size-1]) - n
				Filter(y[len(y)-rows*n:], x[from:], w[len(w)-size*size:], offsets, n, rows, n, xstep, stride)
			}
			s, gap := active(), r.IntN(5)
			cols := s.lanes + 1 + r.IntN(s.lanes)
			first := 1 + r.IntN(cols-1)
			at := r.IntN(9)
			from, to := x[len(x)-at-gap-cols:], y[len(y)-4*s.lanes:]
			if !s.gatherTwo(to, from, []int32{0, int32(at)}, first, gap, cols) {
				continue
			}
			for i, got := range to {
				tap, j, want := i/(2*s.lanes), i%(2*s.lanes), float32(0)
				if j < first {
					want = from[tap*at+j]
				} else if j < cols {
					want = from[tap*at+gap+j]
				}
				require.Equal(t, want, got, "tap %d, lane %d of %d, %d of them and %d further", tap, j, cols, first, gap)
			}
		}
	})
}
