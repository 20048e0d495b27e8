package blocks

import (
	"sync"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/simd/kernels"
	"github.com/wavelane/wavelane/quant"
)

// On js, whole products are operations of the side module, whose memory is that of the Go program: it reads weights where
// they lie. A call takes as long as some hundred values.

// sideCall is what an operation of the side module works on, and its scratch memory. Its layout is that of
// asmgen/wasm/blocks.go. Addresses are of 32 bits, the lower half of a Go pointer.
type sideCall struct {
	sidePointers

	format uint32    // GGML's number
	block  uint32    // values of a block
	groups uint32    // scales of a block
	row    uint32    // bytes of a row of weights
	lo, hi uint32    // rows of weights
	at     uint32    // block that a row is read from
	blocks uint32    // of a row that are read
	piece  uint32    // of them at a time
	m      uint32    // rows of x
	ldy    uint32    // bytes from result to result of the next row of x
	stride uint32    // bytes from row to row of x, or of a value of a single one
	least  uint32    // offset of what is multiplied with sums of x: a or b
	offset uint32    // what integers stand above zero
	factor float32   // of the minima: offset, or one where there are minima
	bytes  uint32    // 1 if rows of x have 8 bits, for the functions that relaxed SIMD adds
	_      [3]uint32 // the module's
	base   [2]uint32 // of the planes but the first in a row
	size   [3]uint32 // of a block in the planes

	totals  [Most]float64
	parts   [4]float32 // of a tile of rows of x
	minima  [4]float32
	settled [4]float32 // written, never read
	lanes   [4][4]float32
	a, b    [Piece/16 + 4]float32
	s       [4 * Piece / 16]float32 // of rows of a tile
	zeros   [Piece / 16]float32
	q       [Piece]int16
	values  [Piece]float32
}

type sidePointers struct {
	y, data, x       unsafe.Pointer       // results, weights, rows of float32 or one row of 16 or 8 bits
	wide, scale, sum [Most]unsafe.Pointer // of rounded rows, whose integers have 16 or 8 bits
}

var sideCalls = sync.Pool{New: func() any { return new(sideCall) }}

// side says whether there is a side module.
func side() bool { return kernels.Active() == kernels.SIMD128 }

// sideCall begins a call with rows of x and of weights, of k values. It returns nil if there is no side module, or nothing to
// do.
func (w *Weights) sideCall(m, lo, hi, values int) *sideCall {
	if !side() || m == 0 || lo >= hi || values == 0 {
		return nil
	}
	c := sideCalls.Get().(*sideCall)
	c.data = unsafe.Pointer(unsafe.SliceData(w.data))
	c.format, c.block, c.groups = uint32(w.Type), uint32(w.BlockLen()), uint32(w.BlockLen()/w.width)
	c.row, c.lo, c.hi, c.m = uint32(w.RowBytes()), uint32(lo), uint32(hi), uint32(m)
	c.at, c.blocks, c.piece = 0, uint32(w.Cols/w.BlockLen()), uint32(Piece/w.BlockLen())
	// The last of several planes, which has the scales, is plane 2.
	first, second := uint32(w.size[0]), uint32(w.size[1])
	if c.size = [3]uint32{first, second, uint32(w.size[2])}; w.size[2] == 0 {
		c.size, second = [3]uint32{first, 0, second}, 0
	}
	c.base = [2]uint32{c.blocks * first, c.blocks * (first + second)}
	c.least, c.factor, c.offset = uint32(unsafe.Offsetof(c.a)), w.offset, uint32(w.offset)
	if w.affine {
		c.least, c.factor = uint32(unsafe.Offsetof(c.b)), 1
	}
	return c
}

func (c *sideCall) run(op kernels.BlocksOp) {
	kernels.RunBlocks(op, unsafe.Pointer(c))
	c.sidePointers = sidePointers{} // no memory is kept alive
	sideCalls.Put(c)
}

func (w *Weights) sideDequantize(y []float32, r, lo int) bool {
	c := w.sideCall(1, r, r+1, len(y))
	if c == nil {
		return false
	}
	c.data = unsafe.Add(c.data, r*w.RowBytes())
	c.y, c.at, c.blocks = unsafe.Pointer(&y[0]), uint32(lo/w.BlockLen()), uint32(len(y)/w.BlockLen())
	c.run(kernels.BlocksDequantize)
	return true
}

// sideColumns adds to the sums of MultiplyColumns, of columns from lo to hi, what rows of weights from first to end add.
func (w *Weights) sideColumns(sums []float32, x []float32, m, first, end, lo, hi int) bool {
	c := w.sideCall(m, first, end, hi-lo)
	if c == nil {
		return false
	}
	c.y, c.ldy = unsafe.Pointer(&sums[0]), 4*Strip
	c.x, c.stride = unsafe.Pointer(&x[0]), uint32(4*w.Rows)
	c.at, c.blocks = uint32(lo/w.BlockLen()), uint32((hi-lo)/w.BlockLen())
	c.run(kernels.BlocksColumns)
	return true
}

