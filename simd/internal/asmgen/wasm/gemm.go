package wasm

// The macro-kernel of matrix products: one call does a whole block, since calls from Go cost more than a tile.

// Its tile: 4×8 elements are 8 vectors, which with their operands fit the 15 registers that engines have to give on amd64.
const (
	tileRows = 4
	tileCols = 8

	tileVectors = tileCols / lanes
	tileUnroll  = 4 // steps of the inner dimension per step of the loop
)

// Offsets of the fields of gemm.Block.
const (
	blockA = 8 * iota
	blockB
	blockC
	blockM
	blockN
	blockK
	blockLDC
	blockAlpha
	blockBeta = blockAlpha + 4
)

const blockOp = "opBlock"

// blockFunction is the operation on packed operands that gemm.Block describes, which the first pointer points to. Tile kernels
// are in the table from tiles on.
func blockFunction(tiles int) function {
	a := &assembler{}
	block := a.local(i32)
	a.index(opGlobalGet, globalBox)
	a.memory(opI32Load, boxPointers)
	a.set(block)
	field := func(typ byte, offset int) local {
		l := a.local(typ)
		a.get(block)
		a.memory(map[byte]byte{i32: opI32Load, f32: opF32Load}[typ], offset)
		a.set(l)
		return l
	}
	pa, pb, pc := field(i32, blockA), field(i32, blockB), field(i32, blockC)
	m, n, k, ldc := field(i32, blockM), field(i32, blockN), field(i32, blockK), field(i32, blockLDC)
	alpha, beta := field(f32, blockAlpha), field(f32, blockBeta)
	a.get(ldc) // in bytes
	a.constant(2)
	a.op(opI32Shl)
	a.set(ldc)

	// Panels of A are as gemm.panels cuts them.
	count, height, tall := a.local(i32), a.local(i32), a.local(i32)
	a.get(m)
	a.constant(tileRows - 1)
	a.op(opI32Add)
	a.constant(tileRows)
	a.op(opI32DivU)
	a.set(count)
	for _, l := range []struct {
		result local
		op     byte
	}{{height, opI32DivU}, {tall, opI32RemU}} {
		a.get(m, count)
		a.op(l.op)
		a.set(l.result)
	}

	cols, i, rows, ai, ci := a.local(i32), a.local(i32), a.local(i32), a.local(i32), a.local(i32)
	columns := a.open(opLoop)
	a.get(n) // cols = min(n, tileCols)
	a.constant(tileCols)
	a.get(n)
	a.constant(tileCols)
	a.op(opI32LtU, opSelect)
	a.set(cols)
	a.constant(0)
	a.set(i)
	a.get(pa)
	a.set(ai)
	a.get(pc)
	a.set(ci)

	panels := a.open(opLoop)
	a.get(height, i, tall) // rows = height, and 1 in the first panels
	a.op(opI32LtU, opI32Add)
	a.set(rows)
	a.get(ai, pb, ci, k, ldc, cols, alpha, beta)
	a.get(rows) // tiles + (rows-1)·tileVectors + (cols-1)/lanes
	a.constant(tileVectors)
	a.op(opI32Mul)
	a.constant(tiles - tileVectors)
	a.op(opI32Add)
	a.get(cols)
	a.constant(1)
	a.op(opI32Sub)
	a.constant(lanes)
	a.op(opI32DivU, opI32Add)
	a.index(opCallIndirect, typeTile)
	a.op(0)
	a.get(ai, rows, k) // ai += rows·k·4
	a.op(opI32Mul)
	a.constant(2)
	a.op(opI32Shl, opI32Add)
	a.set(ai)
	a.get(ci, rows, ldc) // ci += rows·ldc
	a.op(opI32Mul, opI32Add)
	a.set(ci)
	a.add(i, 1)
	a.get(i, count)
	a.op(opI32LtU)
	a.branch(opBrIf, panels)
	a.end()

	a.get(pb, k)
	a.constant(4 * tileCols)
	a.op(opI32Mul, opI32Add)
	a.set(pb)
	a.add(pc, 4*tileCols)
	a.get(n, cols)
	a.op(opI32Sub)
	a.tee(n)
	a.branch(opBrIf, columns)
	a.end()
	a.constant(0)
	return a.function(typeRun)
}

