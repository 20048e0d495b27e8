package engine

import "unsafe"

// PadRows computes rows of the last axis of the result, of shape out, from x, of shape in, and a value around it.
func PadRows(y, x []uint32, in, out, before []int, value uint32, lo, hi int) {
	last := len(out) - 1
	width, inner, left := out[last], in[last], before[last]
	for r := lo; r < hi; r++ {
		row := y[r*width : (r+1)*width]
		from, step, inside := 0, inner, true
		for d, rest := last-1, r; d >= 0; d-- {
			i := rest%out[d] - before[d]
			rest /= out[d]
			inside = inside && i >= 0 && i < in[d]
			from += i * step
			step *= in[d]
		}
		if !inside {
			FillWith(row, value)
			continue
		}
		FillWith(row[:left], value)
		copy(row[left:left+inner], x[from:from+inner])
		FillWith(row[left+inner:], value)
	}
}

func FillWith[T float32 | uint32](y []T, v T) {
	for i := range y {
		y[i] = v
	}
}

// Embed copies rows of table by their ids; an id outside the table gives a row of other.
func Embed[T float32 | uint32](y, table []T, ids []int32, width int, other T) {
	rows := len(table) / width
	if width == 1 { // a call of copy takes longer than an element
		y = y[:len(ids)]
		for i, id := range ids {
			if uint(id) < uint(len(table)) {
				y[i] = table[id]
			} else {
				y[i] = other
			}
		}
		return
	}
	for i, id := range ids {
		row := y[i*width:][:width]
		if uint(id) < uint(rows) {
			copy(row, table[int(id)*width:])
		} else {
			FillWith(row, other)
		}
	}
}

// Words is x as 4-byte words, which moves change on no machine.
func Words(x []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}
