package wasm

// Functions that come before the kernels.
const (
	funcLoad  = iota // (address, n) → the n elements there, at most a vector, and zeros
	funcStore        // (address, n, v): the first n lanes, at most a vector
	funcApply        // see applyFunction
	funcWeigh        // see weighFunction
	kernelFunctions
)

// loadFunction never reads an element that it does not return.
func loadFunction() function {
	const p, n = local(0), local(1)
	a := &assembler{params: 2}
	v := a.local(v128)
	compare := func(op byte, with int) {
		a.get(n)
		a.constant(with)
		a.op(op)
		a.open(opIf)
	}
	compare(opI32GeU, 4)
	a.get(p)
	a.vmemory(vLoad, 0)
	a.op(opReturn)
	a.end()
	compare(opI32Eq, 1)
	a.get(p)
	a.vmemory(vLoad32Zero, 0)
	a.op(opReturn)
	a.end()
	a.get(p)
	a.vmemory(vLoad64Zero, 0)
	a.set(v)
	compare(opI32Eq, 3)
	a.get(p, v)
	a.laneMemory(vLoad32Lane, 8, 2)
	a.set(v)
	a.end()
	a.get(v)
	return a.function(typeLoad)
}

func storeFunction() function {
	const p, n, v = local(0), local(1), local(2)
	a := &assembler{params: 3}
	compare := func(op byte, with int) {
		a.get(n)
		a.constant(with)
		a.op(op)
		a.open(opIf)
		a.get(p, v)
	}
	compare(opI32GeU, 4)
	a.vmemory(vStore, 0)
	a.op(opReturn)
	a.end()
	compare(opI32Eq, 1)
	a.laneMemory(vStore32Lane, 0, 0)
	a.op(opReturn)
	a.end()
	a.get(p, v)
	a.laneMemory(vStore64Lane, 0, 0)
	compare(opI32Eq, 3)
	a.laneMemory(vStore32Lane, 8, 2)
	a.end()
	return a.function(typeStore)
}

// runFunction calls the operation that the mailbox names.
func runFunction() function {
	a := &assembler{}
	a.index(opGlobalGet, globalBox)
	a.memory(opI32Load, boxOp)
	a.index(opCallIndirect, typeRun)
	a.op(0) // table
	return a.function(typeRun)
}
