package wasm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Instructions that this package uses.
const (
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opSelect       = 0x1b
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opI32Load      = 0x28
	opF32Load      = 0x2a
	opF64Load      = 0x2b
	opI32Load8     = 0x2d // i32.load8_u
	opI32Store     = 0x36
	opF32Store     = 0x38
	opF64Store     = 0x39
	opI32Const     = 0x41
	opF32Const     = 0x43
	opI32Eqz       = 0x45
	opI32Eq        = 0x46
	opI32Ne        = 0x47
	opI32LtU       = 0x49
	opI32GtU       = 0x4b
	opI32GeU       = 0x4f
	opF32Ne        = 0x5c
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32Mul       = 0x6c
	opI32DivU      = 0x6e
	opI32RemU      = 0x70
	opI32Shl       = 0x74
	opF32Add       = 0x92
	opF32Mul       = 0x94
	opF32Min       = 0x96
	opF32Max       = 0x97
	opF64Add       = 0xa0
	opF64Sub       = 0xa1
	opF32Demote    = 0xb6
	opF64Promote   = 0xbb

	prefixSIMD = 0xfd // before those below
)

// SIMD instructions; those with a memory argument or a lane have their own methods.
const (
	vLoad            = 0x00
	vLoad16x4S       = 0x03
	vLoad16x4U       = 0x04
	vLoad16Splat     = 0x08
	vLoad32Splat     = 0x09
	vLoad64Splat     = 0x0a
	vStore           = 0x0b
	vConst           = 0x0c
	i8x16Shuffle     = 0x0d
	i16x8Splat       = 0x10
	i32x4Splat       = 0x11
	f32x4Splat       = 0x13
	f32x4Extract     = 0x1f
	i8x16Eq          = 0x23
	i16x8Eq          = 0x2d
	i32x4Eq          = 0x37
	i32x4GtS         = 0x3b
	i32x4GeS         = 0x3f
	f32x4Eq          = 0x41
	f32x4Ne          = 0x42
	f32x4Lt          = 0x43
	f32x4Le          = 0x45
	vNot             = 0x4d
	vAnd             = 0x4e
	vAndNot          = 0x4f
	vOr              = 0x50
	vXor             = 0x51
	vBitselect       = 0x52
	vAnyTrue         = 0x53
	vLoad32Lane      = 0x56
	vStore32Lane     = 0x5a
	vStore64Lane     = 0x5b
	vLoad32Zero      = 0x5c
	vLoad64Zero      = 0x5d
	f32x4Demote      = 0x5e // f32x4.demote_f64x2_zero
	f64x2Promote     = 0x5f // f64x2.promote_low_f32x4
	f32x4Ceil        = 0x67
	f32x4Floor       = 0x68
	f32x4Trunc       = 0x69
	f32x4Nearest     = 0x6a
	i8x16Sub         = 0x71
	i8x16MinU        = 0x77
	i8x16MaxS        = 0x78
	i16x8ExtendLow   = 0x87
	i16x8ExtendHigh  = 0x88
	i16x8ExtendLowU  = 0x89
	i16x8ExtendHighU = 0x8a
	i16x8Shl         = 0x8b
	i16x8ShrS        = 0x8c
	i16x8ShrU        = 0x8d
	i16x8Sub         = 0x91
	i16x8Mul         = 0x95
	i32x4ExtendLow   = 0xa7
	i32x4ExtendHigh  = 0xa8
	i32x4Shl         = 0xab
	i32x4ShrS        = 0xac
	i32x4ShrU        = 0xad
	i32x4Add         = 0xae
	i32x4Sub         = 0xb1
	i32x4Mul         = 0xb5
	i32x4MaxS        = 0xb8
	i32x4Dot         = 0xba // i32x4.dot_i16x8_s
	f32x4Neg         = 0xe1
	f32x4Sqrt        = 0xe3
	f32x4Add         = 0xe4
	f32x4Sub         = 0xe5
	f32x4Mul         = 0xe6
	f32x4Div         = 0xe7
	f32x4Min         = 0xe8
	f32x4Max         = 0xe9
	f32x4PMin        = 0xea
	f32x4PMax        = 0xeb
	f64x2Add         = 0xf0
	i32x4Trunc       = 0xf8 // i32x4.trunc_sat_f32x4_s
	f32x4Convert     = 0xfa // f32x4.convert_i32x4_s
)

// Relaxed SIMD.
const (
	i8x16RelaxedSwizzle = 0x100
	f32x4RelaxedMadd    = 0x105
	f32x4RelaxedNmadd   = 0x106
	i32x4RelaxedDotAdd  = 0x113 // i32x4.relaxed_dot_i8x16_i7x16_add_s
)

// local is a local variable of a function.
type local int

// assembler writes the code of a function.
type assembler struct {
	params    int // that come before the locals
	locals    []byte
	constants map[[4]uint32]local // vectors
	first     bytes.Buffer        // code that sets them
	buf       bytes.Buffer
	depth     int              // of open blocks
	used      []local          // those of a scope
	free      map[byte][]local // by type
}

// constantsFrom is the number of the first variable of those with constants, in all functions, so that others have the same numbers
// whatever constants there are.
const constantsFrom = 56

// local is a variable, a new one or that of a scope before.
func (a *assembler) local(typ byte) (l local) {
	if f := a.free[typ]; len(f) > 0 {
		l, a.free[typ] = f[len(f)-1], f[:len(f)-1]
	} else {
		l = a.zero(typ)
	}
	a.used = append(a.used, l)
	return l
}

