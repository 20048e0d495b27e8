package misuse

import (
	"context"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// arguments draws the arguments of one call. From the same source of numbers it draws the same ones for every device.
type arguments struct {
	*rand.Rand
	on      *machine
	length  int                // of most slices
	dims    []int              // of most shapes
	hostile int                // one argument in so many is chosen without regard to others; 0 for none
	special bool               // numbers that are not finite or of extreme size occur
	timed   bool               // a context had a deadline: what ends first is chance
	cancel  context.CancelFunc // of the latest context
	slices  []any              // of host memory: results may be in them
	shared  []float32

	batch  *batch.Batch
	values []batch.Value
	kept   []*batch.Kept
	read   []*batch.Result
	plans  []*batch.Plan
}

func newArguments(r *rand.Rand, on *machine) *arguments {
	a := &arguments{Rand: r, on: on, hostile: []int{0, 40, 12, 5}[r.IntN(4)], special: r.IntN(4) == 0, cancel: func() {}}
	sizes := []int{1, 2, 3, 4, 8, 16, 33}
	for range 1 + r.IntN(3) {
		a.dims = append(a.dims, sizes[r.IntN(len(sizes))])
	}
	a.length = 1
	if a.length = program.Len(a.dims); r.IntN(8) == 0 {
		a.length = []int{0, 1, 7, 100, 65537}[r.IntN(5)]
	}
	return a
}

func (a *arguments) wild() bool { return a.hostile > 0 && a.IntN(a.hostile) == 0 }

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

var (
	contextType = reflect.TypeFor[context.Context]()
	operandType = reflect.TypeFor[compute.Operand]()
	valueType   = reflect.TypeFor[batch.Value]()
	anyType     = reflect.TypeFor[any]()
	shapeType   = reflect.TypeFor[[]int]()
)

// size is a dimension or a count.
func (a *arguments) size() int {
	if a.wild() {
		return pick(a.Rand, 0, -1, math.MinInt, math.MaxInt, 1<<31, 1<<40, 1<<62, 65536, 7)
	}
	if a.IntN(3) == 0 {
		return a.IntN(4)
	}
	return pick(a.Rand, a.dims...)
}

func (a *arguments) shape() []int {
	if a.wild() {
		return pick(a.Rand, nil, []int{}, []int{0}, []int{-1}, []int{3, 0, 2}, []int{math.MaxInt, math.MaxInt}, []int{1 << 33, 1 << 33}, []int{1 << 40},
			[]int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, []int{-2, -3})
	}
	s := a.dims
	switch a.IntN(4) {
	case 0:
		s = s[len(s)-1:]
	case 1:
		s = append([]int{1}, s...)
	}
	return append([]int(nil), s...)
}

func (a *arguments) number() float32 {
	if a.special && a.IntN(6) == 0 {
		return pick(a.Rand, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Copysign(0, -1)), 1e-40, 3e38, -3e38, 65504, 1e-8, 1e9)
	}
	return float32(a.IntN(17)-8) / 4
}

func (a *arguments) integer() int32 {
	if a.special && a.IntN(6) == 0 {
		return pick(a.Rand, int32(-1), math.MinInt32, math.MaxInt32, 1<<24+1)
	}
	return int32(a.IntN(3))
}

// data makes a slice of elements.
func (a *arguments) data(d compute.DType, n int) any {
	x := program.MakeSlice(program.Type{DType: d, Shape: []int{n}})
	switch x := x.(type) {
	case []float32:
		if a.wild() && len(x) > 1 { // the same memory as other operands, or overlapping it
			if len(a.shared) < len(x)+1 {
				a.shared = a.floats(len(x) + 1)
			}
			from := a.IntN(2)
			return a.shared[from : from+len(x)]
		}
		return a.floats(n)
	case []int32:
		for i := range x {
			x[i] = a.integer()
		}
	case []uint32:
		for i := range x {
			if x[i] = uint32(a.integer()); a.special {
				x[i] = a.Uint32()
			}
		}
	case []uint8:
		for i := range x {
			x[i] = uint8(a.Uint32())
		}
	case []compute.BF16:
		for i := range x {
			x[i] = compute.BF16Of(a.number())
		}
	case []compute.F16:
		for i := range x {
			if x[i] = pick(a.Rand, compute.F16(0x3c00), 0xc000, 0x3800, 0); a.special {
				x[i] = compute.F16(a.Uint32())
			}
		}
	}
	return x
}

func (a *arguments) floats(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = a.number()
	}
	return x
}

// slice is data in host memory of a type that need not be one of elements.
func (a *arguments) slice(n int) any {
	if a.wild() {
		return pick[any](a.Rand, nil, []float32(nil), []int32{}, []float64{1}, "text", 7, []any{1}, [2]float32{}, (*int)(nil), []string{"x"}, func() {})
	}
	return a.data(a.dtype(), n)
}

func (a *arguments) dtype() compute.DType {
	if a.wild() {
		return pick(a.Rand, compute.Int32, compute.Uint32, compute.Float16, compute.BFloat16, compute.DType(5), compute.DType(255))
	}
	return pick(a.Rand, append(slices.Repeat([]compute.DType{compute.Float32}, 12), compute.Int32, compute.Int32, compute.Float16, compute.BFloat16, compute.Uint32)...)
}

