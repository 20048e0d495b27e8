package wasm

// Code for matrix products. The macro-kernel does a whole block in a call, which costs less than a call for every tile.

// A tile's sums and their operands fit the 15 vector registers that engines have to give on amd64. Package gemm knows these
// numbers as its shape.
const (
	tileRows = 4
	tileCols = 12

	tileVectors = tileCols / lanes
)

// field loads a field of the mailbox into a new variable.
func (a *assembler) field(typ byte, offset int) local {
	l := a.local(typ)
	a.index(opGlobalGet, globalBox)
	switch typ {
	case i32:
		a.memory(opI32Load, offset)
	case f32:
		a.memory(opF32Load, offset)
	}
	a.set(l)
	return l
}

func (a *assembler) pointer(i int) local { return a.field(i32, boxPointers+8*i) }
func (a *assembler) word(i int) local    { return a.field(i32, boxWords+4*i) }
func (a *assembler) param(i int) local   { return a.field(f32, boxParams+4*i) }

// stride is a word of the mailbox in elements, as bytes.
func (a *assembler) stride(i int) local {
	l := a.word(i)
	a.get(l)
	a.constant(2)
	a.op(opI32Shl)
	a.set(l)
	return l
}

// increase adds a variable to another.
func (a *assembler) increase(l, by local) {
	a.get(l, by)
	a.op(opI32Add)
	a.set(l)
}

// tileIndex pushes the place in the table, from first on, of the function for a tile of some rows and columns.
func (a *assembler) tileIndex(first int, rows, cols local) {
	a.get(rows)
	a.constant(tileVectors)
	a.op(opI32Mul)
	a.get(cols)
	a.constant(lanes - 1)
	a.op(opI32Add)
	a.constant(lanes)
	a.op(opI32DivU, opI32Add)
	a.constant(first - tileVectors - 1)
	a.op(opI32Add)
}

// eachTile returns the functions of all tiles in the order of tileIndex.
func eachTile(f func(rows, vectors int) function) (l []function) {
	for rows := 1; rows <= tileRows; rows++ {
		for vectors := 1; vectors <= tileVectors; vectors++ {
			l = append(l, f(rows, vectors))
		}
	}
	return l
}

// blockFunction is the operation of gemm.Block: pointers A, B, C; words M, N, K, LDC; parameters alpha, beta. The functions
// of packed tiles are in the table from packed on.
func blockFunction(packed int) function {
	a := &assembler{}
	left, right, c := a.pointer(0), a.pointer(1), a.pointer(2)
	m, n, k, ldc := a.word(0), a.word(1), a.word(2), a.stride(3)
	alpha, beta := a.param(0), a.param(1)

	// Panels of A are as gemm.panels cuts them.
	count, height, tall := a.local(i32), a.local(i32), a.local(i32)
	a.get(m)
	a.constant(tileRows - 1)
	a.op(opI32Add)
	a.constant(tileRows)
	a.op(opI32DivU)
	a.set(count)
	a.get(m, count)
	a.op(opI32DivU)
	a.set(height)
	a.get(m, count)
	a.op(opI32RemU)
	a.set(tall)

	cols, i, rows, panel, row := a.local(i32), a.local(i32), a.local(i32), a.local(i32), a.local(i32)
	across := a.open(opLoop)
	a.get(n) // cols = min(n, tileCols)
	a.constant(tileCols)
	a.get(n)
	a.constant(tileCols)
	a.op(opI32LtU, opSelect)
	a.set(cols)
	a.constant(0)
	a.set(i)
	a.get(left)
	a.set(panel)
	a.get(c)
	a.set(row)

	down := a.open(opLoop)
	a.get(height, i, tall) // rows = height, and 1 in the first panels
	a.op(opI32LtU, opI32Add)
	a.set(rows)
	a.get(panel, right, row, k, ldc, cols, alpha, beta)
	a.tileIndex(packed, rows, cols)
	a.index(opCallIndirect, typePacked)
	a.op(0)
	a.get(panel, rows, k) // panel += 4·rows·k
	a.op(opI32Mul)
	a.constant(2)
	a.op(opI32Shl, opI32Add)
	a.set(panel)
	a.get(row, rows, ldc) // row += rows·ldc
	a.op(opI32Mul, opI32Add)
	a.set(row)
	a.add(i, 1)
	a.get(i, count)
	a.op(opI32LtU)
	a.branch(opBrIf, down)
	a.end()

	a.get(right, k)
	a.constant(4 * tileCols)
	a.op(opI32Mul, opI32Add)
	a.set(right)
	a.add(c, 4*tileCols)
	a.get(n, cols)
	a.op(opI32Sub)
	a.tee(n)
	a.branch(opBrIf, across)
	a.end()
	a.constant(0)
	return a.function(typeRun)
}

