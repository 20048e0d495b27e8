package wasm

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

const lanes = 4 // of a vector

// features are those of SIMD128. Relaxed SIMD has FMA, with results that differ between machines; see productFunction.
var features = ir.Features{Round: true}

// kernel is the state of a translation.
type kernel struct {
	*assembler
	body   *ir.Body
	unroll int

	uses     map[*ir.Node]int
	rest     local   // elements to do
	pointers []local // inputs, and last y
	params   []local
	acc      [][]local // by accumulator, by copy
	results  [][]local // of a copy of the body: guard, what is stored, accumulators

	// Of the copy of the body that is being written:
	copy  int
	tail  bool
	value map[*ir.Node]local
}

// kernelFunction translates a kernel.
//
// The main loop does as many vectors a step as the kernel is unrolled. What is left is done by steps of one vector in which
// only the lanes count that there are elements for; the helpers load and store no others.
func kernelFunction(k *ir.Kernel) (function, error) {
	body := k.Build(features)
	t := &kernel{assembler: &assembler{}, body: body, unroll: max(k.Unroll, 1), uses: map[*ir.Node]int{}}
	pointers := len(k.Inputs)
	unmerged := len(body.Accumulators) > 0 && body.Accumulators[0].Merge == ir.MergeNone
	results := len(body.Accumulators)
	unmergedResults := 0
	if unmerged {
		results, unmergedResults = 0, results
	}
	if body.Store != nil {
		pointers++
	}
	if pointers > maxPointers || len(k.Params) > maxParams || results > maxResults || unmergedResults > maxUnmerged {
		return function{}, fmt.Errorf("%s: the mailbox has no room for %d pointers, %d parameters and %d results",
			k.Name, pointers, len(k.Params), results)
	}
	if t.unroll*lanes > ir.Lanes {
		return function{}, fmt.Errorf("%s: %d lanes are more than %d", k.Name, t.unroll*lanes, ir.Lanes)
	}
	for _, n := range body.Nodes {
		for _, arg := range n.Args {
			t.uses[arg]++
		}
	}
	t.uses[body.Store]++
	t.uses[body.Guard]++
	for _, a := range body.Accumulators {
		t.uses[a.Next]++
	}

	t.prologue(k)
	stop := t.open(opBlock)
	t.mainLoop(stop)
	t.tailLoop(stop)
	t.end()
	t.epilogue(unmerged)
	return t.function(typeRun), nil
}

func (t *kernel) prologue(k *ir.Kernel) {
	slot := boxPointers
	pointer := func() local {
		l := t.local(i32)
		t.index(opGlobalGet, globalBox)
		t.memory(opI32Load, slot)
		t.set(l)
		slot += 8
		return l
	}
	var y local
	if t.body.Store != nil {
		y = pointer()
	}
	for range k.Inputs {
		t.pointers = append(t.pointers, pointer())
	}
	if t.body.Store != nil {
		t.pointers = append(t.pointers, y)
	}
	for i := range k.Params {
		t.params = append(t.params, t.local(v128))
		t.index(opGlobalGet, globalBox)
		t.vmemory(vLoad32Splat, boxParams+4*i)
		t.set(t.params[i])
	}
	for _, a := range t.body.Accumulators {
		var copies []local
		for range t.unroll {
			l := t.local(v128)
			t.splat(a.Init)
			t.set(l)
			copies = append(copies, l)
		}
		t.acc = append(t.acc, copies)
	}
	t.rest = t.local(i32)
	t.index(opGlobalGet, globalBox)
	t.memory(opI32Load, boxN)
	t.set(t.rest)
}

func (t *kernel) mainLoop(stop label) {
	step := t.unroll * lanes
	more := func() {
		t.get(t.rest)
		t.constant(step)
		t.op(opI32GeU)
	}
	more()
	t.open(opIf)
	loop := t.open(opLoop)
	t.step(stop, t.unroll, false)
	t.add(t.rest, -step)
	more()
	t.branch(opBrIf, loop)
	t.end()
	t.end()
}

