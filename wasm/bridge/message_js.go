package main

import (
	"fmt"
	"math"
	"reflect"
	"syscall/js"
	"unsafe"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// message is what JavaScript says in a call: numbers, read one after the other, and the byte arrays that operands refer to. Its
// form is that of class Message in wasm/js/instance.js. What does not fit is a mistake of that file, kept in err.
type message struct {
	numbers []float64
	arrays  js.Value
	array   int // next of arrays
	err     error
}

func newMessage(bytes, arrays js.Value) *message {
	n := bytes.Length() / 8
	m := &message{numbers: make([]float64, n), arrays: arrays}
	if n > 0 {
		js.CopyBytesToGo(unsafe.Slice((*byte)(unsafe.Pointer(&m.numbers[0])), 8*n), bytes)
	}
	return m
}

func (m *message) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

func (m *message) float() float64 {
	if len(m.numbers) == 0 {
		m.fail(fmt.Errorf("message too short: %w", compute.ErrArgument))
		return 0
	}
	x := m.numbers[0]
	m.numbers = m.numbers[1:]
	return x
}

// int reads an integer that JavaScript represents exactly.
func (m *message) int() int {
	x := m.float()
	if x != math.Trunc(x) || math.Abs(x) > 1<<53 {
		m.fail(fmt.Errorf("%v is no integer: %w", x, compute.ErrArgument))
		return 0
	}
	return int(x)
}

func (m *message) bool() bool { return m.float() != 0 }

// ints reads a length and as many integers; a length of −1 is nil.
func (m *message) ints() []int {
	n := m.int()
	if n < 0 || n > len(m.numbers) {
		return nil
	}
	list := make([]int, n)
	for i := range list {
		list[i] = m.int()
	}
	return list
}

func (m *message) floats32() []float32 {
	n := m.int()
	if n <= 0 || n > len(m.numbers) {
		return nil
	}
	list := make([]float32, n)
	for i := range list {
		list[i] = float32(m.float())
	}
	return list
}

// uint32 reads a number that has to be one.
func (m *message) uint32() uint32 {
	x := m.int()
	if x < 0 || x > math.MaxUint32 {
		m.fail(fmt.Errorf("%d is no 32-bit number: %w", x, compute.ErrArgument))
	}
	return uint32(x)
}

func (m *message) dtype() compute.DType {
	d := m.int()
	if d < 0 || d > int(compute.Uint8) {
		m.fail(fmt.Errorf("element type %d: %w", d, compute.ErrArgument))
		return 0
	}
	return compute.DType(d)
}

// text reads the next array as a string.
func (m *message) text() string { return string(m.bytes()) }

// bytes copies the next array.
func (m *message) bytes() []byte {
	a := m.nextArray()
	b := make([]byte, a.Length())
	js.CopyBytesToGo(b, a)
	return b
}

func (m *message) nextArray() js.Value {
	m.array++
	return m.arrays.Index(m.array - 1)
}

// Kinds of operands.
const (
	hostOperand = iota
	tensorOperand
	valueOperand
)

// operand is a copy of an array, or something that is there already.
type operand struct {
	data   any // slice, if not nil
	shape  []int
	tensor *tensor
	value  int // of the batch, if neither
}

func (m *message) operand() operand {
	switch m.int() {
	case hostOperand:
		data := m.slice(m.dtype())
		return operand{data: data, shape: m.shape()}
	case tensorOperand:
		t, err := held[*tensor](m.int())
		if err != nil {
			m.fail(err)
			return operand{}
		}
		return operand{tensor: t}
	}
	return operand{value: m.int()}
}

func (m *message) operands() []operand {
	n := m.int()
	if n < 0 || n > len(m.numbers) {
		return nil
	}
	list := make([]operand, n)
	for i := range list {
		list[i] = m.operand()
	}
	return list
}

// shape is ints, never nil: a nil shape would be that of a vector.
func (m *message) shape() []int {
	if s := m.ints(); s != nil {
		return s
	}
	return []int{}
}

// slice copies the next array into a slice of elements.
func (m *message) slice(d compute.DType) any {
	a := m.nextArray()
	n := a.Length()
	if err := reserve(n); err != nil {
		m.fail(err)
		return nil
	}
	s := program.MakeSlice(program.Type{DType: d, Shape: []int{n / d.Size()}})
	js.CopyBytesToGo(program.Bytes(s), a)
	return s
}

// record makes a value of an operand.
func (x operand) record(b *batch.Batch, values []batch.Value) batch.Value {
	switch {
	case x.data != nil:
		return b.Upload(x.data, x.shape...)
	case x.tensor != nil:
		return b.Import(x.tensor.Tensor)
	case x.value >= 0 && x.value < len(values):
		return values[x.value]
	}
	return batch.Value{}
}

// options reads options of the type of an entry's, field by field in their order.
func (m *message) options(e *program.Entry) any {
	if e.Options == nil {
		return nil
	}
	v := reflect.New(reflect.TypeOf(e.Options)).Elem()
	m.field(v)
	return v.Interface()
}

func (m *message) field(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			m.field(v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			m.field(v.Index(i))
		}
	case reflect.Slice:
		v.Set(reflect.ValueOf(m.ints()))
	case reflect.Bool:
		v.SetBool(m.bool())
	case reflect.Float32:
		v.SetFloat(m.float())
	case reflect.Uint8, reflect.Uint32:
		v.SetUint(uint64(m.uint32()))
	case reflect.Int, reflect.Int32:
		x := int64(m.int())
		if v.OverflowInt(x) {
			m.fail(fmt.Errorf("%d is beyond 32 bits: %w", x, compute.ErrArgument))
		}
		v.SetInt(x)
	}
}