// tileFunction multiplies a panel of A of some rows by a panel of B of some vectors:
// (a, b, c, k, ldc in bytes, columns, alpha, beta). Of C it reads and writes no other elements than those of the columns.
func tileFunction(rows, vectors int) function {
	const pa, pb, pc, k, ldc, cols, alpha, beta = local(0), local(1), local(2), local(3), local(4), local(5), local(6), local(7)
	a := &assembler{params: 8}
	sums := make([][]local, rows)
	for r := range sums {
		for range vectors {
			sums[r] = append(sums[r], a.local(v128)) // zeros
		}
	}
	row := a.local(v128)
	right := make([]local, vectors)
	for v := range right {
		right[v] = a.local(v128)
	}
	steps := func(count int) {
		for p := range count {
			for v, l := range right {
				a.get(pb)
				a.vmemory(vLoad, 16*(p*vectors+v))
				a.set(l)
			}
			for r := range rows {
				a.get(pa)
				a.vmemory(vLoad32Splat, 4*(p*rows+r))
				a.set(row)
				for v, sum := range sums[r] {
					a.get(sum, row, right[v])
					a.simd(f32x4Mul, f32x4Add)
					a.set(sum)
				}
			}
		}
		a.add(pa, 4*count*rows)
		a.add(pb, 16*count*vectors)
		a.add(k, -count)
	}
	for _, count := range []int{tileUnroll, 1} {
		a.get(k)
		a.constant(count)
		a.op(opI32GeU)
		a.open(opIf)
		loop := a.open(opLoop)
		steps(count)
		a.get(k)
		a.constant(count)
		a.op(opI32GeU)
		a.branch(opBrIf, loop)
		a.end()
		a.end()
	}

	factor := a.local(v128)
	a.get(alpha)
	a.simd(f32x4Splat)
	a.set(factor)
	for _, row := range sums {
		for _, sum := range row {
			a.get(sum, factor)
			a.simd(f32x4Mul)
			a.set(sum)
		}
	}
	a.get(beta)
	a.simd(f32x4Splat)
	a.set(factor)
	at, rest := a.local(i32), a.local(i32)
	a.get(cols) // in the last vector
	a.constant(lanes * (vectors - 1))
	a.op(opI32Sub)
	a.set(rest)
	// each pushes the address of every vector and calls f, which gets its offset; masked ones take rest elements.
	each := func(f func(sum local, offset int, masked bool)) {
		pass := func(masked bool) {
			a.get(pc)
			a.set(at)
			for r, row := range sums {
				for v, sum := range row {
					f(sum, 16*v, masked && v == vectors-1)
				}
				if r < rows-1 {
					a.get(at, ldc)
					a.op(opI32Add)
					a.set(at)
				}
			}
		}
		a.get(rest)
		a.constant(lanes)
		a.op(opI32Eq)
		a.open(opIf)
		pass(false)
		a.otherwise()
		pass(true)
		a.end()
	}
	address := func(offset int) { // of a masked vector
		a.get(at)
		a.constant(offset)
		a.op(opI32Add)
		a.get(rest)
	}

	a.get(beta)
	a.f32(0)
	a.op(opF32Ne)
	a.open(opIf)
	each(func(sum local, offset int, masked bool) {
		if masked {
			address(offset)
			a.call(funcLoad)
		} else {
			a.get(at)
			a.vmemory(vLoad, offset)
		}
		a.get(factor)
		a.simd(f32x4Mul)
		a.get(sum)
		a.simd(f32x4Add)
		a.set(sum)
	})
	a.end()
	each(func(sum local, offset int, masked bool) {
		if masked {
			address(offset)
			a.get(sum)
			a.call(funcStore)
		} else {
			a.get(at, sum)
			a.vmemory(vStore, offset)
		}
	})
	return a.function(typeTile)
}