func (t *kernel) tailLoop(stop label) {
	t.get(t.rest)
	t.open(opIf)
	loop := t.open(opLoop)
	t.step(stop, 1, true)
	t.get(t.rest) // the rest is less by lanes, but not below 0
	t.constant(lanes)
	t.op(opI32Sub)
	t.constant(0)
	t.get(t.rest)
	t.constant(lanes)
	t.op(opI32GtU, opSelect)
	t.tee(t.rest)
	t.branch(opBrIf, loop)
	t.end()
	t.end()
}

// step writes a step of a loop: the values of all copies of the body, then what they change.
func (t *kernel) step(stop label, copies int, tail bool) {
	var store, guard []local
	next := make([][]local, len(t.acc)) // by accumulator, by copy
	t.tail = tail
	for c := range copies {
		t.copy, t.value = c, map[*ir.Node]local{}
		if c == len(t.results) {
			t.results = append(t.results, make([]local, 2+len(t.acc)))
			for i := range t.results[c] {
				t.results[c][i] = t.zero(v128)
			}
		}
		save := func(result int, n *ir.Node) local {
			t.emit(n)
			t.set(t.results[c][result])
			return t.results[c][result]
		}
		t.scope(func() {
			if t.body.Guard != nil {
				guard = append(guard, save(0, t.body.Guard))
			}
			if t.body.Store != nil {
				store = append(store, save(1, t.body.Store))
			}
			for i, a := range t.body.Accumulators {
				next[i] = append(next[i], save(2+i, a.Next))
			}
		})
	}
	if guard != nil {
		t.get(guard...)
		for range copies - 1 {
			t.simd(vOr)
		}
		if tail {
			t.mask()
			t.simd(vAnd)
		}
		t.simd(vAnyTrue)
		t.branch(opBrIf, stop)
	}
	for i := range next {
		for c, l := range next[i] {
			t.get(l)
			if tail {
				t.get(t.acc[i][c])
				t.mask()
				t.simd(vBitselect)
			}
			t.set(t.acc[i][c])
		}
	}
	for c, l := range store {
		t.get(t.pointers[len(t.pointers)-1])
		if tail {
			t.get(t.rest, l)
			t.call(funcStore)
		} else {
			t.get(l)
			t.vmemory(vStore, 16*c)
		}
	}
	for _, p := range t.pointers {
		t.add(p, 16*copies)
	}
}

// mask pushes which lanes count in a step of the tail.
func (t *kernel) mask() {
	t.get(t.rest)
	t.simd(i32x4Splat)
	t.vector([4]uint32{0, 1, 2, 3})
	t.simd(i32x4GtS)
}

func (t *kernel) epilogue(unmerged bool) {
	for i, a := range t.body.Accumulators {
		if unmerged {
			for c, l := range t.acc[i] {
				t.index(opGlobalGet, globalBox)
				t.get(l)
				t.vmemory(vStore, boxLanes+4*(i*ir.Lanes+c*lanes))
			}
			continue
		}
		vector, scalar := f32x4Add, byte(opF32Add)
		switch a.Merge {
		case ir.MergeMax:
			vector, scalar = f32x4Max, opF32Max
		case ir.MergeMin:
			vector, scalar = f32x4Min, opF32Min
		}
		sum := t.acc[i][0]
		t.get(t.acc[i]...)
		for range t.unroll - 1 {
			t.simd(vector)
		}
		t.set(sum)
		t.index(opGlobalGet, globalBox)
		for lane := range lanes {
			t.get(sum)
			t.extract(lane)
			if lane&1 != 0 {
				t.op(scalar)
			}
		}
		t.op(scalar)
		t.memory(opF32Store, boxResults+4*i)
	}
	t.index(opGlobalGet, globalBox)
	t.memory(opI32Load, boxN)
	t.get(t.rest)
	t.op(opI32Sub)
}

func (t *kernel) splat(bits uint32) { t.vector([4]uint32{bits, bits, bits, bits}) }