func (a *arguments) value(t reflect.Type) reflect.Value {
	zero := reflect.Zero(t)
	switch t {
	case contextType:
		return a.context()
	case shapeType:
		return reflect.ValueOf(a.shape())
	case operandType:
		shape := a.shape()
		n := program.Len(shape)
		if n < 0 || n > 1<<20 || program.CheckShape(shape) != nil || a.wild() {
			n = a.length
		}
		x := compute.Operand{Data: a.slice(n), Shape: shape}
		a.slices = append(a.slices, x.Data)
		return reflect.ValueOf(x)
	case valueType:
		return reflect.ValueOf(a.operand())
	case anyType:
		x := a.slice(a.length)
		a.slices = append(a.slices, x)
		v := reflect.New(anyType).Elem()
		if x != nil {
			v.Set(reflect.ValueOf(x))
		}
		return v
	case reflect.TypeFor[compute.DType]():
		return reflect.ValueOf(a.dtype())
	case reflect.TypeFor[compute.Tensor]():
		v := reflect.New(t).Elem()
		if x := a.tensor(); x != nil {
			v.Set(reflect.ValueOf(x))
		}
		return v
	case reflect.TypeFor[io.Writer]():
		if a.wild() {
			return zero
		}
		return reflect.ValueOf(io.Discard)
	case reflect.TypeFor[*slog.Logger]():
		return zero
	case reflect.TypeFor[batch.Device]():
		return reflect.ValueOf(a.on.device)
	case reflect.TypeFor[*batch.Batch]():
		return reflect.ValueOf(pick(a.Rand, nil, &batch.Batch{}, a.batch, batch.New(a.on.device), a.body()))
	case reflect.TypeFor[*batch.Kept]():
		return reflect.ValueOf(pick(a.Rand, append(a.kept, nil, &batch.Kept{})...))
	case reflect.TypeFor[*batch.Result]():
		return reflect.ValueOf(pick(a.Rand, append(a.read, nil, &batch.Result{})...))
	}
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(a.size()))
	case reflect.Int32:
		v.SetInt(int64(a.integer()))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		if v.SetUint(uint64(a.IntN(4))); a.wild() {
			v.SetUint(a.Uint64() >> (64 - t.Bits()))
		}
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(a.number()))
	case reflect.Bool:
		v.SetBool(a.IntN(2) == 0)
	case reflect.String:
		v.SetString(pick(a.Rand, "", "add", "matmul", "softmax", "concat", "no such operation", "\x00", "attention"))
	case reflect.Struct:
		for i := range t.NumField() {
			if v.Field(i).CanSet() && a.IntN(3) == 0 {
				v.Field(i).Set(a.value(t.Field(i).Type))
			}
		}
	case reflect.Array:
		for i := range t.Len() {
			v.Index(i).Set(a.value(t.Elem()))
		}
	case reflect.Slice:
		if a.wild() {
			return pick(a.Rand, zero, reflect.MakeSlice(t, 0, 0))
		}
		n := a.length
		if t.Elem() == valueType || t.Elem() == operandType || t.Elem().Kind() == reflect.Struct {
			n = a.IntN(4)
		}
		switch t.Elem().Kind() {
		case reflect.Float32:
			v.Set(reflect.ValueOf(a.data(compute.Float32, n)).Convert(t))
		case reflect.Int32:
			v.Set(reflect.ValueOf(a.data(compute.Int32, n)).Convert(t))
		default:
			v.Set(reflect.MakeSlice(t, n, n))
			for i := range n {
				v.Index(i).Set(a.value(t.Elem()))
			}
		}
		a.slices = append(a.slices, v.Interface())
	}
	return v
}

// context is mostly one that does not end.
func (a *arguments) context() reflect.Value {
	v := reflect.New(contextType).Elem()
	ctx := context.Background()
	if a.wild() {
		switch a.IntN(4) {
		case 0:
			return v
		case 1:
			ctx, a.cancel = context.WithCancel(ctx)
			a.cancel()
		case 2:
			ctx, a.cancel = context.WithTimeout(ctx, time.Duration(a.IntN(2000))*time.Microsecond)
			a.timed = true
		case 3:
			ctx, a.cancel = context.WithDeadline(ctx, time.Now().Add(-time.Hour))
		}
	}
	v.Set(reflect.ValueOf(ctx))
	return v
}

// operand is a value of the batch, or none of it.
func (a *arguments) operand() batch.Value {
	if a.wild() {
		other := batch.New(a.on.device)
		return pick(a.Rand, batch.Value{}, other.Upload([]float32{1, 2}))
	}
	return pick(a.Rand, a.values...)
}

// body is a batch to include.
func (a *arguments) body() *batch.Batch {
	b := batch.New(a.on.device)
	b.Return(b.Neg(b.Parameter(compute.Float32, a.dims...)))
	return b
}

// tensor is one of any device, open or closed, or none.
func (a *arguments) tensor() compute.Tensor {
	if a.wild() {
		return pick(a.Rand, a.on.strange...)
	}
	return a.on.tensors[a.IntN(len(a.on.tensors))]
}

// list draws the arguments of a function or method.
func (a *arguments) list(f reflect.Type, skip int) []reflect.Value {
	var in []reflect.Value
	for i := skip; i < f.NumIn(); i++ {
		t := f.In(i)
		if !f.IsVariadic() || i < f.NumIn()-1 {
			in = append(in, a.value(t))
			continue
		}
		if t == shapeType {
			for _, d := range a.shape() {
				in = append(in, reflect.ValueOf(d))
			}
			continue
		}
		n := pick(a.Rand, 0, 1, 1, 1)
		if t.Elem() == valueType || t.Elem() == operandType {
			n = a.IntN(4)
		} else if a.wild() {
			n = 2
		}
		for range n {
			in = append(in, a.value(t.Elem()))
		}
	}
	return in
}
