package arm64

import (
	"fmt"
	"strings"
)

// blocksFiles are the kernels of package blocks: what unpacks GGML's block formats, and what multiplies the integers.
func blocksFiles() map[string][]byte {
	b := &blocks{text: &text{}, tables: &text{}, known: map[string]bool{}}
	for _, u := range []unpacking{stored, addedDot, addedNEON, floats} {
		if u == stored {
			b.nibbles(u, "Nibbles", false, false)
			b.nibbles(u, "Fifths", true, false)
		} else {
			b.nibbles(u, "Q4_0", false, false)
			b.nibbles(u, "Q4_1", false, true)
			b.nibbles(u, "Q5_0", true, false)
			b.nibbles(u, "Q5_1", true, true)
			b.eights(u)
		}
		b.pairs(u, "Q2K", 80, 16, -1)
		b.pairs(u, "Q3K", 96, 32, 0)
		b.fours(u, "Q4K", 144, -1)
		b.fours(u, "Q5K", 176, 16)
		b.sixes(u)
	}
	b.groupSums(16)
	b.groupSums(32)
	b.multiplied()
	b.storing()
	b.expand(false)
	b.expand(true)
	return map[string][]byte{
		"blocks/blocks_gen_arm64.s":        []byte(header + include + b.tables.b.String() + b.b.String()),
		"blocks/blocks_stubs_gen_arm64.go": []byte(header + "package blocks\n" + b.stubs.String()),
	}
}

// blocks writes these functions.
type blocks struct {
	*text
	stubs  strings.Builder
	tables *text
	known  map[string]bool // tables
	vacant []int           // vector registers of the present function
	inputs int             // its parameters, which lie in R0 and so on
}

// begin opens a function and loads its parameters, each of a word, into R0 and so on.
func (b *blocks) begin(name, doc string, returns bool, params ...string) {
	declaration, size := "func "+name+"("+strings.Join(params, ", ")+")", 8*len(params)
	if returns {
		declaration, size = declaration+" float32", size+4
	}
	fmt.Fprintf(&b.stubs, "\n// %s %s\n//\n//go:noescape\n%s\n", name, doc, declaration)
	b.line("\n// %s", declaration)
	b.line("TEXT ·%s(SB), NOSPLIT, $0-%d", name, size)
	for i, p := range params {
		arg, _, _ := strings.Cut(p, " ")
		b.ins("MOVD %s+%d(FP), R%d", arg, 8*i, i)
	}
	b.inputs, b.vacant = len(params), nil
	for r := 31; r >= 0; r-- {
		b.vacant = append(b.vacant, r)
	}
}

// take gives a vector register.
func (b *blocks) take() int {
	r := b.vacant[len(b.vacant)-1]
	b.vacant = b.vacant[:len(b.vacant)-1]
	return r
}

// free takes registers back.
func (b *blocks) free(regs ...int) { b.vacant = append(b.vacant, regs...) }

// bytes is a vector of one byte.
func (b *blocks) bytes(v int) int {
	r := b.take()
	b.vec("movi", r, v)
	return r
}

// table loads 16 bytes of read-only data.
func (b *blocks) table(name string, data func(i int) int) int {
	if !b.known[name] {
		b.known[name] = true
		b.tables.line("")
		for half := range 2 {
			bits := uint64(0)
			for i := range 8 {
				bits |= uint64(byte(data(8*half+i))) << (8 * i)
			}
			b.tables.line("DATA %s<>+%d(SB)/8, $%#016x", name, 8*half, bits)
		}
		b.tables.line("GLOBL %s<>(SB), RODATA|NOPTR, $16", name)
	}
	r := b.take()
	b.ins("MOVD $%s<>(SB), R%d", name, b.inputs)
	b.ins("FMOVQ (R%d), F%d", b.inputs, r)
	return r
}

// pair loads 32 bytes.
func (b *blocks) pair(from, offset int) (x [2]int) {
	x = [2]int{b.take(), b.take()}
	moveVectors(b.text, true, "", from, offset, x[:]...)
	return x
}

