package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

// sparseForm is a form of mma.sp with the number of its selectors.
type sparseForm struct {
	k, selectors   int
	ta, tb, tc, td ir.Type
	mods           string
}

func sparseForms() []sparseForm {
	return []sparseForm{
		{16, 4, ir.F16, ir.F16, ir.F32, ir.F32, ""}, {16, 4, ir.F16, ir.F16, ir.F16, ir.F16, ""},
		{32, 2, ir.F16, ir.F16, ir.F32, ir.F32, ""}, {32, 2, ir.F16, ir.F16, ir.F16, ir.F16, ""},
		{16, 4, ir.BF16, ir.BF16, ir.F32, ir.F32, ""}, {32, 2, ir.BF16, ir.BF16, ir.F32, ir.F32, ""},
		{8, 4, ir.TF32, ir.TF32, ir.F32, ir.F32, ""}, {16, 2, ir.TF32, ir.TF32, ir.F32, ir.F32, ""},
		{64, 1, ir.E4M3, ir.E5M2, ir.F32, ir.F32, ""},
		{32, 2, ir.S8, ir.U8, ir.S32, ir.S32, ""}, {32, 2, ir.U8, ir.U8, ir.S32, ir.S32, ".satfinite"},
		{64, 1, ir.S8, ir.S8, ir.S32, ir.S32, ""}, {64, 1, ir.U8, ir.S8, ir.S32, ir.S32, ".satfinite"},
		{64, 2, ir.S4, ir.U4, ir.S32, ir.S32, ""}, {128, 1, ir.U4, ir.U4, ir.S32, ir.S32, ""},
		{128, 1, ir.S4, ir.S4, ir.S32, ir.S32, ".satfinite"},
	}
}

// place is the lane and the bit of a register where the metadata of a column begins, as the manual's figures of each shape have it.
func (f *sparseForm) place(selector, row, col int) (lane, bit int) {
	group, below := row%8*4, row/8
	switch {
	case f.ta == ir.TF32 && f.k == 8:
		return group + selector, 16*below + col/2*4
	case f.ta == ir.TF32:
		return group + 2*selector + col/8, 16*below + col%8/2*4
	case f.ta.Bits() == 16 && f.k == 16:
		return group + selector, 16*below + col/4*4
	case f.ta.Bits() == 16:
		return group + 2*selector + col/16, 16*below + col%16/4*4
	case f.ta.Bits() == 8 && f.k == 32:
		return group + 2*selector + below, col / 4 * 4
	case f.ta.Bits() == 8:
		return group + below + col/32*2, col % 32 / 4 * 4
	case f.k == 64:
		return group + 2*selector + below, col / 8 * 4
	}
	return group + below + col/64*2, col % 64 / 8 * 4
}

// choose makes the metadata of a random choice of elements, and the columns of the stored ones, by rows.
func (f *sparseForm) choose(rng *rand.Rand, selector int, ascending bool) (words [32]uint32, columns []int) {
	two := func() (int, int) {
		x := rng.Perm(4)
		if ascending && x[0] > x[1] {
			x[0], x[1] = x[1], x[0]
		}
		return x[0], x[1]
	}
	step := map[int]int{32: 2, 16: 4, 8: 4, 4: 8}[f.ta.Bits()]
	for row := range 16 {
		for col := 0; col < f.k; col += step {
			lane, bit := f.place(selector, row, col)
			x, y := two()
			switch step {
			case 2:
				columns = append(columns, col+x/2)
				words[lane] |= []uint32{0b0100, 0b1110}[x/2] << bit
				continue
			case 4:
				columns = append(columns, col+x, col+y)
			case 8:
				columns = append(columns, col+2*x, col+2*x+1, col+2*y, col+2*y+1)
			}
			words[lane] |= uint32(x|y<<2) << bit
		}
	}
	return words, columns
}

// kernel is one in which only the lanes of the selector have metadata.
func (f *sparseForm) kernel(op string, selector int, has uint32, a, b, c, d *fragments) string {
	text := mmaKernel(op, a, b, c, d)
	text = strings.Replace(text, ".param .u64 d)", ".param .u64 d, .param .u64 e)", 1)
	before, after, _ := strings.Cut(text, op)
	operands, after, _ := strings.Cut(after, ";")
	return before + fmt.Sprintf(`.reg .b32 %%e, %%bit; .reg .pred %%has;
shr.u32 %%bit, %d, %%t; and.b32 %%bit, %%bit, 1; setp.ne.u32 %%has, %%bit, 0;
ld.param.u64 %%p, [e]; mad.wide.u32 %%q, %%t, 4, %%p;
@%%has ld.global.b32 %%e, [%%q];
`, int32(has)) + op + operands + fmt.Sprintf(", %%e, %d;", selector) + after
}

func (f *sparseForm) op(root string) string {
	return fmt.Sprintf("%s.sync.aligned.m16n8k%d.row.col%s.%v.%v.%v.%v", root, f.k, f.mods, f.td, f.ta, f.tb, f.tc)
}

