//go:build !js

package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/wavelane/wavelane/ptx/eval"
	"github.com/wavelane/wavelane/ptx/ir"
)

// argument is one --arg of ptx run: a number, or a buffer that the kernel gets the address of.
type argument struct {
	typ    ir.Type
	buffer bool
	bytes  []byte // little-endian elements
}

// argumentTypes are what --arg may name, in the order of the help text.
var argumentTypes = []ir.Type{ir.U8, ir.U16, ir.U32, ir.U64, ir.S8, ir.S16, ir.S32, ir.S64, ir.F16, ir.BF16, ir.F32, ir.F64}

func argumentTypeNames() string {
	names := make([]string, len(argumentTypes))
	for i, t := range argumentTypes {
		names[i] = t.String()
	}
	return strings.Join(names, " ")
}

func argumentType(name string) (ir.Type, error) {
	for _, t := range argumentTypes {
		if t.String() == name {
			return t, nil
		}
	}
	return ir.NoType, fmt.Errorf("unknown type %q: there are %s", name, argumentTypeNames())
}

// maxBuffer bounds what --arg may ask for, so that a slip of the finger is a message and not a full machine.
const maxBuffer = 1 << 32

// parseArgument reads u32:7, buf:f32:1,2,3, buf:u8:@FILE or zero:f32:1024.
func parseArgument(s string) (argument, error) {
	kind, rest, ok := strings.Cut(s, ":")
	if !ok {
		return argument{}, fmt.Errorf("%q: want TYPE:VALUE, buf:TYPE:VALUES, buf:TYPE:@FILE or zero:TYPE:COUNT", s)
	}
	if kind != "buf" && kind != "zero" {
		t, err := argumentType(kind)
		if err != nil {
			return argument{}, fmt.Errorf("%q: %w", s, err)
		}
		bytes, err := appendValue(nil, t, rest)
		return argument{typ: t, bytes: bytes}, err
	}
	name, values, ok := strings.Cut(rest, ":")
	if !ok {
		return argument{}, fmt.Errorf("%q: want %s:TYPE:…", s, kind)
	}
	t, err := argumentType(name)
	if err != nil {
		return argument{}, fmt.Errorf("%q: %w", s, err)
	}
	a := argument{typ: t, buffer: true}
	switch {
	case kind == "zero":
		n, err := strconv.ParseUint(values, 0, 63)
		if err != nil || n == 0 || n > maxBuffer/uint64(t.Size()) {
			return argument{}, fmt.Errorf("%q: want a number of elements, of at most %d bytes together", s, int64(maxBuffer))
		}
		a.bytes = make([]byte, n*uint64(t.Size()))
	case strings.HasPrefix(values, "@"):
		if a.bytes, err = os.ReadFile(values[1:]); err != nil {
			return argument{}, err
		}
		if len(a.bytes) == 0 || len(a.bytes)%t.Size() != 0 {
			return argument{}, fmt.Errorf("%q: %d bytes are no whole number of %s elements, or none", s, len(a.bytes), t)
		}
	default:
		for v := range strings.SplitSeq(values, ",") {
			if a.bytes, err = appendValue(a.bytes, t, strings.TrimSpace(v)); err != nil {
				return argument{}, err
			}
		}
	}
	return a, nil
}

// appendValue appends the bytes of a number.
func appendValue(p []byte, t ir.Type, s string) ([]byte, error) {
	var bits uint64
	var err error
	switch {
	case t == ir.F64:
		var v float64
		v, err = strconv.ParseFloat(s, 64)
		bits = math.Float64bits(v)
	case t.IsFloat():
		var v float64
		v, err = strconv.ParseFloat(s, 32)
		switch t {
		case ir.F16:
			bits = uint64(eval.F32ToF16(float32(v)))
		case ir.BF16:
			bits = uint64(eval.F32ToBF16(float32(v)))
		default:
			bits = uint64(math.Float32bits(float32(v)))
		}
	case t.IsSigned():
		var v int64
		v, err = strconv.ParseInt(s, 0, t.Bits())
		bits = uint64(v)
	default:
		bits, err = strconv.ParseUint(s, 0, t.Bits())
	}
	if err != nil {
		return nil, fmt.Errorf("%q is no %s: %w", s, t, err)
	}
	return append(p, binary.LittleEndian.AppendUint64(nil, bits)[:t.Size()]...), nil
}

// values are the elements as numbers, which JSON has not for NaN and infinities: these are strings.
func (a *argument) values() []any {
	n := a.typ.Size()
	list := make([]any, 0, len(a.bytes)/n)
	for p := a.bytes; len(p) >= n; p = p[n:] {
		var b [8]byte
		copy(b[:], p[:n])
		list = append(list, value(a.typ, binary.LittleEndian.Uint64(b[:])))
	}
	return list
}

func value(t ir.Type, bits uint64) any {
	switch {
	case t == ir.F64:
		return number(math.Float64frombits(bits), 64)
	case t == ir.F16:
		return number(float64(eval.F16ToF32(uint16(bits))), 32)
	case t == ir.BF16:
		return number(float64(eval.BF16ToF32(uint16(bits))), 32)
	case t.IsFloat():
		return number(float64(math.Float32frombits(uint32(bits))), 32)
	case t.IsSigned():
		unused := 64 - t.Bits()
		return int64(bits) << unused >> unused
	}
	return bits
}

func number(v float64, bits int) any {
	s := strconv.FormatFloat(v, 'g', -1, bits)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return s
	}
	return json.Number(s)
}
