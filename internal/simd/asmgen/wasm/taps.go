package wasm

// tapsFunction is the operation of gemm.Taps: pointers y, x, weights, offsets; words n, rows, the steps of y and x, and the number of
// taps, which is at least 1. Sums of a few vectors stay in registers for all taps.
func tapsFunction() function {
	const most = 6 // vectors: their sums, the weight and an operand fit the registers of amd64
	a := &assembler{}
	y, x, weights, offsets := a.pointer(0), a.pointer(1), a.pointer(2), a.pointer(3)
	n, rows, ystep, xstep, taps := a.word(0), a.word(1), a.stride(2), a.stride(3), a.word(4)
	to, from, left := a.local(i32), a.local(i32), a.local(i32)
	weight, offset, k, at := a.local(i32), a.local(i32), a.local(i32), a.local(i32)
	factor := a.local(v128)
	sums := make([]local, most)
	for i := range sums {
		sums[i] = a.local(v128)
	}
	// sum adds up all taps of some vectors; load pushes the operand's, whose address is in at.
	sum := func(sums []local, load func(i int)) {
		for _, s := range sums {
			a.vector([4]uint32{})
			a.set(s)
		}
		for _, l := range [][2]local{{weight, weights}, {offset, offsets}, {k, taps}} {
			a.get(l[1])
			a.set(l[0])
		}
		loop := a.open(opLoop)
		a.get(from, offset)
		a.memory(opI32Load, 0)
		a.constant(2)
		a.op(opI32Shl, opI32Add)
		a.set(at)
		a.get(weight)
		a.vmemory(vLoad32Splat, 0)
		a.set(factor)
		for i, s := range sums {
			a.get(s)
			load(i)
			a.get(factor)
			a.simd(f32x4Mul, f32x4Add)
			a.set(s)
		}
		a.add(weight, 4)
		a.add(offset, 4)
		a.get(k)
		a.constant(1)
		a.op(opI32Sub)
		a.tee(k)
		a.branch(opBrIf, loop)
		a.end()
	}

	down := a.open(opLoop)
	for _, l := range [][2]local{{to, y}, {from, x}, {left, n}} {
		a.get(l[1])
		a.set(l[0])
	}
	for _, vectors := range []int{most, 2, 1} {
		more := func() {
			a.get(left)
			a.constant(lanes * vectors)
			a.op(opI32GeU)
		}
		more()
		a.open(opIf)
		across := a.open(opLoop)
		sum(sums[:vectors], func(i int) {
			a.get(at)
			a.vmemory(vLoad, 16*i)
		})
		for i, s := range sums[:vectors] {
			a.get(to, s)
			a.vmemory(vStore, 16*i)
		}
		a.add(to, 16*vectors)
		a.add(from, 16*vectors)
		a.add(left, -lanes*vectors)
		more()
		a.branch(opBrIf, across)
		a.end()
		a.end()
	}
	a.get(left)
	a.open(opIf)
	sum(sums[:1], func(int) {
		a.get(at, left)
		a.call(funcLoad)
	})
	a.get(to, left, sums[0])
	a.call(funcStore)
	a.end()
	a.increase(y, ystep)
	a.increase(x, xstep)
	a.get(rows)
	a.constant(1)
	a.op(opI32Sub)
	a.tee(rows)
	a.branch(opBrIf, down)
	a.end()
	a.constant(0)
	return a.function(typeRun)
}