// tileFunction is the operation of gemm.Tile: pointers A, B, C; words K, AI, AK, BK, LDC, Rows, Cols; parameters alpha, beta.
// The functions of tiles with strides are in the table from strided on.
func tileFunction(strided int) function {
	a := &assembler{}
	operands := []local{a.pointer(0), a.pointer(1), a.pointer(2), a.word(0), a.stride(1), a.stride(2), a.stride(3), a.stride(4)}
	rows, cols := a.word(5), a.word(6)
	alpha, beta := a.param(0), a.param(1)
	a.get(operands...)
	a.get(cols, alpha, beta)
	a.tileIndex(strided, rows, cols)
	a.index(opCallIndirect, typeStrided)
	a.op(0)
	a.constant(0)
	return a.function(typeRun)
}

// tile writes the functions of tiles of some rows and vectors.
type tile struct {
	*assembler
	rows, vectors int
	sums          [][]local
	row           local // an element of A in all lanes
	right         []local
}

func newTile(params, rows, vectors int) *tile {
	t := &tile{assembler: &assembler{params: params}, rows: rows, vectors: vectors}
	// All tiles have the variables of the largest, so that what they have in common has the same bytes.
	some := func(n int) (l []local) {
		for range tileVectors {
			l = append(l, t.local(v128)) // zeros
		}
		return l[:n]
	}
	for range tileRows {
		t.sums = append(t.sums, some(vectors))
	}
	t.sums, t.row, t.right = t.sums[:rows], t.local(v128), some(vectors)
	return t
}

// loop repeats steps of the inner dimension, in groups of the first count, then one at a time.
func (t *tile) loop(k local, counts []int, steps func(count int)) {
	for _, count := range counts {
		more := func() {
			t.get(k)
			t.constant(count)
			t.op(opI32GeU)
		}
		more()
		t.open(opIf)
		loop := t.open(opLoop)
		steps(count)
		t.add(k, -count)
		more()
		t.branch(opBrIf, loop)
		t.end()
		t.end()
	}
}

// step adds the products of a step; the functions push an element of A in all lanes and a vector of B.
func (t *tile) step(element func(row int), vector func(v int)) {
	for v, l := range t.right {
		vector(v)
		t.set(l)
	}
	for r, sums := range t.sums {
		element(r)
		t.set(t.row)
		for v, sum := range sums {
			t.get(sum, t.row, t.right[v])
			t.simd(f32x4Mul, f32x4Add)
			t.set(sum)
		}
	}
}

// packedTile multiplies packed panels: (a, b, c, k, ldc in bytes, columns, alpha, beta).
func packedTile(rows, vectors int) function {
	const left, right, c, k, ldc, cols, alpha, beta = local(0), local(1), local(2), local(3), local(4), local(5), local(6), local(7)
	t := newTile(8, rows, vectors)
	t.loop(k, []int{4, 1}, func(count int) {
		for p := range count {
			t.step(func(row int) {
				t.get(left)
				t.vmemory(vLoad32Splat, 4*(p*rows+row))
			}, func(v int) {
				t.get(right)
				t.vmemory(vLoad, 16*(p*vectors+v))
			})
		}
		t.add(left, 4*count*rows)
		t.add(right, 16*count*vectors)
	})
	t.result(c, ldc, cols, alpha, beta)
	return t.function(typePacked)
}

