package wasm

// Code for weights in GGML's block formats: operations of package blocks, whole products each. Rows of weights are read a
// piece at a time. Its scales become float32, and its integers 16 bits each, of every 16 values those of even places before
// those of odd ones: the halves of 16-bit lanes are unpacked by shifts and masks alone, and i32x4.dot_i16x8_s multiplies
// them. Activations of 8 bits are in the same order. What follows knows no formats; products with a single row of activations
// keep the integers in registers.

// A call's operands and scratch memory are a structure whose address is the first pointer of the mailbox: blocks/side_js.go
// declares it and says what the fields are. These are the fields' offsets.
const (
	callY       = 0
	callData    = 8
	callX       = 16
	callWide    = 24 // eight pointers each
	callScale   = callWide + 8*callRows
	callSum     = callScale + 8*callRows
	callFormat  = callSum + 8*callRows
	callBlock   = callFormat + 4
	callGroups  = callFormat + 8
	callRow     = callFormat + 12
	callLo      = callFormat + 16
	callHi      = callFormat + 20
	callAt      = callFormat + 24
	callBlocks  = callFormat + 28
	callPiece   = callFormat + 32
	callM       = callFormat + 36
	callLDY     = callFormat + 40
	callStride  = callFormat + 44
	callLeast   = callFormat + 48
	callOffset  = callFormat + 52
	callFactor  = callFormat + 56
	callBase    = callFormat + 60 // of planes 1 and 2
	callSize    = callBase + 8    // of planes 0, 1 and 2
	callTotals  = callSize + 12
	callParts   = callTotals + 8*callRows
	callMinima  = callParts + 4*tileRows
	callSettled = callMinima + 4*tileRows
	callA       = callSettled + 16
	callB       = callA + 4*(callMost/16+4)
	callS       = callB + 4*(callMost/16+4)
	callZeros   = callS + 4*callMost/16
	callQ       = callZeros + 4*callPieceLen/16
	callValues  = callQ + 2*callPieceLen
	callEnd     = callValues + 4*callPieceLen

	callRows     = 8    // of activations
	callMost     = 8192 // values of a piece with one row of activations
	callPieceLen = 2048 // values of other pieces
	scalesLen    = 4 * callPieceLen / 16
)

// formats are GGML's numbers, which are the indices of functions; numbers between them are not used.
const (
	q4_0    = 2
	q4_1    = 3
	q5_0    = 6
	q5_1    = 7
	q8_0    = 8
	q2K     = 10
	q3K     = 11
	q4K     = 12
	q5K     = 13
	q6K     = 14
	formats = 15
)

// What there is a function of for each format, in the order of the table.
const (
	kindScales  = iota // typeBlocks; the result is 0
	kindUnpack         // typeBlocks: to callQ
	kindProduct        // typeBlocks: of callS, the integers and x
	kindExpand         // typeExpand
	kindDots           // typeDots, for tiles of one row and more
	kinds       = kindDots + tileRows
)

// member is a field of the call.
type member int

// blocks writes a function of the call c.
type blocks struct {
	*assembler
	c local
}

func newBlocks(params int) *blocks { return &blocks{&assembler{params: params}, 0} }

// operation begins a function of the table that the mailbox chooses from.
func blocksOperation() *blocks {
	a := &assembler{}
	return &blocks{a, a.pointer(0)}
}

// ins is an instruction in eval.
type ins byte

const (
	plus  = ins(opI32Add)
	minus = ins(opI32Sub)
	times = ins(opI32Mul)
	below = ins(opI32LtU)
)

// eval writes i32 code: variables, constants, fields of the call and instructions, in the order of a stack machine.
func (b *blocks) eval(items ...any) {
	for _, i := range items {
		switch v := i.(type) {
		case local:
			b.get(v)
		case int:
			b.constant(v)
		case member:
			b.get(b.c)
			b.memory(opI32Load, int(v))
		case ins:
			b.op(byte(v))
		}
	}
}

func (b *blocks) assign(l local, items ...any) {
	b.eval(items...)
	b.set(l)
}

// let is a new variable.
func (b *blocks) let(items ...any) local {
	l := b.local(i32)
	b.assign(l, items...)
	return l
}

