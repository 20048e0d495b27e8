package tensorcore

import (
	"slices"

	"github.com/wavelane/wavelane/ptx/ir"
)

// mmaDepths are the values of k, for m16n8 and m8n8, by the bits of A's elements.
var mmaDepths = map[int]struct{ tall, flat []int }{
	1:  {[]int{128, 256}, []int{128}},
	4:  {[]int{32, 64}, []int{32}},
	8:  {[]int{16, 32}, []int{16}},
	16: {[]int{8, 16}, nil},
	32: {[]int{4, 8}, nil},
	64: {[]int{4, 8, 16}, []int{4}},
}

// HasMMA tells whether mma has the shape for elements of type t in A. Those newer than sm_90 are left out, and Volta's, m8n8k4 of f16, which
// is several products.
func HasMMA(m, n, k int, t ir.Type) bool {
	s := mmaDepths[t.Bits()]
	return n == 8 && (m == 16 && slices.Contains(s.tall, k) || m == 8 && slices.Contains(s.flat, k))
}

// HasWgmma tells whether wgmma has the shape for elements of type t in A.
func HasWgmma(m, n, k int, t ir.Type) bool {
	if t.Bits() < 8 || t == ir.F64 || m != 64 || n%8 != 0 || n < 8 || n > 256 || k*t.Bits() != 256 {
		return false
	}
	return t.IsFloat() || n <= 32 || n%16 == 0
}

// HasWmma tells whether wmma has the shape for elements of type t in A and B.
func HasWmma(m, n, k int, t ir.Type) bool {
	s := [3]int{m, n, k}
	switch t {
	case ir.F16, ir.BF16, ir.U8, ir.S8:
		return s == [3]int{16, 16, 16} || s == [3]int{32, 8, 16} || s == [3]int{8, 32, 16}
	case ir.TF32:
		return s == [3]int{16, 16, 8}
	case ir.F64:
		return s == [3]int{8, 8, 4}
	}
	return false
}

// WmmaFragment is how the registers of a warp hold a matrix of wmma.
//
// PTX does not say how they do, so here fragments lie in the order of memory: element e of lane l is number l·E+e of the matrix (E
// elements to a lane), by rows or columns as the opcode's layout says for A and B, by rows for C and D. Where there is room for more
// than the matrix has, as on hardware, elements come again. A product that names another layout than the load gets another matrix, as
// on hardware.
type WmmaFragment struct {
	Rows, Cols int
	each       int // elements to a lane
	role       byte
	order      ir.Mod
}

// NewWmmaFragment returns the fragment of a matrix with elements of type t, in the role of 'a', 'b', 'c' or 'd'. The order is ir.Row or
// ir.Col.
func NewWmmaFragment(role byte, m, n, k int, t ir.Type, order ir.Mod) WmmaFragment {
	f := WmmaFragment{Rows: m, Cols: n, role: role, order: order}
	switch role {
	case 'a':
		f.Cols = k
	case 'b':
		f.Rows = k
	}
	width := max(32, t.Bits())
	regs := max(1, f.Rows*f.Cols*t.Bits()/width/32)
	if (role == 'a' || role == 'b') && t == ir.F16 {
		regs = 8
	}
	f.each = regs * width / t.Bits()
	return f
}

// Elements is the number of elements that the registers have room for.
func (f *WmmaFragment) Elements() int { return f.each * 32 }

// Element is the index in the matrix, as [Product] takes it, of element e of a lane.
func (f *WmmaFragment) Element(lane, e int) int {
	i := (lane*f.each + e) % (f.Rows * f.Cols)
	row, col := i/f.Cols, i%f.Cols
	if f.order == ir.Col {
		row, col = i%f.Rows, i/f.Rows
	}
	if f.role == 'b' {
		return col*f.Rows + row
	}
	return row*f.Cols + col
}