// stridedTile multiplies operands as they lie: (a, b, c, k, ai, ak, bk, ldc, columns, alpha, beta), strides in bytes.
func stridedTile(rows, vectors int) function {
	const left, right, c, k, ai, ak, bk = local(0), local(1), local(2), local(3), local(4), local(5), local(6)
	const ldc, cols, alpha, beta = local(7), local(8), local(9), local(10)
	t := newTile(11, rows, vectors)
	offsets := make([]local, tileRows) // of rows of A
	for r := range offsets {
		offsets[r] = t.local(i32)
	}
	for r := 1; r < rows; r++ {
		t.get(ai)
		t.constant(r)
		t.op(opI32Mul)
		t.set(offsets[r])
	}
	t.loop(k, []int{1}, func(int) {
		t.step(func(row int) {
			t.get(left)
			if row > 0 {
				t.get(offsets[row])
				t.op(opI32Add)
			}
			t.vmemory(vLoad32Splat, 0)
		}, func(v int) {
			t.get(right)
			t.vmemory(vLoad, 16*v)
		})
		t.increase(left, ak)
		t.increase(right, bk)
	})
	t.result(c, ldc, cols, alpha, beta)
	return t.function(typeStrided)
}

// result makes C = alpha·sums + beta·C. It reads and writes no elements beyond the columns, and reads none if beta is 0.
func (t *tile) result(c, ldc, cols, alpha, beta local) {
	factor := t.local(v128)
	t.get(alpha)
	t.simd(f32x4Splat)
	t.set(factor)
	for _, sums := range t.sums {
		for _, sum := range sums {
			t.get(sum, factor)
			t.simd(f32x4Mul)
			t.set(sum)
		}
	}
	rest := t.local(i32) // columns in the last vector
	t.get(cols)
	t.constant(lanes * (t.vectors - 1))
	t.op(opI32Sub)
	t.set(rest)

	t.get(beta)
	t.simd(f32x4Splat)
	t.set(factor)
	t.get(beta)
	t.f32(0)
	t.op(opF32Ne)
	t.open(opIf)
	t.each(c, ldc, rest, func(sum local, offset int, address func(), masked bool) {
		address()
		if masked {
			t.get(rest)
			t.call(funcLoad)
		} else {
			t.vmemory(vLoad, offset)
		}
		t.get(factor)
		t.simd(f32x4Mul)
		t.get(sum)
		t.simd(f32x4Add)
		t.set(sum)
	})
	t.end()
	t.each(c, ldc, rest, func(sum local, offset int, address func(), masked bool) {
		address()
		if masked {
			t.get(rest, sum)
			t.call(funcStore)
		} else {
			t.get(sum)
			t.vmemory(vStore, offset)
		}
	})
}

// each calls f for every vector of the tile, twice: as code for tiles whose columns fill the vectors, and for those whose last
// vectors are masked. Address pushes the address of the vector without the offset, of masked ones with it.
func (t *tile) each(c, ldc, rest local, f func(sum local, offset int, address func(), masked bool)) {
	at := t.local(i32)
	pass := func(some bool) {
		t.get(c)
		t.set(at)
		for r, sums := range t.sums {
			for v, sum := range sums {
				masked := some && v == t.vectors-1
				f(sum, 16*v, func() {
					t.get(at)
					if masked && v > 0 {
						t.constant(16 * v)
						t.op(opI32Add)
					}
				}, masked)
			}
			if r < t.rows-1 {
				t.increase(at, ldc)
			}
		}
	}
	t.get(rest)
	t.constant(lanes)
	t.op(opI32Eq)
	t.open(opIf)
	pass(false)
	t.otherwise()
	pass(true)
	t.end()
}
