package x86

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// spreads are the kernels that copy lines of a convolution's operand, or every second element of them. Loads and stores limit them: of
// short lines the last vector overlaps the one before it. What lies ahead of what is read, of the next channel, is asked for meanwhile.
func (t *windowTier) spreads() {
	t.spread(1)
	t.spread(2)
}

func (t *windowTier) spread(stride int) {
	doc := "sets y[r*ystep+j] = x[r*xstep+j] for j < n and r < rows; n and rows are not 0."
	if stride == 2 {
		doc = "sets y[r*ystep+j] = x[r*xstep+2*j] for j < n and r < rows, reading no more of x; n and rows are not 0."
	}
	t.begin(fmt.Sprintf("spread%d", stride), "func(y, x *float32, n, rows, ystep, xstep, ahead int)", doc)
	y, x, n, rows := t.argument("y"), t.argument("x"), t.argument("n"), t.argument("rows")
	ystep, xstep, ahead := t.argument("ystep"), t.argument("xstep"), t.argument("ahead")
	t.c.LEAQ(operand.Mem{Base: x, Index: ahead, Scale: 4}, ahead)
	t.c.SHLQ(operand.U8(2), ystep)
	t.c.SHLQ(operand.U8(2), xstep)
	for _, width := range t.widths {
		if width == 2 || width == 16 && stride == 2 {
			continue
		}
		next := fmt.Sprintf("below%d", width)
		if width > 1 {
			t.c.CMPQ(n, operand.U8(width))
			t.c.JL(operand.LabelRef(next))
		}
		row, vector, end := fmt.Sprintf("row%d", width), fmt.Sprintf("vector%d", width), fmt.Sprintf("last%d", width)
		last, at, from := t.c.GP64(), t.c.GP64(), t.c.GP64()
		t.c.LEAQ(operand.Mem{Base: n, Disp: -width}, last) // where the last vector begins
		t.c.Label(row)
		t.c.XORQ(at, at)
		t.c.Label(vector)
		t.c.CMPQ(at, last)
		t.c.JGE(operand.LabelRef(end))
		t.c.PREFETCHT0(operand.Mem{Base: ahead, Index: at, Scale: uint8(4 * stride)})
		t.spreadVector(width, stride, x, y, at)
		t.c.ADDQ(operand.U8(width), at)
		t.c.JMP(operand.LabelRef(vector))
		t.c.Label(end)
		t.c.PREFETCHT0(operand.Mem{Base: ahead, Index: last, Scale: uint8(4 * stride)})
		t.c.MOVQ(last, from)
		t.spreadVector(width, stride, x, y, from)
		t.c.ADDQ(xstep, x)
		t.c.ADDQ(xstep, ahead)
		t.c.ADDQ(ystep, y)
		t.c.DECQ(rows)
		t.c.JNZ(operand.LabelRef(row))
		t.c.JMP(operand.LabelRef("end"))
		t.c.Label(next)
	}
	t.c.Label("end")
	t.end()
}

// spreadVector copies width elements from one on. The upper half of what is read begins one element early, so that it ends with the
// last one that counts.
func (t *windowTier) spreadVector(width, stride int, x, y, at reg.GPVirtual) {
	v := t.vector(width)
	to := operand.Mem{Base: y, Index: at, Scale: 4}
	low := operand.Mem{Base: x, Index: at, Scale: uint8(4 * stride)}
	if stride == 1 || width == 1 {
		t.move(width, low, v)
		t.move(width, v, to)
		return
	}
	high := low
	high.Disp = 4 * (width - 1)
	const lowEvenHighOdd = 0xD8
	t.move(width, low, v)
	switch {
	case t.name == "SSE":
		u := t.vector(width)
		t.move(width, high, u)
		t.c.SHUFPS(operand.U8(lowEvenHighOdd), u, v)
	default:
		t.c.VSHUFPS(operand.U8(lowEvenHighOdd), high, v, v)
		if width == 8 {
			t.c.VPERMPD(operand.U8(0xD8), v, v)
		}
	}
	t.move(width, v, to)
}
