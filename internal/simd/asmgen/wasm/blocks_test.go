package wasm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// operands of an operation on weights, by the fields that have their addresses.
type operands map[int][]byte

// runBlocks runs an operation with its call and operands in memory, some of them in turns at the end of it, and returns what
// is then in y. It checks that nothing but y and the call was written.
func runBlocks(t *testing.T, m *machine, r *rand.Rand, op int, words map[int]int, in operands) (y []byte) {
	const call = 1024
	turns := 0
	for last := range in {
		if turns++; turns > 4 {
			break
		}
		m.fill()
		clear(m.slice(call, callEnd))
		at := int(m.mem.Size())
		place := func(field int) {
			at -= len(in[field])
			copy(m.slice(at, len(in[field])), in[field])
			m.put(call+field, uint32(at))
			at = (at - r.IntN(64)) &^ 3
		}
		place(last)
		for field := range in {
			if field != last {
				place(field)
			}
		}
		for field, v := range words {
			m.put(call+field, uint32(v))
		}
		m.put(call+callFactor, math.Float32bits(1))
		to := int(m.word(call + callY))
		before := bytes.Clone(m.slice(0, int(m.mem.Size())))
		m.call(op, 0, []int{call}, nil)
		got := bytes.Clone(m.slice(to, len(in[callY])))
		copy(before[to:], got)
		copy(before[boxAt:boxAt+boxSize], m.slice(boxAt, boxSize))
		copy(before[call:call+callEnd], m.slice(call, callEnd))
		require.True(t, bytes.Equal(before, m.slice(0, len(before))), "writes elsewhere: operation %d, %v, last operand %d",
			op, words, last)
		if y != nil {
			require.True(t, bytes.Equal(y, got), "reads elsewhere: operation %d, %v, last operand %d", op, words, last)
		}
		y = got
	}
	return y
}

// Operations on weights read and write nothing but their operands, wherever these are: at the end of the memory a read beyond
// them traps, and elsewhere NaN are after them. What they compute, package blocks tests.
func TestBlocksBounds(t *testing.T) {
	code, _, err := build(nil)
	require.NoError(t, err)
	m := newMachine(t, code, 4)
	r := random(t)
	for format, l := range layouts() {
		t.Run(fmt.Sprint(format), func(t *testing.T) {
			for _, n := range []int{1, 2, 3, 4, 5, 7, 9 + r.IntN(64)} {
				if l.values == 256 && n > 9 {
					n = 9 + r.IntN(3)
				}
				// Rows are padded to 16 bytes, which nothing may depend on: here the last ends where its blocks end.
				size := l.sizes
				row, rows, rowsOfX, k := n*(size[0]+size[1]+size[2]), 1+r.IntN(6), 1+r.IntN(callRows), n*l.values
				row = (row + 3) &^ 3
				data := make([]byte, row*rows)
				for i := range data {
					data[i] = byte(r.Uint32())&0x3b | 1 // halves below 1, and none is zero
				}
				floats := func(n int) []byte {
					b := make([]byte, 4*n)
					for i := range b {
						b[i] = byte(r.Uint32())&0x3b | 1
					}
					return b
				}
				words := map[int]int{
					callFormat: format, callBlock: l.values, callGroups: l.values / l.width, callRow: row, callLo: 0, callHi: rows,
					callAt: 0, callBlocks: n, callPiece: callPieceLen / l.values, callM: rowsOfX, callLDY: 4 * rows, callStride: 4 * k,
					callLeast: callA, callOffset: 4, callBase: n * size[0], callBase + 4: n * (size[0] + size[1]),
					callSize: size[0], callSize + 4: size[1], callSize + 8: size[2],
				}
				finite := func(y []byte) {
					require.False(t, bytes.Equal(y, make([]byte, len(y))))
					for i := 0; i < len(y); i += 4 {
						v := math.Float32frombits(binary.LittleEndian.Uint32(y[i:]))
						require.False(t, v != v || math.IsInf(float64(v), 0))
					}
				}
				y := make([]byte, 4*rowsOfX*rows)
				finite(runBlocks(t, m, r, runMultiply, words, operands{callY: y, callData: data, callX: floats(rowsOfX * k)}))
				in := operands{callY: y, callData: data}
				for i := range rowsOfX {
					in[callWide+8*i] = floats(k / 2)
					in[callScale+8*i], in[callSum+8*i] = floats(k/l.width), floats(k/l.width)
				}
				finite(runBlocks(t, m, r, runMultiply8, words, in))
				one := operands{callX: in[callWide], callScale: in[callScale], callSum: in[callSum], callData: data, callY: y[:4*rows]}
				words[callStride] = 2
				if l.values == 256 || n >= 4 {
					finite(runBlocks(t, m, r, runMultiplyOne, words, one))
				}
				words[callHi] = 1
				finite(runBlocks(t, m, r, runDequantize, words, operands{callY: make([]byte, 4*k), callData: data[:row]}))
				words[callHi], words[callStride], words[callLDY] = rows, 4*rows, 4*k
				words[callBlocks] = min(n, 256/l.values)
				finite(runBlocks(t, m, r, runColumns, words, operands{callY: floats(rowsOfX * k), callData: data, callX: floats(rowsOfX * rows)}))
			}
		})
	}
}
