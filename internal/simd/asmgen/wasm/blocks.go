package wasm

// Code for weights in GGML's block formats: operations of package blocks, whole products each. Rows of weights are read a
// piece at a time. Its scales become float32, and its integers 16 bits each, of every 16 values those of even places before
// those of odd ones: the halves of 16-bit lanes are unpacked by shifts and masks alone, and i32x4.dot_i16x8_s multiplies
// them. Activations of 8 bits are in the same order. Where the engine has relaxed SIMD, which multiplies bytes, both stay bytes. What
// follows knows no formats; products with a single row of activations keep scales and integers in registers.

// A call's operands and scratch memory are a structure whose address is the first pointer of the mailbox: blocks/side_js.go
// declares it and says what the fields are. These are the fields' offsets.
const (
	callY        = 0
	callData     = 8
	callX        = 16
	callWide     = 24 // eight pointers each
	callScale    = callWide + 8*callRows
	callSum      = callScale + 8*callRows
	callFormat   = callSum + 8*callRows
	callBlock    = callFormat + 4
	callGroups   = callFormat + 8
	callRow      = callFormat + 12
	callLo       = callFormat + 16
	callHi       = callFormat + 20
	callAt       = callFormat + 24
	callBlocks   = callFormat + 28
	callPiece    = callFormat + 32
	callM        = callFormat + 36
	callLDY      = callFormat + 40
	callStride   = callFormat + 44
	callLeast    = callFormat + 48
	callOffset   = callFormat + 52
	callFactor   = callFormat + 56
	callBytes    = callFormat + 60
	callTile     = callFormat + 64 // rows of weights at a time
	callStep     = callFormat + 68 // bytes from one of them to the next
	callInfinite = callFormat + 72 // not 0 if scales of them are Inf or NaN
	callBase     = callFormat + 76 // of planes 1 and 2
	callSize     = callBase + 8    // of planes 0, 1 and 2
	callTotals   = callSize + 12
	callParts    = callTotals + 8*callRows
	callMinima   = callParts + 4*tileRows
	callSettled  = callMinima + 4*tileRows
	callLanes    = callSettled + 16
	callA        = callLanes + 16*tileRows
	callB        = callA + 4*(callPieceLen/16+4)
	callS        = callB + 4*(callPieceLen/16+4)
	callZeros    = callS + tileRows*scalesLen
	callQ        = callZeros + 4*callPieceLen/16
	callValues   = callQ + 2*callPieceLen
	callEnd      = callValues + 4*callPieceLen

	callRows     = 8    // of activations
	callPieceLen = 2048 // values of a piece
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
	kindScales  = iota                // typeBlocks: to callA and callB
	kindUnpack                        // typeBlocks: to callQ
	kindProduct                       // typeBlocks: of rows of weights with one of x, to parts
	kindExpand                        // typeExpand
	kindDots                          // typeDots, for tiles of one row and more
	kindBytes   = kindDots + tileRows // what follows is kindProduct, kindUnpack and kindDots in bytes, where the engine has relaxed SIMD

	kindBytesUnpack = kindBytes + 1
	kindBytesDots   = kindBytes + 2
	kinds           = kindBytesDots + tileRows
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
	b.scope(do)
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

// applyFunction calls the function of a kind with n blocks of a row, from a block on: (c, row, block, n, block of x, kind).
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
func (b *blocks) applied(row, block, n local, x, kind any) {
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
	b.unpacked(row, block, n, kindUnpack)
	b.eval(b.c, to, n, member(callGroups), times)
	b.indirect(table, kindExpand, typeExpand)
}

func (b *blocks) unpacked(row, block, n local, unpack any) {
	for _, kind := range []any{kindScales, unpack} {
		b.applied(row, block, n, 0, kind)
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

// oneRowFunction multiplies rows of weights, some at a time, with a row of x that is rounded to 8 bits. Those that it multiplies together
// are a share of all rows apart: each is a stream of memory that goes on in the next, and is read ahead even if rows are short. Those with
// scales that are Inf or NaN are left to multiply, which is for several rows of x.
func oneRowFunction(multiply int) function {
	b := blocksOperation()
	r, hi, blocks := b.let(member(callLo)), b.let(member(callHi)), b.let(member(callBlocks))
	row, y := b.let(member(callData), r, member(callRow), times, plus), b.let(member(callY), r, 4, times, plus)
	share := b.let(hi, r, minus, tileRows-1, plus, tileRows, ins(opI32DivU))
	b.eval(b.c, share, member(callRow), times)
	b.memory(opI32Store, callStep)
	end := b.let(r, share, plus)
	kind := b.let(kindProduct, member(callBytes), kindBytes-kindProduct, times, plus)
	totals, part := b.vectors(2), b.local(v128)
	b.upTo(r, end, func() {
		tile := b.lesser(tileRows, hi, r, minus, share, plus, 1, minus, share, ins(opI32DivU))
		store := func(field int, items ...any) {
			b.eval(append([]any{b.c}, items...)...)
			b.memory(opI32Store, field)
		}
		store(callTile, tile)
		store(callInfinite, 0)
		for _, total := range totals {
			b.splat(0)
			b.set(total)
		}
		at := b.let(0)
		b.upTo(at, blocks, func() {
			n := b.lesser(member(callPiece), blocks, at, minus)
			b.applied(row, at, n, at, kind)
			b.get(b.c)
			b.vmemory(vLoad, callParts)
			b.set(part)
			for i, total := range totals {
				b.get(total, part, part)
				b.shuffle(2*i, 2*i+1, 2, 3)
				b.simd(f64x2Promote, f64x2Add)
				b.set(total)
			}
			b.assign(at, at, n, plus)
		})
		for _, total := range totals {
			b.get(total)
			b.simd(f32x4Demote)
		}
		b.shuffle(0, 1, 4, 5)
		b.set(part)
		b.get(y, part)
		b.laneMemory(vStore32Lane, 0, 0)
		to := b.let(y)
		for j := range tileRows - 1 {
			b.eval(j+1, tile, below)
			b.open(opIf)
			b.assign(to, to, share, 4, times, plus)
			b.get(to, part)
			b.laneMemory(vStore32Lane, 0, j+1)
			b.end()
		}
		b.eval(member(callInfinite))
		b.open(opIf)
		store(callPiece, callPieceLen, member(callBlock), ins(opI32DivU)) // what is unpacked has room
		one := b.let(r)
		b.upTo(one, hi, func() {
			store(callLo, one)
			store(callHi, one, 1, plus)
			b.call(multiply)
			b.op(opDrop)
			b.assign(one, one, share, plus)
		})
		b.end()
		b.assign(row, row, member(callRow), plus)
		b.add(y, 4)
		b.add(r, 1)
	})
	b.constant(0)
	return b.function(typeRun)
}

// place is the offset of number i of some size in the call.
func (b *blocks) place(i any, size int) local { return b.let(b.c, i, size, times, plus) }

// clearTotals makes n sums 0, an even number.
func (b *blocks) clearTotals(n int) {
	for k := 0; k < n; k += 2 {
		b.get(b.c)
		b.vector([4]uint32{})
		b.vmemory(vStore, callTotals+8*k)
	}
}

// weighed has the scales of n blocks weighed with row i of x, as those of row j of a tile, and stores what is subtracted.
func (b *blocks) weighed(i any, j, at, n local) {
	b.eval(b.place(j, 4), b.c, i, j, at, member(callGroups), times, n, member(callGroups), times)
	b.call(funcWeigh)
	b.get(b.c)
	b.memory(opF32Load, callFactor)
	b.op(opF32Mul)
	b.memory(opF32Store, callMinima)
}

// added adds a part to a total.
func (b *blocks) added(total, part local, rounded bool) {
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
}

// result stores a total at the address that is pushed.
func (b *blocks) result(total local) {
	b.get(total)
	b.memory(opF64Load, callTotals)
	b.op(opF32Demote)
	b.memory(opF32Store, 0)
}

// multiplyFunction multiplies rows of weights with rows of x, which are float32 or rounded to 8 bits.
func multiplyFunction(table, floats int, rounded bool) function {
	b := blocksOperation()
	r, m, blocks := b.let(member(callLo)), b.let(member(callM)), b.let(member(callBlocks))
	row := b.let(member(callData), r, member(callRow), times, plus)
	values, i, j, t := b.let(b.c, callValues, plus), b.local(i32), b.local(i32), b.local(i32)
	b.upTo(r, member(callHi), func() {
		b.clearTotals(callRows)
		at := b.let(0)
		b.upTo(at, blocks, func() {
			n := b.lesser(member(callPiece), blocks, at, minus)
			first := b.let(at, member(callBlock), times) // value
			if rounded {
				b.unpacked(row, at, n, b.let(kindUnpack, member(callBytes), kindBytesUnpack-kindUnpack, times, plus))
			} else {
				b.values(table, row, at, n, values)
			}
			b.assign(i, 0)
			b.upTo(i, m, func() {
				b.assign(t, b.lesser(tileRows, m, i, minus))
				if rounded {
					b.assign(j, 0)
					b.upTo(j, t, func() {
						b.weighed(b.let(i, j, plus), j, at, n)
						b.add(j, 1)
					})
					b.eval(b.c, b.place(i, 8))
					b.eval(first, 2, member(callBytes), minus, times, n, member(callGroups), times)
					kind := b.let(member(callBytes), kindBytesDots-kindDots, times, t, plus)
					b.indirect(table, kindDots-1, typeDots, kind, formats, times, plus)
				} else {
					x := b.let(first, 4, times, member(callX), plus, i, member(callStride), times, plus)
					b.eval(b.c, x, member(callStride), n, member(callBlock), times, t, floats-1, plus)
					b.index(opCallIndirect, typeDots)
					b.op(0)
				}
				b.assign(j, 0)
				b.upTo(j, t, func() {
					b.added(b.let(b.c, i, j, plus, 8, times, plus), b.place(j, 4), rounded)
					b.add(j, 1)
				})
				b.add(i, tileRows)
			})
			b.assign(at, at, n, plus)
		})
		b.assign(i, 0)
		b.upTo(i, m, func() {
			b.eval(member(callY), i, member(callLDY), times, plus, r, 4, times, plus)
			b.result(b.place(i, 8))
			b.add(i, 1)
		})
		b.assign(row, row, member(callRow), plus)
		b.add(r, 1)
	})
	b.constant(0)
	return b.function(typeRun)
}
