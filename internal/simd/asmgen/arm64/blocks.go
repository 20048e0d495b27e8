package arm64

import (
	"fmt"
	"strings"
)

// blocksFiles are the kernels of package blocks: what unpacks GGML's block formats, and what multiplies the integers.
func blocksFiles() map[string][]byte {
	b := &blocks{text: &text{}, tables: &text{}, known: map[string]bool{}}
	for _, u := range []unpacking{stored, addedDot, addedNEON, floats} {
		b.nibbles(u, false, 0)
		b.nibbles(u, true, 0)
		b.pairs(u, "Q2K", 80, 16, -1)
		b.pairs(u, "Q3K", 96, 32, 0)
		b.fours(u, "Q4K", 144, -1)
		b.fours(u, "Q5K", 176, 16)
		b.sixes(u)
	}
	b.nibbles(floats, false, 8)
	b.nibbles(floats, true, 16)
	b.floatsQ8()
	b.multiplied()
	b.pairScales()
	b.scalesK4("Q4K", 144)
	b.scalesK4("Q5K", 176)
	b.scalesQ2K()
	b.scalesQ3K()
	b.scalesQ6K()
	b.expand(false)
	b.expand(true)
	b.weigh()
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

// result returns the sum of a vector's lanes.
func (b *blocks) result(sum int) {
	b.vec("faddp", sum, sum, sum)
	b.vec("faddp.s", sum, sum)
	b.ins("FMOVS F%d, ret+%d(FP)", sum, 8*b.inputs)
	b.ins("RET")
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
	to, s, from, n int // pointers, of which s is for products alone, and how many blocks are left
	least          int // pointer to minima, which products with floats need
	high           int // of formats with a plane of its own
	width          int // values that share a scale
	signed         bool
	single         bool   // there is one group of 32 values in a step
	vectors, next  int    // of s in a step: how many, and which comes next
	scales         []int  // vectors of s that are loaded
	partial        [2]int // sums of one vector and of two that wait for their neighbours, −1 for none
	sum            int
	*widened
}

// blockFormat is what products and unpacking need to know of a block format.
type blockFormat struct {
	name   string
	width  int
	high   bool // there is a plane for the fifth bits
	minima bool
	offset int // what the integers stand above zero, for products with floats
}

func (b *blocks) over(u unpacking, width int) *unpacked {
	return &unpacked{blocks: b, unpacking: u, width: width, partial: [2]int{-1, -1}}
}

// unpack opens a function of a format.
func (b *blocks) unpack(u unpacking, l blockFormat) *unpacked {
	f := b.over(u, l.width)
	doc := ""
	if l.high {
		doc = " The fifth bits of each are in a word of high."
	}
	switch u {
	case stored:
		f.open("quants"+l.name, "writes the integers of n ≥ 1 blocks."+doc, l.high, "q *int8", "block *byte", "n int")
	case floats:
		f.widen(l)
	default:
		f.open("product"+l.name, "is the sum over values of n ≥ 1 blocks: their integers times x times s."+doc, l.high,
			"x *int8", "s *float32", "block *byte", "n int")
	}
	return f
}

// open opens the function with parameters in the order of registers.
func (f *unpacked) open(name, doc string, high bool, params ...string) {
	if high {
		params = append(params, "high *byte")
		f.high = len(params) - 1
	}
	f.begin(name+f.tier(), doc, f.unpacking != stored, params...)
	f.to, f.s, f.from, f.n = 0, 1, 1, 2
	if f.unpacking != stored {
		f.from, f.n = 2, 3
		f.sum = f.take()
		f.vec("zero", f.sum)
	}
}

// each writes the loop over blocks of the given bytes and values: those of 32 values four at a time while there are as many.
func (f *unpacked) each(size, values int, do func(block int)) {
	advance := func(blocks int) {
		add := func(bytes, r int) { f.ins("ADD $%d, R%d, R%d", bytes, r, r) }
		add(size*blocks, f.from)
		if f.unpacking == floats {
			add(4*values*blocks, f.to)
		} else {
			add(values*blocks, f.to)
		}
		if f.high > 0 {
			add(4*blocks, f.high)
		}
		if f.unpacking != stored {
			add(4*values/f.width*blocks, f.s)
		}
		if f.least > 0 {
			add(4*values/f.width*blocks, f.least)
		}
	}
	const many = 4
	if values == 32 {
		f.ins("SUBS $%d, R%d, R%d", many, f.n, f.n)
		f.ins("BLT rest")
		before := f.b.Len()
		f.vectors = many * values / f.width / 4
		f.loop("many")
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
	f.vectors, f.next = values/f.width/4, 0
	if f.widened != nil {
		f.groups = 0
	}
	before := f.b.Len()
	f.loop("block")
	do(0)
	advance(1)
	f.ins("SUBS $1, R%d, R%d", f.n, f.n)
	f.ins("BNE block")
	if !f.single {
		f.tally(before, values)
	}
	f.label("done")
	switch f.unpacking {
	case stored:
		f.ins("RET")
	case floats:
		f.resultOfFloats()
	default:
		f.result(f.sum)
	}
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
