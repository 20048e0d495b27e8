package x86

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// filterRows is the rows of sums that a filter keeps in registers, filterCopies the vectors of each where there are so many.
const (
	filterRows   = 4
	filterCopies = 2
)

// filters are the kernels of convolutions whose channels are apart, for square windows of the usual sizes. Rows of the result are one or
// two lines apart.
func (t *windowTier) filters() {
	for _, k := range [][2]int{{3, 1}, {3, 2}, {5, 1}, {5, 2}, {7, 1}} {
		f := &filter{windowTier: t, size: k[0], stride: k[1]}
		f.write()
	}
}

// filter writes one of them.
//
// Floor, for four rows of two vectors of the 3×3 filter: 72 multiply-adds of 36 vectors of lines and 9 weights that are loaded, where
// each tap by itself loads 72 vectors and 36 weights. With the stride, 54 vectors and 9 weights. Most of the vectors straddle lines of L1,
// which makes a load of 64 bytes two, and one of 32 bytes one and a half: with AVX2 the multiply-add ports limit it, with AVX-512 on Zen 4,
// which multiplies and loads 64 bytes a cycle, both do.
type filter struct {
	*windowTier
	size, stride int

	y, x, w, offsets, n reg.GPVirtual
	line, line3         reg.GPVirtual // one line and three, in bytes
}

func (f *filter) name() string {
	if f.stride > 1 {
		return fmt.Sprintf("filter%dby%d", f.size, f.stride)
	}
	return fmt.Sprintf("filter%d", f.size)
}

func (f *filter) write() {
	f.begin(f.name(), "func(y, x, w *float32, offsets *int32, n, rows, ystep, xstep int)", fmt.Sprintf(
		"sets y[r*ystep+j] to the sum of w[ky*%[1]d+kx]·x[(%[2]d*r+ky)*xstep+offsets[kx]+j] over kx < %[1]d, and in it ky < %[1]d, for j < n and r < rows.",
		f.size, f.stride))
	f.w, f.offsets = f.argument("w"), f.argument("offsets")
	f.line, f.line3 = f.argument("xstep"), f.c.GP64()
	f.c.SHLQ(operand.U8(2), f.line)
	f.c.LEAQ(operand.Mem{Base: f.line, Index: f.line, Scale: 2}, f.line3)
	f.c.Label("rows")
	f.c.CMPQ(f.slot("rows"), operand.U8(filterRows))
	f.c.JL(operand.LabelRef("row"))
	f.across(filterRows)
	f.c.Label("row")
	f.c.CMPQ(f.slot("rows"), operand.U8(0))
	f.c.JE(operand.LabelRef("end"))
	f.across(1)
	f.c.Label("end")
	f.end()
}

// across computes some rows, and goes on at "rows" or, for a single one, at "row".
func (f *filter) across(rows int) {
	f.y, f.x, f.n = f.argument("y"), f.argument("x"), f.argument("n")
	done := fmt.Sprintf("done%d", rows)
	for _, width := range f.widths {
		if width == 2 {
			continue
		}
		label := func(name string) string { return fmt.Sprintf("%s%dx%d", name, rows, width) }
		if width > 1 {
			f.c.CMPQ(f.n, operand.U8(width))
			f.c.JL(operand.LabelRef(label("below")))
		}
		if rows > 1 && width > 1 {
			f.c.Label(label("pair"))
			f.c.CMPQ(f.n, operand.U8(filterCopies*width))
			f.c.JL(operand.LabelRef(label("one")))
			f.sums(rows, width, filterCopies)
			f.move1(filterCopies * width)
			f.c.JMP(operand.LabelRef(label("pair")))
		}
		f.c.Label(label("one"))
		f.c.TESTQ(f.n, f.n)
		f.c.JLE(operand.LabelRef(done))
		if width == 16 { // half a vector takes half the time where the processor has units of 256 bits
			f.c.CMPQ(f.n, operand.U8(8))
			f.c.JLE(operand.LabelRef(fmt.Sprintf("one%dx8", rows)))
		}
		if width > 1 { // the last vector overlaps the one before it
			back, none := f.c.GP64(), f.c.GP64()
			f.c.MOVQ(f.n, back)
			f.c.XORQ(none, none)
			f.c.SUBQ(operand.U8(width), back)
			f.c.CMOVQGT(none, back)
			f.c.LEAQ(operand.Mem{Base: f.x, Index: back, Scale: 4}, f.x)
			f.c.LEAQ(operand.Mem{Base: f.y, Index: back, Scale: 4}, f.y)
			f.c.SUBQ(back, f.n)
		}
		f.sums(rows, width, 1)
		f.move1(width)
		f.c.JMP(operand.LabelRef(label("one")))
		f.c.Label(label("below"))
	}
	f.c.Label(done)
	step := f.argument("ystep")
	f.c.SHLQ(operand.U8(2), step)
	if rows > 1 {
		f.c.IMUL3Q(operand.U8(rows), step, step)
	}
	f.c.ADDQ(step, f.slot("y"))
	f.c.IMUL3Q(operand.U8(rows*f.stride), f.line, step)
	f.c.ADDQ(step, f.slot("x"))
	f.c.SUBQ(operand.U8(rows), f.slot("rows"))
	if rows > 1 {
		f.c.JMP(operand.LabelRef("rows"))
	} else {
		f.c.JMP(operand.LabelRef("row"))
	}
}

