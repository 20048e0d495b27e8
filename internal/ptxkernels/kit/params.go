package kit

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// The parameters of a kernel are the fields of one struct:
//
//	type poolParams struct {
//		H, W   int            `array:"sizes"` // elements of an array of words, as are
//		Plane  scalar.Divide                  // integers and divisors that follow, but for one tagged array:"-"
//		Eps    float32
//		X, Y   Buffer
//		Table  Buffer         `of:"u32"`      // what it points to, if not f32
//	}
//
// Launches give it to [Step.Launch] with values. The kernel reads them by their fields' addresses, from [NewParams]. What docs say
// follows from it, too, see [Kernel.Params].
//
//	int, uint32, int32, float32, uint64  a parameter of that type (int: u32), or an element of an array
//	scalar.Divide                        elements of an array, or an array of its own
//	[]uint32                             an array, which the kernel declares by [Array]
//	Buffer, TensorMap                    a pointer, a tensor map
//	[]Buffer, []float32, []int           a parameter for each element: their names end in numbers, or are those of a tag "names"
//
// Fields tagged param:"-" are none. Structs in it stand for their fields. Names in PTX are those of the fields in lower case, or of a tag "name".

// param is a parameter: of one value, or an array of words.
type param struct {
	name   string
	words  int // of an array; 0 of others
	values []reflect.Value
	names  []string // of values, for docs
	of     string
}

// Namer is a struct of parameters that says what the elements of a slice are called.
type Namer interface {
	ParamNames(field string) []string
}

// paramsOf lists the parameters that a struct stands for.
func paramsOf(s reflect.Value) (all []param) {
	array := false // the last one is to be continued
	namer, _ := s.Interface().(Namer)
	var walk func(s reflect.Value, tag string)
	walk = func(s reflect.Value, tag string) {
		for i := range s.NumField() {
			v, f := s.Field(i), s.Type().Field(i)
			name, begins := f.Tag.Get("name"), f.Tag.Get("array")
			if name == "" {
				name = snake(f.Name)
			}
			if i == 0 && begins == "" {
				begins = tag
			}
			add := func(name string, words int, v reflect.Value) {
				all = append(all, param{name: name, words: words, values: []reflect.Value{v}, names: []string{name}, of: f.Tag.Get("of")})
			}
			if f.Tag.Get("param") == "-" {
				continue
			}
			if f.Anonymous {
				walk(v, begins)
				continue
			}
			switch x := v.Interface().(type) {
			case int, scalar.Divide:
				words := 1
				if v.Type() == reflect.TypeFor[scalar.Divide]() {
					words = scalar.DivisorWords
				}
				if begins == "-" {
					begins, array = "", false
				}
				switch last := len(all) - 1; { // a tag of several fields begins one array
				case begins != "" && !(array && all[last].name == begins):
					add(begins, words, v)
					all[last+1].names[0], array = name, true
				case array:
					a := &all[last]
					a.words, a.values, a.names = a.words+words, append(a.values, v), append(a.names, name)
				case words > 1:
					add(name, words, v)
				default:
					add(name, 0, v)
				}
				continue
			case []uint32:
				add(name, len(x), v)
			case []Buffer, []float32, []int:
				names := strings.Split(f.Tag.Get("names"), ",")
				if namer != nil && f.Tag.Get("names") == "" {
					names = namer.ParamNames(f.Name)
				}
				for i := range v.Len() {
					n := fmt.Sprint(name, i)
					if i < len(names) && names[i] != "" {
						n = names[i]
					}
					add(n, 0, v.Index(i))
				}
			case uint32, int32, float32, uint64, Buffer, TensorMap:
				add(name, 0, v)
			default:
				walk(v, begins)
				continue
			}
			array = false
		}
	}
	walk(s, "")
	return all
}