// upTo writes a loop with a variable from a value on until a limit, which it meets at least once; do advances the variable.
func (b *blocks) upTo(i local, limit any, do func()) {
	loop := b.open(opLoop)
	do()
	b.eval(i, limit, below)
	b.branch(opBrIf, loop)
	b.end()
}

// lesser is a new variable with the lesser of a number and what is left.
func (b *blocks) lesser(most any, left ...any) local {
	l := b.let(left...)
	b.eval(most, l, most, l, below)
	b.op(opSelect)
	b.set(l)
	return l
}

// applyFunction calls the function of a kind with n blocks of a row, from a block on: (c, row, block, n, x, kind) → f32.
func applyFunction(table int) function {
	const row, block, n, x, kind = local(1), local(2), local(3), local(4), local(5)
	b := newBlocks(6)
	b.eval(row, block, member(callSize), times, plus)
	for p := range 2 {
		b.eval(row, member(callBase+4*p), plus, block, member(callSize+4+4*p), times, plus)
	}
	b.eval(n, b.c, x, kind, formats, times, member(callFormat), plus, table, plus)
	b.index(opCallIndirect, typeBlocks)
	b.op(0)
	return b.function(typeBlocks)
}

// applied calls it.
func (b *blocks) applied(row, block, n local, x any, kind int) {
	b.eval(b.c, row, block, n, x, kind)
	b.call(funcApply)
}

// indirect calls the function of a kind whose arguments are pushed.
func (b *blocks) indirect(table, kind, typ int, more ...any) {
	b.eval(append([]any{member(callFormat), table + formats*kind, plus}, more...)...)
	b.index(opCallIndirect, typ)
	b.op(0)
}

// values has scales and integers of n blocks unpacked and expanded at an address.
func (b *blocks) values(table int, row, block, n local, to any) {
	b.unpacked(row, block, n)
	b.eval(b.c, to, n, member(callGroups), times)
	b.indirect(table, kindExpand, typeExpand)
}

func (b *blocks) unpacked(row, block, n local) {
	for _, kind := range []int{kindScales, kindUnpack} {
		b.applied(row, block, n, 0, kind)
		b.op(opDrop)
	}
}

// dequantizeFunction writes the values of a row from a block on.
func dequantizeFunction(table int) function {
	b := blocksOperation()
	row, y, at := b.let(member(callData)), b.let(member(callY)), b.let(member(callAt))
	end := b.let(at, member(callBlocks), plus)
	b.upTo(at, end, func() {
		n := b.lesser(member(callPiece), end, at, minus)
		b.values(table, row, at, n, y)
		b.assign(y, y, n, member(callBlock), times, 4, times, plus)
		b.assign(at, at, n, plus)
	})
	b.constant(0)
	return b.function(typeRun)
}

// columnsFunction adds to sums of one piece of columns, for each row of x, the products with rows of weights.
func columnsFunction(table int) function {
	b := blocksOperation()
	factor := b.local(v128)
	at, n, r := b.let(member(callAt)), b.let(member(callBlocks)), b.let(member(callLo))
	values, m := b.let(b.c, callValues, plus), b.let(member(callM))
	cols := b.let(n, member(callBlock), times)
	row := b.let(member(callData), r, member(callRow), times, plus)
	b.upTo(r, member(callHi), func() {
		b.values(table, row, at, n, values)
		i, x, y := b.let(0), b.let(member(callX), r, 4, times, plus), b.let(member(callY))
		b.upTo(i, m, func() {
			b.get(x)
			b.vmemory(vLoad32Splat, 0)
			b.set(factor)
			j, v, sum := b.let(0), b.let(values), b.let(y)
			b.upTo(j, cols, func() {
				for k := range 4 {
					b.get(sum, sum)
					b.vmemory(vLoad, 16*k)
					b.get(v)
					b.vmemory(vLoad, 16*k)
					b.get(factor)
					b.simd(f32x4Mul, f32x4Add)
					b.vmemory(vStore, 16*k)
				}
				b.add(sum, 64)
				b.add(v, 64)
				b.add(j, 16)
			})
			b.assign(x, x, member(callStride), plus)
			b.assign(y, y, member(callLDY), plus)
			b.add(i, 1)
		})
		b.assign(row, row, member(callRow), plus)
		b.add(r, 1)
	})
	b.constant(0)
	return b.function(typeRun)
}

