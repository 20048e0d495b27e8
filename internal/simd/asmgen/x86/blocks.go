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
	b := &blocks{c: c, tables: map[string]operand.Mem{}}
	q2, q3 := planes{80, 4}, planes{96, 12, 2}
	q2Scales := func(at [3]operand.Mem, put put) { b.scalesQ2K(at[0], at[1], put) }
	q3Scales := func(at [3]operand.Mem, put put) { b.scalesQ3K(at[1], at[2], put) }
	b.nibbles(stored, "Nibbles", false, false)
	b.nibbles(stored, "Fifths", true, false)
	for _, u := range []use{stored, bytesAVX2, bytesAVXVNNI, bytesVNNI, floatsAVX2, floatsAVX512} {
		if u != stored {
			b.nibbles(u, "Q4_0", false, false)
			b.nibbles(u, "Q4_1", false, true)
			b.nibbles(u, "Q5_0", true, false)
			b.nibbles(u, "Q5_1", true, true)
			b.eights(u)
		}
		b.pairs(u, "Q2K", q2, false, q2Scales)
		b.pairs(u, "Q3K", q3, true, q3Scales)
		b.fours(u, "Q4K", 144, -1)
		b.fours(u, "Q5K", 176, 16)
		b.sixes(u)
	}
	b.storing("pairScales", "A block is eight pairs here.", true, planes{0, 32}, 8, func(at [3]operand.Mem, put put) { b.pairScales(at[1], put) })
	for _, size := range []int{144, 176} {
		b.storing(map[int]string{144: "scalesQ4K", 176: "scalesQ5K"}[size], "", true, planes{size}, 8, func(at [3]operand.Mem, put put) { b.scalesK4(at[0], put) })
	}
	b.storing("scalesQ2K", "", true, q2, 16, q2Scales)
	b.storing("scalesQ3K", "", false, planes{0, 12, 2}, 16, q3Scales)
	b.storing("scalesQ6K", "", false, planes{208, 2}, 16, b.sixScales)
	b.groupSums(16)
	b.groupSums(32)
	b.round()
	b.expand(8)
	b.expand(16)
	b.lanes(false)
	b.lanes(true)
	b.nibbleLanes("Nibbles", 1, 0, 128)
	b.nibbleLanes("Q4K", 2, 16, 144)
	for _, rows := range []int{1, 2, 4, 8} {
		b.products("products32", 32, rows, bytesVNNI)
		b.products("products16", 16, rows, bytesVNNI)
		if rows < 8 { // there are not more registers
			for _, u := range []use{bytesAVX2, bytesAVXVNNI} {
				b.products("products32", 32, rows, u)
				b.products("products16", 16, rows, u)
			}
			b.products("productsSigned", 32, rows, bytesAVX2)
		}
	}
	return assembled(c, "blocks", "blocks")
}

type blocks struct {
	c      *build.Context
	tables map[string]operand.Mem
}

// begin opens a function and returns its parameters in registers.
func (b *blocks) begin(name, signature string, doc string, params ...string) []reg.GPVirtual {
	b.c.Function(name)
	b.c.Pragma("noescape")
	b.c.Attributes(attr.NOSPLIT)
	b.c.SignatureExpr(signature)
	b.c.Doc(name + " " + doc)
	var r []reg.GPVirtual
	for _, p := range params {
		g := b.c.GP64()
		b.c.Load(b.c.Param(p), g)
		r = append(r, g)
	}
	return r
}

func (b *blocks) end() {
	b.c.VZEROUPPER()
	b.c.RET()
}

// ahead is how far before its use a row is asked for: about as much as is unpacked at a time, so that memory works while
// integers are multiplied.
const ahead = 4608

// prefetch asks for as many bytes as are read now.
func (b *blocks) prefetch(from reg.Register, bytes int) {
	for line := 0; line < bytes; line += 64 {
		b.c.PREFETCHT0(at(from, ahead+line))
	}
}

// table is read-only data of bytes, aligned to nothing.
func (b *blocks) table(name string, data ...byte) operand.Mem {
	if m, ok := b.tables[name]; ok {
		return m
	}
	m := b.c.StaticGlobal(name)
	b.c.DataAttributes(attr.RODATA | attr.NOPTR)
	for _, v := range data {
		b.c.AppendDatum(operand.U8(v))
	}
	b.tables[name] = m
	return m
}

// bytes is a vector of one byte.
func (b *blocks) bytes(v byte) reg.VecVirtual {
	y := b.c.YMM()
	b.c.VPBROADCASTB(b.table("blocksBytes"+string("0123456789abcdef"[v>>4])+string("0123456789abcdef"[v&15]), v), y)
	return y
}