// snake is the name of a field as PTX has it: StrideA is stride_a.
func snake(name string) string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		if unicode.IsUpper(r) && lower {
			b.WriteByte('_')
		}
		lower = unicode.IsLower(r) || unicode.IsDigit(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// argument is a value for a parameter: uint32, int32, float32, uint64, []uint32 for an array, Buffer for a pointer, or TensorMap, whose At
// does not matter. The name of one that is not a field's is empty.
type argument struct {
	name  string
	value any
}

// argumentsOf is the values of a kernel's parameters. Integers have to fit 32 bits.
func argumentsOf(params any) (all []argument, err error) {
	word := func(name string, n int64) uint32 {
		if n < 0 || n > math.MaxUint32 {
			err = fmt.Errorf("%s of %d does not fit 32 bits: %w", name, n, compute.ErrTooLarge)
		}
		return uint32(n)
	}
	for _, p := range paramsOf(reflect.ValueOf(params)) {
		value := p.values[0].Interface()
		if p.words > 0 {
			if words, ok := value.([]uint32); ok {
				all = append(all, argument{p.name, words})
				continue
			}
			var words []uint32
			for i, v := range p.values {
				if n := word(p.names[i], v.Int()); v.Type() == reflect.TypeFor[int]() {
					words = append(words, n)
				} else {
					words = append(words, scalar.DivisorOf(int(n))...)
				}
			}
			value = words
		} else if n, ok := value.(int); ok {
			value = word(p.name, int64(n))
		}
		all = append(all, argument{p.name, value})
	}
	return all, err
}

// describe tells a struct's parameters, for docs.
func describe(params any) string {
	var all []string
	for _, p := range paramsOf(reflect.ValueOf(params)) {
		switch v := p.values[0].Interface().(type) {
		case Buffer:
			if p.of == "" {
				p.of = "f32"
			}
			all = append(all, p.of+"* "+p.name)
		case TensorMap:
			all = append(all, "tensor map "+p.name)
		case []uint32:
			all = append(all, "u32 "+p.name+"[]")
		default:
			switch {
			case p.words > 0:
				for i, v := range p.values {
					if v.Type() == reflect.TypeFor[scalar.Divide]() {
						p.names[i] += " as divisor"
					}
				}
				all = append(all, fmt.Sprintf("u32 %s[] (%s)", p.name, strings.Join(p.names, ", ")))
			default:
				kind := map[reflect.Kind]string{reflect.Float32: "f32", reflect.Uint64: "u64", reflect.Int32: "s32"}[reflect.TypeOf(v).Kind()]
				if kind == "" {
					kind = "u32"
				}
				all = append(all, kind+" "+p.name)
			}
		}
	}
	return strings.Join(all, ", ")
}

// Params reads the parameters of a kernel under construction. They are declared in the order of the struct: pointers and scalars have
// to be read in that order for the first time.
type Params struct {
	Kernel *ptx.Kernel
	all    []param
	arrays []ptx.Array[uint32] // by parameter
	read   []any               // what was read of others
	next   int                 // to be declared
	fields map[any][2]int      // parameter and word by address
}

// NewParams is the parameters that the struct at s, whose slices have their lengths, stands for. Only the addresses of its fields
// matter.
func NewParams(k *ptx.Kernel, s any) *Params {
	p := &Params{Kernel: k, all: paramsOf(reflect.ValueOf(s).Elem()), fields: map[any][2]int{}}
	p.arrays, p.read = make([]ptx.Array[uint32], len(p.all)), make([]any, len(p.all))
	for i, x := range p.all {
		at := 0
		for _, v := range x.values {
			p.fields[v.Addr().Interface()] = [2]int{i, at}
			if at++; v.Type() == reflect.TypeFor[scalar.Divide]() {
				at += scalar.DivisorWords - 1
			}
		}
	}
	p.declareArrays()
	return p
}

func (p *Params) declareArrays() {
	for ; p.next < len(p.all) && p.all[p.next].words > 0; p.next++ {
		x := p.all[p.next]
		p.arrays[p.next] = ptx.ParamArray[uint32](p.Kernel, x.name, x.words)
	}
}

// element is where a field lies in an array, if it does.
func (p *Params) element(field any) (a ptx.Array[uint32], at int, ok bool) {
	i, known := p.fields[field]
	if !known {
		panic(fmt.Sprintf("kit: a %T that is no parameter", field))
	}
	return p.arrays[i[0]], i[1], p.all[i[0]].words > 0
}

// once is what declare has made of a field, which is not in an array.
func once[T any](p *Params, field any, declare func(name string) T) T {
	p.element(field)
	i := p.fields[field][0]
	if p.read[i] == nil {
		if i != p.next {
			p.Kernel.Errorf("parameter %s is read after %s", p.all[i].name, p.all[max(p.next, 1)-1].name)
		}
		p.read[i] = declare(p.all[i].name)
		p.next = i + 1
		p.declareArrays()
	}
	return p.read[i].(T)
}

// Skip leaves out a parameter in whose place a prologue's are declared.
func (p *Params) Skip(field *Buffer) {
	once(p, field, func(string) struct{} { return struct{}{} })
}

// U32 is a number.
func (p *Params) U32(field *int) ptx.Reg[uint32] {
	if a, at, ok := p.element(field); ok {
		return a.At(at)
	}
	return once(p, field, func(name string) ptx.Reg[uint32] { return ptx.Param[uint32](p.Kernel, name) })
}

// Divisor is a number to divide by.
func (p *Params) Divisor(field *scalar.Divide) scalar.Divisor {
	a, at, _ := p.element(field)
	return scalar.DivisorAt(p.Kernel, a, at)
}

// Divided is the number itself that a divisor divides by.
func (p *Params) Divided(field *scalar.Divide) ptx.Reg[uint32] {
	a, at, _ := p.element(field)
	return a.At(at)
}

// Quotient is x / d for x < 2³¹, for kernels that have no other use for the divisor.
func (p *Params) Quotient(field *scalar.Divide, x ptx.Reg[uint32]) ptx.Reg[uint32] {
	a, at, _ := p.element(field)
	return scalar.QuotientAt(p.Kernel, a, at, x)
}

// Array is an array whose type and length the kernel knows, of a []uint32.
func Array[T ptx.Elem](p *Params, field *[]uint32, n int) ptx.Array[T] {
	return once(p, field, func(name string) ptx.Array[T] { return ptx.ParamArray[T](p.Kernel, name, n) })
}

// Read is a scalar.
func Read[T ptx.Elem](p *Params, field *T) ptx.Reg[T] {
	return once(p, field, func(name string) ptx.Reg[T] { return ptx.Param[T](p.Kernel, name) })
}

// Ptr is a pointer to elements of any type.
func Ptr[T ptx.Elem](p *Params, field *Buffer, opts ...ptx.DeclOption) ptx.Ptr[ptx.Global, T] {
	return once(p, field, func(name string) ptx.Ptr[ptx.Global, T] { return ptx.PointerParam[T](p.Kernel, name, opts...) })
}

// Map is a tensor map.
func Map[T ptx.Elem](p *Params, field *TensorMap) ptx.TensorMap[T] {
	return once(p, field, func(name string) ptx.TensorMap[T] { return ptx.TensorMapParam[T](p.Kernel, name) })
}

// replace puts arguments in the place of those that are the buffer.
func replace(all []argument, x Buffer, by []argument) []argument {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].value == any(x) {
			all = slices.Replace(all, i, i+1, by...)
		}
	}
	return all
}
