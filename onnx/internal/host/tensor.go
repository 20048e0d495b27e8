package host

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
)

// Tensor is elements in row-major order. It is not changed once it is made.
type Tensor struct {
	Kind  Kind
	Shape []int
	Data  any // a slice of the element type; of types of less than a byte, a byte each
}

// Most is the largest number of elements of a tensor.
const Most = math.MaxInt32

// Len returns the number of elements.
func (t *Tensor) Len() int { return Len(t.Shape) }

// Len returns the number of elements of a shape.
func Len(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// New returns a tensor of zeros.
func New(k Kind, shape ...int) *Tensor {
	return &Tensor{k, shape, kinds[k].make(Len(shape))}
}

// CheckShape reports negative dimensions and too many elements.
func CheckShape(shape []int) error {
	n := 1
	for _, d := range shape {
		if d < 0 {
			return fmt.Errorf("negative dimension in %v: %w", shape, compute.ErrShape)
		}
		if d > 0 && n > Most/d {
			return fmt.Errorf("%v has too many elements: %w", shape, compute.ErrTooLarge)
		}
		n *= max(d, 1)
	}
	return nil
}

// Check reports whether the data fits kind and shape.
func (t *Tensor) Check() error {
	if !t.Kind.Known() {
		return fmt.Errorf("elements of type %v: %w", t.Kind, compute.ErrDType)
	}
	if err := CheckShape(t.Shape); err != nil {
		return err
	}
	if n := length(t.Data); n < 0 || fmt.Sprintf("%T", t.Data) != fmt.Sprintf("%T", kinds[t.Kind].make(0)) {
		return fmt.Errorf("%T for elements of type %v: %w", t.Data, t.Kind, compute.ErrDType)
	} else if n != t.Len() {
		return fmt.Errorf("%d elements for shape %v: %w", n, t.Shape, compute.ErrShape)
	}
	return nil
}

func length(data any) int {
	switch s := data.(type) {
	case []float32:
		return len(s)
	case []float64:
		return len(s)
	case []int8:
		return len(s)
	case []int16:
		return len(s)
	case []int32:
		return len(s)
	case []int64:
		return len(s)
	case []uint8:
		return len(s)
	case []uint16:
		return len(s)
	case []uint32:
		return len(s)
	case []uint64:
		return len(s)
	case []bool:
		return len(s)
	case []compute.F16:
		return len(s)
	case []compute.BF16:
		return len(s)
	case []string:
		return len(s)
	}
	return -1
}

// OfInts makes a tensor of int64.
func OfInts(data []int64, shape ...int) *Tensor {
	if shape == nil {
		shape = []int{len(data)}
	}
	return &Tensor{Int64, shape, data}
}

// Dims makes the tensor of a shape.
func Dims(shape []int) *Tensor {
	d := make([]int64, len(shape))
	for i, n := range shape {
		d[i] = int64(n)
	}
	return OfInts(d)
}

// Scalar makes a tensor of one element from a number.
func Scalar(k Kind, x float64) *Tensor { return FromFloats(k, []float64{x}) }

// Reshaped returns the same elements in another shape of as many.
func (t *Tensor) Reshaped(shape ...int) *Tensor { return &Tensor{t.Kind, shape, t.Data} }

// Equal reports whether two tensors have the same type, shape and elements, bit for bit but that NaNs are equal.
func (t *Tensor) Equal(o *Tensor) bool {
	if t.Kind != o.Kind || !slices.Equal(t.Shape, o.Shape) {
		return false
	}
	switch a := t.Data.(type) {
	case []int64:
		return slices.Equal(a, o.Data.([]int64))
	case []string:
		return slices.Equal(a, o.Data.([]string))
	case []uint64:
		return slices.Equal(a, o.Data.([]uint64))
	}
	a, b := t.Floats(), o.Floats()
	return slices.EqualFunc(a, b, func(x, y float64) bool { return x == y || x != x && y != y })
}

type number interface {
	float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

func wide[W float64 | int64, E number](s []E) []W {
	out := make([]W, len(s))
	for i, x := range s {
		out[i] = W(x)
	}
	return out
}

// Floats returns the elements as float64: booleans are 0 and 1, texts 0.
func (t *Tensor) Floats() []float64 {
	switch s := t.Data.(type) {
	case []float32:
		return wide[float64](s)
	case []float64:
		return slices.Clone(s)
	case []int8:
		return wide[float64](s)
	case []int16:
		return wide[float64](s)
	case []int32:
		return wide[float64](s)
	case []int64:
		return wide[float64](s)
	case []uint16:
		return wide[float64](s)
	case []uint32:
		return wide[float64](s)
	case []uint64:
		return wide[float64](s)
	case []uint8:
		if f, ok := smallFloats[t.Kind]; ok {
			out := make([]float64, len(s))
			for i, b := range s {
				out[i] = f.decode(b)
			}
			return out
		}
		return wide[float64](s)
	case []bool:
		out := make([]float64, len(s))
		for i, b := range s {
			if b {
				out[i] = 1
			}
		}
		return out
	case []compute.F16:
		out := make([]float64, len(s))
		for i, h := range s {
			out[i] = float64(h.Float32())
		}
		return out
	case []compute.BF16:
		out := make([]float64, len(s))
		for i, h := range s {
			out[i] = float64(h.Float32())
		}
		return out
	}
	return make([]float64, t.Len())
}

// Ints returns the elements as int64: floats are truncated as a cast does it, the bits of uint64 stay.
func (t *Tensor) Ints() []int64 {
	switch s := t.Data.(type) {
	case []int64:
		return slices.Clone(s)
	case []uint64:
		return wide[int64](s)
	case []int8:
		return wide[int64](s)
	case []int16:
		return wide[int64](s)
	case []int32:
		return wide[int64](s)
	case []uint16:
		return wide[int64](s)
	case []uint32:
		return wide[int64](s)
	case []uint8:
		if !t.Kind.IsFloat() {
			return wide[int64](s)
		}
	case []bool:
		out := make([]int64, len(s))
		for i, b := range s {
			if b {
				out[i] = 1
			}
		}
		return out
	}
	f := t.Floats()
	out := make([]int64, len(f))
	for i, x := range f {
		out[i] = truncated(x)
	}
	return out
}

// truncated is x without its fraction, limited to int64; NaN is the least number, as on most processors.
func truncated(x float64) int64 {
	switch {
	case x >= 1<<63:
		return math.MaxInt64
	case x < -1<<63 || x != x:
		return math.MinInt64
	}
	return int64(x)
}

// FromFloats makes a tensor of numbers: rounded for floats, truncated for integers, compared with 0 for booleans.
func FromFloats(k Kind, x []float64, shape ...int) *Tensor {
	if shape == nil {
		shape = []int{}
		if len(x) != 1 {
			shape = []int{len(x)}
		}
	}
	t := New(k, shape...)
	switch s := t.Data.(type) {
	case []float32:
		for i, v := range x {
			s[i] = float32(v)
		}
	case []float64:
		copy(s, x)
	case []bool:
		for i, v := range x {
			s[i] = v != 0
		}
	case []compute.F16:
		for i, v := range x {
			s[i] = toF16(v)
		}
	case []compute.BF16:
		for i, v := range x {
			s[i] = toBF16(v)
		}
	case []uint64:
		for i, v := range x {
			if v >= 1<<63 && v < 1<<64 {
				s[i] = uint64(v)
			} else {
				s[i] = uint64(truncated(v))
			}
		}
	case []uint8:
		if f, ok := smallFloats[k]; ok {
			for i, v := range x {
				s[i] = f.encode(v, true)
			}
			return t
		}
		return fromFloatsInt(k, x, shape)
	default:
		return fromFloatsInt(k, x, shape)
	}
	return t
}

func fromFloatsInt(k Kind, x []float64, shape []int) *Tensor {
	n := make([]int64, len(x))
	for i, v := range x {
		n[i] = truncated(v)
	}
	return FromInts(k, n, shape...)
}

// Double rounding by way of float32 would be wrong where the float32 is halfway between two shorter numbers: it is rounded to odd.
func toOdd(x float64) float32 {
	f := float32(x)
	if float64(f) != x && !math.IsInf(float64(f), 0) && x == x {
		b := math.Float32bits(f)
		if math.Abs(float64(f)) > math.Abs(x) {
			b--
		}
		f = math.Float32frombits(b | 1)
	}
	return f
}

func toF16(x float64) compute.F16   { return compute.F16Of(toOdd(x)) }
func toBF16(x float64) compute.BF16 { return compute.BF16Of(toOdd(x)) }

func narrow[E number](s []E, x []int64) {
	for i, v := range x {
		s[i] = E(v)
	}
}

// FromInts makes a tensor of integers, of which types of fewer bits keep the lowest.
func FromInts(k Kind, x []int64, shape ...int) *Tensor {
	if shape == nil {
		shape = []int{}
		if len(x) != 1 {
			shape = []int{len(x)}
		}
	}
	t := New(k, shape...)
	switch s := t.Data.(type) {
	case []int64:
		copy(s, x)
	case []int32:
		narrow(s, x)
	case []int16:
		narrow(s, x)
	case []uint64:
		narrow(s, x)
	case []uint32:
		narrow(s, x)
	case []uint16:
		narrow(s, x)
	case []int8:
		shift := 8 - k.Bits()
		for i, v := range x {
			s[i] = int8(v) << shift >> shift
		}
	case []uint8:
		if k.IsFloat() {
			return FromFloats(k, wide[float64](x), shape...)
		}
		mask := uint8(1<<k.Bits() - 1)
		for i, v := range x {
			s[i] = uint8(v) & mask
		}
	case []bool:
		for i, v := range x {
			s[i] = v != 0
		}
	case []string:
	default:
		return FromFloats(k, wide[float64](x), shape...)
	}
	return t
}

// F32s returns the elements as float32, without copying those of Float.
func (t *Tensor) F32s() []float32 {
	switch s := t.Data.(type) {
	case []float32:
		return s
	case []compute.F16:
		out := make([]float32, len(s))
		for i, h := range s {
			out[i] = h.Float32()
		}
		return out
	case []compute.BF16:
		out := make([]float32, len(s))
		for i, h := range s {
			out[i] = h.Float32()
		}
		return out
	}
	f := t.Floats()
	out := make([]float32, len(f))
	for i, x := range f {
		out[i] = float32(x)
	}
	return out
}

// FromF32s makes a tensor of a float type or bool; the slice is not copied for Float.
func FromF32s(k Kind, x []float32, shape ...int) *Tensor {
	if shape == nil {
		shape = []int{}
	}
	switch k {
	case Float:
		return &Tensor{k, shape, x}
	case Float16:
		t := New(k, shape...)
		for i, v := range x {
			t.Data.([]compute.F16)[i] = compute.F16Of(v)
		}
		return t
	case BFloat16:
		t := New(k, shape...)
		for i, v := range x {
			t.Data.([]compute.BF16)[i] = compute.BF16Of(v)
		}
		return t
	}
	w := make([]float64, len(x))
	for i, v := range x {
		w[i] = float64(v)
	}
	return FromFloats(k, w, shape...)
}