// zero adds a variable that no scope takes, and which is zero at first.
func (a *assembler) zero(typ byte) local {
	a.locals = append(a.locals, typ)
	return local(a.params + len(a.locals) - 1)
}

// scope writes code whose variables the code after it may use for others, so that what is the same is written in the same bytes:
// the module is compressed.
func (a *assembler) scope(do func()) {
	outer := a.used
	a.used = nil
	do()
	if a.free == nil {
		a.free = map[byte][]local{}
	}
	for _, l := range slices.Backward(a.used) {
		typ := a.locals[int(l)-a.params]
		a.free[typ] = append(a.free[typ], l)
	}
	a.used = outer
}

func (a *assembler) function(typ int) function {
	if room := constantsFrom - a.params; len(a.constants) > 0 {
		if len(a.locals) > room {
			panic(fmt.Sprintf("a function with constants has %d variables, of which there is room for %d", len(a.locals), room))
		}
		for len(a.locals) < room+len(a.constants) {
			a.locals = append(a.locals, v128)
		}
	}
	return function{typ, a.locals, append(a.first.Bytes(), a.buf.Bytes()...)}
}

// op writes instructions without immediate arguments.
func (a *assembler) op(ops ...byte) { a.buf.Write(ops) }

// simd writes SIMD instructions without immediate arguments.
func (a *assembler) simd(ops ...int) {
	for _, op := range ops {
		a.buf.WriteByte(prefixSIMD)
		writeUint(&a.buf, uint64(op))
	}
}

func (a *assembler) index(op byte, i int) {
	a.buf.WriteByte(op)
	writeUint(&a.buf, uint64(i))
}

func (a *assembler) get(l ...local) {
	for _, l := range l {
		a.index(opLocalGet, int(l))
	}
}

func (a *assembler) set(l local)    { a.index(opLocalSet, int(l)) }
func (a *assembler) tee(l local)    { a.index(opLocalTee, int(l)) }
func (a *assembler) call(f int)     { a.index(opCall, f) }
func (a *assembler) constant(v int) { a.op(opI32Const); writeInt(&a.buf, int64(v)) }

func (a *assembler) f32(v float32) {
	a.op(opF32Const)
	a.buf.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
}

// vector pushes a constant of four lanes. It is a variable that is set at the start of the function: V8 makes a constant anew
// wherever it is used, which takes three instructions, since version 13 or so also in loops.
func (a *assembler) vector(lanes [4]uint32) {
	l, ok := a.constants[lanes]
	if !ok {
		if a.constants == nil {
			a.constants = map[[4]uint32]local{}
		}
		l = local(constantsFrom + len(a.constants))
		a.constants[lanes] = l
		if lanes != [4]uint32{} { // which variables are
			w := &a.first
			if v := lanes[0]; lanes == [4]uint32{v, v, v, v} {
				w.WriteByte(opI32Const)
				writeInt(w, int64(int32(v)))
				w.WriteByte(prefixSIMD)
				writeUint(w, i32x4Splat)
			} else {
				w.WriteByte(prefixSIMD)
				writeUint(w, vConst)
				for _, v := range lanes {
					w.Write(binary.LittleEndian.AppendUint32(nil, v))
				}
			}
			w.WriteByte(opLocalSet)
			writeUint(w, uint64(l))
		}
	}
	a.get(l)
}

// memory writes a scalar load or store of 32 bits.
func (a *assembler) memory(op byte, offset int) {
	a.op(op, 2) // aligned to 2² bytes
	writeUint(&a.buf, uint64(offset))
}

// vmemory writes a vector load or store. float32 are aligned to 2² bytes, vectors of them no further.
func (a *assembler) vmemory(op, offset int) {
	a.simd(op)
	a.op(2)
	writeUint(&a.buf, uint64(offset))
}

// loadBytes writes a vector load of bytes that lie anywhere.
func (a *assembler) loadBytes(op, offset int) {
	a.simd(op)
	a.op(0)
	writeUint(&a.buf, uint64(offset))
}

func (a *assembler) laneMemory(op, offset, lane int) {
	a.vmemory(op, offset)
	a.op(byte(lane))
}

// shuffle takes lanes of 32 bits out of two vectors; those of the second are from 4 on.
func (a *assembler) shuffle(from ...int) {
	a.simd(i8x16Shuffle)
	for _, lane := range from {
		a.op(byte(4*lane), byte(4*lane+1), byte(4*lane+2), byte(4*lane+3))
	}
}

// shuffle16 is shuffle for lanes of 16 bits; those of the second vector are from 8 on.
func (a *assembler) shuffle16(from ...int) {
	a.simd(i8x16Shuffle)
	for _, lane := range from {
		a.op(byte(2*lane), byte(2*lane+1))
	}
}

func (a *assembler) extract(lane int) {
	a.simd(f32x4Extract)
	a.op(byte(lane))
}

// add adds a number to a variable.
func (a *assembler) add(l local, v int) {
	a.get(l)
	a.constant(v)
	a.op(opI32Add)
	a.set(l)
}

// label is an open block, to branch to.
type label int

// open opens a block, loop or if without a result.
func (a *assembler) open(op byte) label {
	a.op(op, 0x40)
	a.depth++
	return label(a.depth)
}

func (a *assembler) otherwise() { a.op(opElse) }

func (a *assembler) end() {
	a.op(opEnd)
	a.depth--
}

func (a *assembler) branch(op byte, to label) { a.index(op, a.depth-int(to)) }
