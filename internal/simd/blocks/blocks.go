// Package blocks computes with weights in GGML's block formats as quant.Pack lays them out: rows of values are dequantised, and
// multiplied with rows of floats or of 8-bit integers.
//
// Each format is read in the same two steps, whose results stay in L1: the integers of a piece of a row become a
// byte each, and its scales and minima become float32. With the scale a and the minimum b of the 16 or 32 values that share
// them, a value is a·(q − offset) − b. What follows knows no formats.
//
// # What limits it
//
// One row of x in 8 bits: the instructions that unpack a block. For a weight in L2 a core of a Xeon of the fifth generation takes 20 (Q8_0)
// to 75 ps (Q5_0), the same with AVX-512 VNNI and AVX-VNNI but for Q8_0 and Q6_K, and from memory reaches 0.56 (Q4_0) to 1 (Q8_0) of a
// plain read. Products take one instruction a vector there, and three to five without: 1.05 to 1.2 times as long, Q8_0 1.3 to 1.5 times.
// With eight rows, unpacking is two fifths of the work.
//
// On arm64 it is the same with vectors of 16 bytes, of which SDOT multiplies one in an instruction, and what comes before it half of one;
// that has not been measured.
//
// On WebAssembly an instruction multiplies eight values of 16 bits, or 16 of 8 bits where the engine has relaxed SIMD. One row of x meets
// four rows of weights at a time, which are a quarter of all rows apart: each is a stream of memory that a core reads ahead, also where rows
// are short. Scales are computed just before the products that they belong to, so that weights come from memory meanwhile. Shares of a plain
// read from memory on that Xeon, beside other work, whose processor has AVX-VNNI; without it V8's products of bytes take six instructions, and
// gain only where unpacking is shorter in bytes. Rows of 14,336 and of 576 (512 in blocks of 256); before, relaxed SIMD reached 0.28 to 0.65:
//
//	                                Q4_0  Q4_1  Q5_0  Q5_1  Q8_0  Q2_K  Q3_K  Q4_K  Q5_K  Q6_K
//	16 bits, 14,336                 0.70  0.70  0.39  0.40  1.0   0.28  0.21  0.65  0.54  0.40
//	16 bits, 576                    0.70  0.68  0.42  0.43  0.82  0.25  0.24  0.53  0.47  0.46
//	relaxed SIMD, 14,336            0.92  1.0   0.68  0.69  –     0.35  0.40  0.94  0.87  0.64
//	relaxed SIMD, 576               0.98  0.88  0.73  0.79  –     0.32  0.32  0.82  0.71  0.71
//	vector instructions, 32 values  10    13    19    22    –     19    21    13    19    20
//
// Those are Node.js 24's; Chromium 156 has 0.17 to 0.38 for Q2_K and Q3_K, and 0.50 to 1.0 for the others. The processor starts three of the
// instructions in a cycle. Q2_K and Q3_K cannot reach 0.7: in the time that their 10.5 and 14 bytes take to come from memory it starts 8
// and 11 of them.
package blocks

import (
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant"
)

// Piece is the most values of a row that are dequantised at a time: a multiple of all blocks.
const Piece = 2048

// format is what the second step needs to know, and the first step in portable Go. Both functions do the blocks from lo on,
// as many as fit in their first argument.
type format struct {
	quant.Type
	width  int     // values that share a scale
	offset float32 // what the integers stand above zero; affine formats have minima instead
	affine bool
	quants func(q []int8, w *row, lo int)
	scales func(a, b []float32, w *row, lo int)
}

var formats = map[compute.BlockFormat]*format{
	compute.Q4_0: {quant.Q4_0, 32, 8, false, nibbles, halfScales},
	compute.Q4_1: {quant.Q4_1, 32, 0, true, nibbles, halfScales},
	compute.Q5_0: {quant.Q5_0, 32, 16, false, nibbles, halfScales},
	compute.Q5_1: {quant.Q5_1, 32, 0, true, nibbles, halfScales},
	compute.Q8_0: {quant.Q8_0, 32, 0, false, nil, halfScales}, // bytes already
	compute.Q2_K: {quant.Q2_K, 16, 0, true, quantsQ2K, scalesQ2K},
	compute.Q3_K: {quant.Q3_K, 16, 4, false, quantsQ3K, scalesQ3K},
	compute.Q4_K: {quant.Q4_K, 32, 0, true, quantsK4, scalesK4},
	compute.Q5_K: {quant.Q5_K, 32, 0, true, quantsK4, scalesK4},
	compute.Q6_K: {quant.Q6_K, 16, 32, false, quantsQ6K, scalesQ6K},
}

// row is a row of weights: the blocks' planes.
type row struct {
	*format
	block  int // values of a block
	planes [3][]byte
	size   [3]int // of a block in each plane
}

// Weights are packed weights of some format.
type Weights struct {
	row
	Rows, Cols int
	words      int
	data       []byte
}

// NewWeights describes weights that have passed the check of an operation: rows of a number of words. Data come with [Weights.Of].
func NewWeights(f compute.BlockFormat, rows, words int) Weights {
	w := Weights{row: row{format: formats[f]}, Rows: rows, words: words}
	w.block = w.BlockLen()
	w.Cols, _ = quant.PackedCols(w.Type, words)
	for i, p := range w.Planes() {
		w.size[i] = p.Size
	}
	return w
}

// Of is the same with data, little-endian words.
func (w Weights) Of(data []byte) Weights {
	w.data = data
	return w
}

// Width is how many values share a scale.
func (w *Weights) Width() int { return w.width }

// RowBytes is what a row takes.
func (w *Weights) RowBytes() int { return 4 * w.words }

// enter makes a row of weights that of the room.
func (m *room) enter(w *Weights, r int) {
	if m.format != w.format {
		m.row = w.row
	}
	data, blocks := w.data[4*w.words*r:4*w.words*(r+1)], w.Cols/w.block
	for i, size := range w.size {
		m.planes[i], data = data[:blocks*size], data[blocks*size:]
	}
}

// room is the memory of both steps' results. Kernels may read beyond the ends of what they need.
type room struct {
	row
	q       [most]int8
	a, b, s [most/16 + 16]float32
	y       [Piece]float32
	sums    [Held][Most]float32
	factor  float32
}

// most is the most values of a row that are taken at a time if they stay integers: a multiple of all blocks.
const most = 8192

var rooms = sync.Pool{New: func() any { return new(room) }}

func (m *room) leave() {
	m.row = row{} // no memory is kept alive
	rooms.Put(m)
}

// scales are those of n values of the row from lo on, whole blocks.
func (m *room) scales(lo, n int) {
	m.unpackScales(m.a[:n/m.width], m.b[:n/m.width], lo/m.block)
}

// integers are those of n values of the row from lo on, whole blocks: those of bytes lie in the row.
func (m *room) integers(lo, n int) []int8 {
	if m.quants == nil {
		return int8s(m.planes[0][lo:][:n])
	}
	m.unpackQuants(m.q[:n], lo/m.block)
	return m.q[:n]
}
