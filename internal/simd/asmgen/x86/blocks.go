package x86

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// blocksFiles are the kernels of package blocks: what unpacks GGML's block formats, and what multiplies the integers.
func blocksFiles() (map[string][]byte, error) {
	c := build.NewContext()
	b := &blocks{Context: c, tables: map[string]operand.Mem{}}
	for _, u := range []unpacking{stored, addedAVX2, addedVNNI} {
		b.nibbles(u, false)
		b.nibbles(u, true)
		b.pairs(u, "Q2K", 80, 16, -1)
		b.pairs(u, "Q3K", 96, 32, 0)
		b.fours(u, "Q4K", 144, -1)
		b.fours(u, "Q5K", 176, 16)
		b.sixes(u)
	}
	b.pairScales()
	b.scalesK4("scalesQ4K", 144)
	b.scalesK4("scalesQ5K", 176)
	b.scalesQ2K()
	b.scalesQ3K()
	b.scalesQ6K()
	for _, lanes := range []int{8, 16} {
		b.expand(lanes)
		b.weigh(lanes)
		for _, width := range []int{16, 32} {
			b.floats("Minima", width, lanes)
			b.floats("Offset", width, lanes)
		}
		b.floats("Bytes", 32, lanes)
	}
	for _, width := range []int{32, 16} {
		b.dotAVX2(width, false)
		b.dotVNNI(width, false)
	}
	b.dotAVX2(32, true)
	b.dotVNNI(32, true)
	b.lanes(false)
	b.lanes(true)
	for _, rows := range []int{1, 2, 4, 8} {
		b.products("products32", 32, rows, 16)
		b.products("products16", 16, rows, 16)
		if rows < 8 { // there are not more registers
			b.products("products32", 32, rows, 8)
			b.products("products16", 16, rows, 8)
			b.products("productsSigned", 32, rows, 8)
		}
	}
	return assembled(c, "blocks", "blocks")
}

type blocks struct {
	*build.Context
	tables map[string]operand.Mem
}

// begin opens a function and returns its parameters in registers.
func (b *blocks) begin(name, signature string, doc string, params ...string) []reg.GPVirtual {
	b.Function(name)
	b.Pragma("noescape")
	b.Attributes(attr.NOSPLIT)
	b.SignatureExpr(signature)
	b.Doc(name + " " + doc)
	var r []reg.GPVirtual
	for _, p := range params {
		g := b.GP64()
		b.Load(b.Param(p), g)
		r = append(r, g)
	}
	return r
}

func (b *blocks) end() {
	b.VZEROUPPER()
	b.RET()
}

// ahead is how far before its use a row is asked for: about as much as is unpacked at a time, so that memory works while
// integers are multiplied.
const ahead = 4608

// prefetch asks for as many bytes as are read now.
func (b *blocks) prefetch(from reg.Register, bytes int) {
	for line := 0; line < bytes; line += 64 {
		b.PREFETCHT0(at(from, ahead+line))
	}
}

// table is read-only data of bytes, aligned to nothing.
func (b *blocks) table(name string, data ...byte) operand.Mem {
	if m, ok := b.tables[name]; ok {
		return m
	}
	m := b.StaticGlobal(name)
	b.DataAttributes(attr.RODATA | attr.NOPTR)
	for _, v := range data {
		b.AppendDatum(operand.U8(v))
	}
	b.tables[name] = m
	return m
}

// bytes is a vector of one byte.
func (b *blocks) bytes(v byte) reg.VecVirtual {
	y := b.YMM()
	b.VPBROADCASTB(b.table("blocksBytes"+string("0123456789abcdef"[v>>4])+string("0123456789abcdef"[v&15]), v), y)
	return y
}