func lanesOf(words [32]uint32) (has uint32) {
	for lane, w := range words {
		if w != 0 {
			has |= 1 << lane
		}
	}
	return has
}

func bytesOf(words [32]uint32) []byte {
	b := make([]byte, 4*len(words))
	for i, w := range words {
		put(b, ir.B32, i, uint64(w))
	}
	return b
}

// TestSparse: a sparse matrix times another one is what the matrix with its zeros gives.
func TestSparse(t *testing.T) {
	rng := ptxtest.Random(t)
	for _, f := range sparseForms() {
		for _, root := range []string{"mma.sp", "mma.sp::ordered_metadata"} {
			for selector := range f.selectors {
				op := f.op(root)
				fa, _, _ := mmaFragments(16, f.k/2, f.ta, f.tc)
				_, fb, fc := mmaFragments(16, f.k, f.tb, f.tc)
				_, _, fd := mmaFragments(16, f.k, f.ta, f.td)
				a, va := matrix(rng, f.ta, 16*f.k/2)
				b, vb := matrix(rng, f.tb, 8*f.k)
				c, vc := matrix(rng, f.tc, 16*8)
				words, columns := f.choose(rng, selector, root != "mma.sp")
				full := make([]float64, 16*f.k)
				for i, col := range columns {
					full[i/(f.k/2)*f.k+col] = va[i]
				}
				r := newRig(t, sim.Config{Checks: sim.AllChecks}, f.kernel(op, selector, lanesOf(words), fa, fb, fc, fd))
				r.bytes(fa.pack(a, f.ta)).bytes(fb.pack(b, f.tb)).bytes(fc.pack(c, f.tc)).out(fd.regs * 32 * fd.width).bytes(bytesOf(words))
				require.NoError(t, r.launch(threads(32)), op)
				want, size := gemm(16, 8, f.k, full, byRows(vb, f.k, 8), vc)
				for i, v := range want {
					switch {
					case f.td == ir.S32 && f.mods != "":
						want[i] = min(max(v, math.MinInt32), math.MaxInt32)
					case f.td == ir.S32:
						want[i] = float64(int32(int64(v)))
					}
				}
				near(t, fd.unpack(r.read(3), f.td, 16*8), f.td, want, size, op)
			}
		}
	}
}

// TestSparseFaults: metadata that means nothing, metadata without value, and infinities where A has no elements.
func TestSparseFaults(t *testing.T) {
	rng := ptxtest.Random(t)
	f := sparseForms()[0]
	fa, _, _ := mmaFragments(16, f.k/2, f.ta, f.tc)
	_, fb, fc := mmaFragments(16, f.k, f.tb, f.tc)
	a, _ := matrix(rng, f.ta, 16*f.k/2)
	b, _ := matrix(rng, f.tb, 8*f.k)
	c, _ := matrix(rng, f.tc, 16*8)
	run := func(root string, words [32]uint32, has uint32, b []byte) ([]byte, error) {
		r := newRig(t, sim.Config{Checks: sim.AllChecks}, f.kernel(f.op(root), 2, has, fa, fb, fc, fc))
		r.bytes(fa.pack(a, f.ta)).bytes(fb.pack(b, f.tb)).bytes(fc.pack(c, f.tc)).out(fc.regs * 32 * fc.width).bytes(bytesOf(words))
		err := r.launch(threads(32))
		if err != nil {
			return nil, err
		}
		return r.read(3), nil
	}
	words, _ := f.choose(rng, 2, true)
	_, err := run("mma.sp", words, lanesOf(words)&^0x40, b)
	faults(t, err, sim.Uninitialized)
	bad := words
	bad[6] = words[6] &^ 0xf // both indices 0
	_, err = run("mma.sp", bad, lanesOf(words), b)
	require.ErrorContains(t, err, "indices that mean nothing")
	require.Equal(t, 6, faults(t, err, sim.BadOperand).Thread.X)
	bad[6] |= 0b0011 // 3, then 0
	_, err = run("mma.sp::ordered_metadata", bad, lanesOf(words), b)
	require.ErrorContains(t, err, "ascending")
	faults(t, err, sim.BadOperand)
	_, err = run("mma.sp", bad, lanesOf(words), b)
	require.NoError(t, err)
	for lane := range words { // the first two of four everywhere
		if words[lane] != 0 {
			words[lane] = 0x44444444
		}
	}
	for i := range 8 * f.k {
		if i%4 > 1 {
			b[2*i], b[2*i+1] = 0, 0x7c
		}
	}
	got, err := run("mma.sp", words, lanesOf(words), b)
	require.NoError(t, err)
	for i := range 16 * 8 {
		require.False(t, math.IsInf(number(got, ir.F32, i), 0) || math.IsNaN(number(got, ir.F32, i)))
	}
}