// move1 moves on by elements of a row.
func (f *filter) move1(elements int) {
	f.c.ADDQ(operand.U32(4*elements), f.x)
	f.c.ADDQ(operand.U32(4*elements), f.y)
	f.c.SUBQ(operand.U32(elements), f.n)
}

// sums computes some vectors of some rows: each vector of a line is loaded once for all rows that it counts for.
func (f *filter) sums(rows, width, copies int) {
	loop := fmt.Sprintf("by%dx%dx%d", rows, width, copies)
	lines := (rows-1)*f.stride + f.size
	sums := make([][]reg.VecVirtual, rows)
	for r := range sums {
		for range copies {
			v := f.vector(width)
			f.zero(v)
			sums[r] = append(sums[r], v)
		}
	}
	column := f.c.GP64()
	f.c.XORQ(column, column)
	bases := make([]reg.GPVirtual, (lines+3)/4)
	for i := range bases {
		bases[i] = f.c.GP64()
	}
	weights := make([]reg.VecVirtual, f.size)
	for i := range weights {
		weights[i] = f.vector(width)
	}
	f.c.Label(loop)
	f.c.MOVLQSX(operand.Mem{Base: f.offsets, Index: column, Scale: 4}, bases[0])
	f.c.LEAQ(operand.Mem{Base: f.x, Index: bases[0], Scale: 4}, bases[0])
	for i := 1; i < len(bases); i++ {
		f.c.LEAQ(operand.Mem{Base: bases[i-1], Index: f.line, Scale: 4}, bases[i])
	}
	for i := range weights {
		f.broadcast(width, operand.Mem{Base: f.w, Index: column, Scale: 4, Disp: 4 * i * f.size}, weights[i])
	}
	for line := range lines {
		for c := range copies {
			at := operand.Mem{Base: bases[line/4], Disp: 4 * width * c}
			switch line % 4 {
			case 1:
				at.Index, at.Scale = f.line, 1
			case 2:
				at.Index, at.Scale = f.line, 2
			case 3:
				at.Index, at.Scale = f.line3, 1
			}
			var uses []int
			for r := range rows {
				if k := line - r*f.stride; k >= 0 && k < f.size {
					uses = append(uses, r)
				}
			}
			var from operand.Op = at
			if len(uses) > 1 {
				v := f.vector(width)
				f.move(width, at, v)
				from = v
			}
			for _, r := range uses {
				if width == 1 {
					f.c.VFMADD231SS(from, weights[line-r*f.stride], sums[r][c])
				} else {
					f.c.VFMADD231PS(from, weights[line-r*f.stride], sums[r][c])
				}
			}
		}
	}
	f.c.INCQ(column)
	f.c.CMPQ(column, operand.U8(f.size))
	f.c.JL(operand.LabelRef(loop))
	to, step := f.c.GP64(), f.argument("ystep")
	f.c.MOVQ(f.y, to)
	for r := range rows {
		for c := range copies {
			f.move(width, sums[r][c], operand.Mem{Base: to, Disp: 4 * width * c})
		}
		if r+1 < rows {
			f.c.LEAQ(operand.Mem{Base: to, Index: step, Scale: 4}, to)
		}
	}
}