func (w *Weights) sideMultiply(y []float32, ldy int, x []float32, m, lo, hi int) bool {
	c := w.sideCall(m, lo, hi, w.Cols)
	if c == nil {
		return false
	}
	c.y, c.ldy = unsafe.Pointer(&y[0]), uint32(4*ldy)
	c.x, c.stride = unsafe.Pointer(&x[0]), uint32(4*w.Cols)
	c.run(kernels.BlocksMultiply)
	return true
}

func (w *Weights) sideMultiply8(y []float32, ldy int, x RoundedRows, lo, hi int) bool {
	var places [Most]Rounded
	for from := 0; from < x.Rows; from += Most {
		x := x.some(from, &places)
		m := len(x)
		c := w.sideCall(m, lo, hi, w.Cols)
		if c == nil {
			return false
		}
		c.y, c.ldy = unsafe.Pointer(&y[from*ldy]), uint32(4*ldy)
		c.bytes, c.stride = 0, 2
		if bytewise() && w.Type != quant.Q8_0 {
			c.bytes, c.stride = 1, 1
		}
		for i := range m {
			scale, sum := x[i].groups(w.width, 0, w.Cols/w.width)
			c.wide[i], c.scale[i], c.sum[i] = unsafe.Pointer(&x[i].wide[0]), unsafe.Pointer(&scale[0]), unsafe.Pointer(&sum[0])
			if c.bytes == 1 {
				c.wide[i] = unsafe.Pointer(&x[i].Q[0])
			}
		}
		if m > 1 || c.blocks < 4 && c.block == 32 { // a single row of x is multiplied with four blocks at a time
			c.run(kernels.BlocksMultiply8)
			continue
		}
		c.x, c.piece = c.wide[0], uint32(most/w.BlockLen())
		c.run(kernels.BlocksMultiplyOne)
	}
	return true
}

// bytewise says whether the engine multiplies bytes. Its code is loaded at the first product.
func bytewise() bool {
	if !extended && side() {
		extended = true
		relaxed = kernels.Extend(relaxedCode) == nil
		relaxed = relaxed && tried() == want
	}
	return relaxed && side()
}

// tried is a product that has every instruction of relaxed SIMD in it: V8 11.3, which has them behind a flag, computes them wrong
// until it has compiled the function a second time.
func tried() float32 {
	var values [128]float32
	for i := range values {
		values[i] = 127
	}
	x := RoundedRows{make([]float32, RoundedWords(128)), 1, 128}
	row := x.Row(0)
	row.Round(values[:], 0, 4)
	var weights [4*16/4 + 4 + 4*2/4 + 2]uint32 // words of four blocks, and padding
	for i := range 4 {
		const bits, fifths, one = 0x76543210, 0x11111111, 0x3c00 // as a half
		weights[4*i], weights[4*i+1], weights[4*i+2], weights[4*i+3] = bits, bits, bits, bits
		weights[16+i] = fifths
		weights[20+i/2] |= one << (i % 2 * 16)
	}
	w := NewWeights(compute.Q5_0, 1, len(weights)).Of(unsafe.Slice((*byte)(unsafe.Pointer(&weights[0])), 4*len(weights)))
	var y [1]float32
	w.Multiply8(y[:], 1, x, 0, 1)
	return y[0]
}

// want is the product of four blocks: of every eight weights the sum is 28 and two have a fifth bit, and all are 16 less.
const want = 4 * 127 * (4*28 + 8*16 - 32*16)

var (
	relaxedCode = kernels.Relaxed()

	extended bool // or not possible
	relaxed  bool
)

// some are at most Most rows from i on; their addresses are in memory of the caller.
func (x RoundedRows) some(i int, places *[Most]Rounded) []Rounded {
	rows := places[:min(Most, x.Rows-i)]
	for j := range rows {
		rows[j] = x.Row(i + j)
	}
	return rows
}

// wideWords says that rounded rows have their integers once more, as the side module multiplies them.
const wideWords = 1

// widen writes the integers of a block of 32 in 16 bits: of every 16, those of even places before those of odd ones.
func (r *Rounded) widen(b int) {
	q, wide := (*[32]int8)(r.Q[32*b:]), (*[32]int16)(r.wide[32*b:])
	for h := 0; h < 32; h += 16 {
		for i := range 8 {
			wide[h+i], wide[h+8+i] = int16(q[h+2*i]), int16(q[h+2*i+1])
		}
	}
}