// tally writes what a loop consists of that began with so much text, and for how many values that is.
func (b *blocks) tally(before, values int) {
	vectors, moves, others := 0, 0, 0
	for line := range strings.Lines(b.b.String()[before:]) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "WORD"):
			vectors++
		case strings.HasPrefix(line, "F"):
			moves++
		case line != "" && !strings.HasSuffix(line, ":") && !strings.HasPrefix(line, "PCALIGN"):
			others++
		}
	}
	b.line("\t// %d values: %d vector instructions, %d loads and stores, %d others", values, vectors, moves, others)
}

// unpacking says what becomes of the integers of 32 values: they are written, or multiplied at once with integers or floats.
type unpacking uint8

const (
	stored    unpacking = iota
	addedDot            // by SDOT, of FEAT_DotProd
	addedNEON           // by SMULL and SADDLP, which every processor has
	floats
)

func (u unpacking) tier() string { return [...]string{suffix, "SDOT", suffix, suffix}[u] }

// unpacked is a function that goes over blocks.
type unpacked struct {
	*blocks
	unpacking
	blockFormat
	to, from, n int // pointers, and how many blocks are left
	high        int // pointer to fifth bits, of formats with a plane of its own for them
	rows
}

// blockFormat is what products and unpacking need to know of a block format.
type blockFormat struct {
	name   string
	width  int    // values that share a scale
	planes [3]int // bytes of a block in each
	fifths bool   // the second plane has the fifth bits
	signed bool   // integers of any size
	affine bool   // there are minima
	offset int    // what the integers stand above zero
}

// unpack opens a function of a format.
func (b *blocks) unpack(u unpacking, l blockFormat) *unpacked {
	f := &unpacked{blocks: b, unpacking: u, blockFormat: l}
	if u != stored {
		f.openRows()
		return f
	}
	doc, params := "", []string{"q *int8", "block *byte", "n int"}
	f.to, f.from, f.n = 0, 1, 2
	if l.fifths {
		doc, params, f.high = " The fifth bits of each are in a word of high.", append(params, "high *byte"), 3
	}
	f.begin("quants"+l.name+suffix, "writes the integers of n ≥ 1 blocks."+doc, false, params...)
	return f
}

// each writes the loop over blocks of the given values: those of 32 values four at a time while there are as many.
func (f *unpacked) each(values int, do func(block int)) {
	if f.unpacking != stored {
		f.eachRow(values, do)
		return
	}
	f.eachBlock(values, do, func(blocks int) {
		f.forward(f.planes[0]*blocks, f.from)
		f.forward(values*blocks, f.to)
		if f.high > 0 {
			f.forward(f.planes[1]*blocks, f.high)
		}
	})
	f.ins("RET")
}

// forward moves a pointer.
func (b *blocks) forward(bytes, r int) {
	if bytes > 0 {
		b.ins("ADD $%d, R%d, R%d", bytes, r, r)
	}
}

// eachBlock writes the loop and the label done.
func (f *unpacked) eachBlock(values int, do func(block int), advance func(blocks int)) {
	const many = 4
	f.single = false
	if values == 32 {
		f.ins("SUBS $%d, R%d, R%d", many, f.n, f.n)
		f.ins("BLT rest")
		before := f.b.Len()
		f.loop("many")
		f.step()
		for i := range many {
			do(i)
		}
		advance(many)
		f.ins("SUBS $%d, R%d, R%d", many, f.n, f.n)
		f.ins("BGE many")
		f.tally(before, many*values)
		f.label("rest")
		f.ins("ADDS $%d, R%d, R%d", many, f.n, f.n)
		f.ins("BEQ done")
		f.single = true
	}
	before := f.b.Len()
	f.loop("block")
	f.step()
	do(0)
	advance(1)
	f.ins("SUBS $1, R%d, R%d", f.n, f.n)
	f.ins("BNE block")
	if !f.single {
		f.tally(before, values)
	}
	f.label("done")
}

// use does with vectors what is to be done, and frees them: they have the integers of group of 32 values i.
func (f *unpacked) use(i int, q [2]int) {
	defer f.free(q[:]...)
	if f.unpacking == stored {
		moveVectors(f.text, false, "", f.to, 32*i, q[:]...)
		return
	}
	if f.unpacking == floats {
		f.useFloats(i, q)
		return
	}
	x := f.pair(f.to, 32*i)
	defer f.free(x[:]...)
	if f.width == 16 {
		f.add(f.products(q[:1], x[:1]))
		f.add(f.products(q[1:], x[1:]))
		return
	}
	f.add(f.products(q[:], x[:]))
}
