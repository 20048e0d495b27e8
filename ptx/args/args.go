// Package args makes the parameter block of a kernel: where each parameter lies follows from the kernel's own declaration,
// against which arguments are checked.
//
//	layout := args.LayoutOf(kernel.Params)
//	block := make([]byte, layout.Size())
//	err := layout.Pack(block, args.U32(n), args.F32(2), args.Ptr(x), args.Ptr(y))
//
// Packing allocates nothing. A Layout is safe for concurrent use.
package args

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

// Arg is an argument of a launch.
type Arg struct {
	kind kind
	bits uint64
	raw  []byte
}

type kind uint8

const (
	none    kind = iota
	integer      // of 4 or 8 bytes, by wide
	wide
	float
	double
	pointer
	bytes
	slot
	closed
)

func (k kind) String() string {
	return [...]string{"nothing", "a 32-bit integer", "a 64-bit integer", "a float32", "a float64", "a pointer", "bytes", "a slot",
		"of a closed buffer"}[k]
}

// U32 is an integer of 32 bits.
func U32(v uint32) Arg { return Arg{kind: integer, bits: uint64(v)} }

// I32 is an integer of 32 bits.
func I32(v int32) Arg { return Arg{kind: integer, bits: uint64(uint32(v))} }

// U64 is an integer of 64 bits.
func U64(v uint64) Arg { return Arg{kind: wide, bits: v} }

// I64 is an integer of 64 bits.
func I64(v int64) Arg { return Arg{kind: wide, bits: uint64(v)} }

// F32 is a number in single precision.
func F32(v float32) Arg { return Arg{kind: float, bits: uint64(math.Float32bits(v))} }

// F64 is a number in double precision.
func F64(v float64) Arg { return Arg{kind: double, bits: math.Float64bits(v)} }

// Ptr is an address in the device's memory.
func Ptr(address uint64) Arg { return Arg{kind: pointer, bits: address} }

// Bytes are a parameter of any type as it lies in memory: an array, a structure, a small number. They are read when packed.
func Bytes(b []byte) Arg { return Arg{kind: bytes, raw: b} }

// Slot stands for an address that is not known yet. Pack refuses it.
func Slot(i int) Arg { return Arg{kind: slot, bits: uint64(i)} }

// Slot is the number of a slot, if the argument is one.
func (a Arg) Slot() (i int, ok bool) { return int(a.bits), a.kind == slot }

// Closed is the argument of a buffer that is closed. Pack refuses it with [compute.ErrClosed].
func Closed() Arg { return Arg{kind: closed} }

// Layout is where the parameters of a kernel lie in its parameter block.
type Layout struct {
	params  []Param
	offsets []int
	size    int
}

// Param is a parameter's place.
type Param struct {
	Name         string
	Offset, Size int
	Type         ir.Type
	Pointer      bool // declared with .ptr; a plain .u64 may hold an address as well
	Scalar       bool // no array, no vector

	takes [closed + 1]bool // by kind of argument; bytes fit by their length alone
}

// LayoutOf places parameters one after the other, each at a multiple of its alignment. (PTX ISA, "Kernel Function Parameters".)
func LayoutOf(params []ir.Var) *Layout {
	l := &Layout{params: make([]Param, len(params)), offsets: make([]int, len(params))}
	for i := range params {
		v := &params[i]
		a := v.Alignment()
		l.size = (l.size + a - 1) &^ (a - 1)
		l.params[i] = Param{Name: v.Name, Offset: l.size, Size: v.Size(), Type: v.Type, Pointer: v.Ptr,
			Scalar: v.Vec == 0 && len(v.Dims) == 0}
		l.params[i].classify()
		l.offsets[i] = l.size
		l.size += v.Size()
	}
	return l
}

// Size is the number of bytes of the block.
func (l *Layout) Size() int { return l.size }

// Len is the number of parameters.
func (l *Layout) Len() int { return len(l.params) }

// Offsets are those of the parameters in the block. They must not be changed.
func (l *Layout) Offsets() []int { return l.offsets }

// Param is the i-th parameter.
func (l *Layout) Param(i int) Param { return l.params[i] }

// Pack writes arguments in the order of the parameters. The block has at least [Layout.Size] bytes. Errors wrap
// [compute.ErrArgument], or [compute.ErrClosed] for an argument of a closed buffer.
func (l *Layout) Pack(block []byte, a ...Arg) error {
	if len(a) != len(l.params) {
		return fmt.Errorf("%d parameters, %d arguments were given: %w", len(l.params), len(a), compute.ErrArgument)
	}
	if len(block) < l.size {
		return fmt.Errorf("a block of %d bytes for %d of parameters: %w", len(block), l.size, compute.ErrArgument)
	}
	for i := range a {
		if err := l.put(block, i, &a[i]); err != nil {
			return err
		}
	}
	return nil
}

// Put writes the i-th argument alone.
func (l *Layout) Put(block []byte, i int, a Arg) error {
	switch {
	case i < 0 || i >= len(l.params):
		return fmt.Errorf("parameter %d of %d: %w", i, len(l.params), compute.ErrArgument)
	case len(block) < l.size:
		return fmt.Errorf("a block of %d bytes for %d of parameters: %w", len(block), l.size, compute.ErrArgument)
	}
	return l.put(block, i, &a)
}

func (l *Layout) put(block []byte, i int, a *Arg) error {
	p := &l.params[i]
	to := block[p.Offset : p.Offset+p.Size]
	switch {
	case a.kind == bytes && len(a.raw) == p.Size:
		copy(to, a.raw)
	case !p.takes[a.kind]:
		return l.misfit(i, a.kind, len(a.raw))
	case p.Size == 4:
		binary.LittleEndian.PutUint32(to, uint32(a.bits))
	default:
		binary.LittleEndian.PutUint64(to, a.bits)
	}
	return nil
}

func (l *Layout) misfit(i int, k kind, n int) error {
	p := &l.params[i]
	what, hint := k.String(), ""
	switch {
	case k == closed:
		return fmt.Errorf("argument %d, %s, is given for .%s %s: %w", i, what, p.Type, p.Name, compute.ErrClosed)
	case k == bytes:
		what = fmt.Sprint(n, " bytes")
	case !p.Scalar || p.Size < 4:
		hint = ", which takes args.Bytes"
	}
	return fmt.Errorf("argument %d, %s, does not fit .%s %s of %d bytes%s: %w", i, what, p.Type, p.Name, p.Size, hint,
		compute.ErrArgument)
}

// classify says which kinds of arguments fit.
func (p *Param) classify() {
	if !p.Scalar {
		return
	}
	class := p.Type.Class()
	integers, floats := class != ir.Float, class == ir.Float || class == ir.Bits
	p.takes[integer] = p.Size == 4 && integers
	p.takes[wide] = p.Size == 8 && integers && !p.Pointer
	p.takes[pointer] = p.Size == 8 && integers
	p.takes[float] = p.Size == 4 && floats
	p.takes[double] = p.Size == 8 && floats
}