// multiplyFunction multiplies rows of weights with rows of x, which are float32 or rounded to 8 bits.
func multiplyFunction(table int, rounded bool) function {
	b := blocksOperation()
	r, m, blocks := b.let(member(callLo)), b.let(member(callM)), b.let(member(callBlocks))
	row := b.let(member(callData), r, member(callRow), times, plus)
	values, i, j, t := b.let(b.c, callValues, plus), b.local(i32), b.local(i32), b.local(i32)
	// place is the offset of number i of some size in the call.
	place := func(i any, size int) local { return b.let(b.c, i, size, times, plus) }
	b.upTo(r, member(callHi), func() {
		for k := 0; k < callRows; k += 2 {
			b.get(b.c)
			b.vector([4]uint32{})
			b.vmemory(vStore, callTotals+8*k)
		}
		at := b.let(0)
		b.upTo(at, blocks, func() {
			n := b.lesser(member(callPiece), blocks, at, minus)
			values8 := func() {
				b.eval(at, member(callBlock), times)
			}
			switch {
			case rounded:
				b.applied(row, at, n, 0, kindScales)
				b.op(opDrop)
				b.eval(m, 1)
				b.op(opI32Ne)
				b.open(opIf)
				b.applied(row, at, n, 0, kindUnpack)
				b.op(opDrop)
				b.end()
			default:
				b.values(table, row, at, n, values)
			}
			b.assign(i, 0)
			b.upTo(i, m, func() {
				b.assign(t, b.lesser(tileRows, m, i, minus))
				if rounded {
					b.assign(j, 0)
					b.upTo(j, t, func() {
						b.eval(place(j, 4))
						b.eval(b.c, i, j, plus, j, at, member(callGroups), times, n, member(callGroups), times)
						b.call(funcWeigh)
						b.get(b.c)
						b.memory(opF32Load, callFactor)
						b.op(opF32Mul)
						b.memory(opF32Store, callMinima)
						b.add(j, 1)
					})
					b.eval(m, 1)
					b.op(opI32Eq)
					b.open(opIf)
					b.get(b.c)
					values8()
					x := b.let(2, times, member(callWide), plus)
					b.applied(row, at, n, x, kindProduct)
					b.memory(opF32Store, callParts)
					b.otherwise()
					b.eval(b.c, place(i, 8))
					values8()
					b.eval(2, times, n, member(callGroups), times)
					b.indirect(table, kindDots-1, typeDots, t, formats, times, plus)
					b.end()
				} else {
					values8()
					x := b.let(4, times, member(callX), plus, i, member(callStride), times, plus)
					b.eval(b.c, x, member(callStride), n, member(callBlock), times, t, table+formats*kinds-1, plus)
					b.index(opCallIndirect, typeDots)
					b.op(0)
				}
				b.assign(j, 0)
				b.upTo(j, t, func() {
					part, total := place(j, 4), b.let(b.c, i, j, plus, 8, times, plus)
					b.get(total, total)
					b.memory(opF64Load, callTotals)
					b.get(part)
					b.memory(opF32Load, callParts)
					b.op(opF64Promote)
					if rounded {
						b.get(part)
						b.memory(opF32Load, callMinima)
						b.op(opF64Promote, opF64Sub)
					}
					b.op(opF64Add)
					b.memory(opF64Store, callTotals)
					b.add(j, 1)
				})
				b.add(i, tileRows)
			})
			b.assign(at, at, n, plus)
		})
		b.assign(i, 0)
		b.upTo(i, m, func() {
			total := place(i, 8)
			b.eval(member(callY), i, member(callLDY), times, plus, r, 4, times, plus)
			b.get(total)
			b.memory(opF64Load, callTotals)
			b.op(opF32Demote)
			b.memory(opF32Store, 0)
			b.add(i, 1)
		})
		b.assign(row, row, member(callRow), plus)
		b.add(r, 1)
	})
	b.constant(0)
	return b.function(typeRun)
}
