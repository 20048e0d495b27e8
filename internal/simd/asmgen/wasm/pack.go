package wasm

// packFunction is the operation of gemm.transposeGo for four lanes: pointers are dst and the four rows; words are the width of
// the panel, and steps.
//
//	for p := range steps { for i := range 4 { dst[p*width+i] = rows[i][p] } }
func packFunction() function {
	a := &assembler{}
	dst := a.pointer(0)
	rows := make([]local, lanes)
	for i := range rows {
		rows[i] = a.pointer(1 + i)
	}
	width, k := a.stride(0), a.word(1)
	in := make([]local, lanes)
	for i := range in {
		in[i] = a.local(v128)
	}
	loop := func(steps int, body func()) {
		more := func() {
			a.get(k)
			a.constant(steps)
			a.op(opI32GeU)
		}
		more()
		a.open(opIf)
		again := a.open(opLoop)
		body()
		for _, row := range rows {
			a.add(row, 4*steps)
		}
		a.add(k, -steps)
		more()
		a.branch(opBrIf, again)
		a.end()
		a.end()
	}
	loop(lanes, func() {
		for i, row := range rows {
			a.get(row)
			a.vmemory(vLoad, 0)
			a.set(in[i])
		}
		a.transpose(in)
		for _, l := range in {
			a.get(dst, l)
			a.vmemory(vStore, 0)
			a.increase(dst, width)
		}
	})
	loop(1, func() {
		a.get(dst)
		a.get(rows[0])
		a.vmemory(vLoad32Zero, 0)
		for i := 1; i < lanes; i++ {
			a.set(in[0])
			a.get(rows[i], in[0])
			a.laneMemory(vLoad32Lane, 0, i)
		}
		a.vmemory(vStore, 0)
		a.increase(dst, width)
	})
	a.constant(0)
	return a.function(typeRun)
}

// transpose transposes the 4×4 elements of four vectors.
func (a *assembler) transpose(v []local) {
	t := make([]local, lanes)
	pick := func(to, x, y local, l0, l1, l2, l3 int) {
		a.get(x, y)
		a.shuffle(l0, l1, l2, l3)
		a.set(to)
	}
	for i := range t {
		t[i] = a.local(v128)
	}
	pick(t[0], v[0], v[1], 0, 4, 1, 5) // 00 10 01 11
	pick(t[1], v[0], v[1], 2, 6, 3, 7) // 02 12 03 13
	pick(t[2], v[2], v[3], 0, 4, 1, 5)
	pick(t[3], v[2], v[3], 2, 6, 3, 7)
	pick(v[0], t[0], t[2], 0, 1, 4, 5)
	pick(v[1], t[0], t[2], 2, 3, 6, 7)
	pick(v[2], t[1], t[3], 0, 1, 4, 5)
	pick(v[3], t[1], t[3], 2, 3, 6, 7)
}

// transposeFunction is the operation of kernels.transposeTiles for tiles of 4×4: pointers are dst and src; words are ldd and lds
// in elements, and the number of tiles, which is not 0.
func transposeFunction() function {
	a := &assembler{}
	dst, src := a.pointer(0), a.pointer(1)
	ldd, lds, n := a.stride(0), a.stride(1), a.word(2)
	v := make([]local, lanes)
	for i := range v {
		v[i] = a.local(v128)
	}
	to := a.local(i32)
	loop := a.open(opLoop)
	for _, l := range v {
		a.get(src)
		a.vmemory(vLoad, 0)
		a.set(l)
		a.increase(src, lds)
	}
	a.transpose(v)
	a.get(dst)
	a.set(to)
	for i, l := range v {
		a.get(to, l)
		a.vmemory(vStore, 0)
		if i < lanes-1 {
			a.increase(to, ldd)
		}
	}
	a.add(dst, 4*lanes)
	a.add(n, -1)
	a.get(n)
	a.branch(opBrIf, loop)
	a.end()
	a.constant(0)
	return a.function(typeRun)
}