// instructions of operations that are one instruction on their arguments in order.
var instructions = map[ir.Op]int{
	ir.OpAdd: f32x4Add, ir.OpSub: f32x4Sub, ir.OpMul: f32x4Mul, ir.OpDiv: f32x4Div, ir.OpSqrt: f32x4Sqrt,
	ir.OpFloor: f32x4Floor, ir.OpCeil: f32x4Ceil, ir.OpTrunc: f32x4Trunc, ir.OpNearest: f32x4Nearest,
	ir.OpLT: f32x4Lt, ir.OpLE: f32x4Le, ir.OpEQ: f32x4Eq, ir.OpNE: f32x4Ne,
	ir.OpMaskAnd: vAnd, ir.OpMaskOr: vOr, ir.OpMaskNot: vNot,
	ir.OpIAnd: vAnd, ir.OpIOr: vOr, ir.OpIXor: vXor, ir.OpIAndNot: vAndNot,
	ir.OpIAdd: i32x4Add, ir.OpISub: i32x4Sub, ir.OpIGT: i32x4GtS, ir.OpIEQ: i32x4Eq,
	ir.OpTruncTo: i32x4Trunc, ir.OpFromInt: f32x4Convert,
}

// number says that a node is a constant other than NaN.
func number(n *ir.Node) bool {
	v := math.Float32frombits(n.Imm)
	return n.Op == ir.OpConst && v == v
}

// emit pushes the value of a node.
func (t *kernel) emit(n *ir.Node) {
	if l, ok := t.value[n]; ok {
		t.get(l)
		return
	}
	switch n.Op {
	case ir.OpParam:
		t.get(t.params[n.Imm])
		return
	case ir.OpAcc:
		t.get(t.acc[n.Imm][t.copy])
		return
	case ir.OpConst:
		t.splat(n.Imm)
		return
	case ir.OpBits, ir.OpFloat:
		t.emit(n.Args[0])
		return
	case ir.OpInput:
		t.get(t.pointers[n.Imm])
		if t.tail {
			t.get(t.rest)
			t.call(funcLoad)
		} else {
			t.vmemory(vLoad, 16*t.copy)
		}
	case ir.OpSelect:
		t.emit(n.Args[1])
		t.emit(n.Args[2])
		t.emit(n.Args[0])
		t.simd(vBitselect)
	case ir.OpShl, ir.OpShrL, ir.OpShrA:
		t.emit(n.Args[0])
		t.constant(int(n.Imm))
		t.simd(map[ir.Op]int{ir.OpShl: i32x4Shl, ir.OpShrL: i32x4ShrU, ir.OpShrA: i32x4ShrS}[n.Op])
	case ir.OpMin, ir.OpMax: // pmin(x, y) is y < x ? y : x
		t.emit(n.Args[1])
		t.emit(n.Args[0])
		t.simd(map[ir.Op]int{ir.OpMin: f32x4PMin, ir.OpMax: f32x4PMax}[n.Op])
	case ir.OpMinNaN, ir.OpMaxNaN:
		t.minMaxNaN(n)
	case ir.OpToInt:
		t.emit(n.Args[0])
		t.simd(f32x4Nearest, i32x4Trunc)
	default:
		op, ok := instructions[n.Op]
		if !ok {
			panic(fmt.Sprintf("operation %d has no instruction", n.Op))
		}
		for _, arg := range n.Args {
			t.emit(arg)
		}
		t.simd(op)
	}
	if t.uses[n] > 1 {
		l := t.local(v128)
		t.value[n] = l
		t.tee(l)
	}
}

// minMaxNaN pushes a minimum or maximum that is NaN if an operand is. The instruction for it takes engines nine on amd64, where
// pmin(x, y), which is y < x ? y : x, takes one. With a number y it does the same. Else pmin(y, x) is the other operand where
// one is NaN, and the same number where none is, so that both together, bit by bit, are the result.
func (t *kernel) minMaxNaN(n *ir.Node) {
	op := map[ir.Op]int{ir.OpMinNaN: f32x4PMin, ir.OpMaxNaN: f32x4PMax}[n.Op]
	x, y := n.Args[0], n.Args[1]
	one := n.Imm == 1 || number(x)
	if one {
		x, y = y, x
	}
	t.emit(x)
	if one || number(y) {
		t.emit(y)
		t.simd(op)
		return
	}
	vx, vy := t.local(v128), t.local(v128)
	t.tee(vx)
	t.emit(y)
	t.tee(vy)
	t.simd(op)
	t.get(vy, vx)
	t.simd(op, vOr)
}
