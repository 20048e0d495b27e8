package scalar

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx"
)

// The run-time numbers of a kernel are a struct that is declared once, with a type parameter for numbers and one for divisors:
//
//	type sizes[N, D any] struct {
//		Rows N
//		Cols D
//	}
//
// The host's sizes[int, Divide] is an argument of a launch; the kernel has a sizes[Word, DivisorWord] from
// [ParamWords], and [WordNames] tells the fields in docs. Fields are exported, for package reflect, and may be such structs themselves.

// Word is a number of 32 bits in an array of parameters.
type Word struct {
	from ptx.Array[uint32]
	at   int
}

// Load reads the number.
func (w Word) Load() ptx.Reg[uint32] { return w.from.At(w.at) }

// DivisorWord is a number to divide by in an array of parameters.
type DivisorWord struct{ Word }

// Load reads the divisor.
func (w DivisorWord) Load(k *ptx.Kernel) Divisor { return DivisorAt(k, w.from, w.at) }

// Quotient is x / d for x < 2³¹, for kernels that have no other use for the divisor.
func (w DivisorWord) Quotient(k *ptx.Kernel, x ptx.Reg[uint32]) ptx.Reg[uint32] {
	return QuotientAt(k, w.from, w.at, x)
}

// ParamWords declares an array of parameters for the fields of S.
func ParamWords[S any](k *ptx.Kernel, name string) (s S) {
	n := 0
	eachField(reflect.ValueOf(&s).Elem(), func(_ string, v reflect.Value) { n += wordsOf(v) })
	from := ptx.ParamArray[uint32](k, name, n)
	n = 0
	eachField(reflect.ValueOf(&s).Elem(), func(_ string, v reflect.Value) {
		switch w := v.Addr().Interface().(type) {
		case *Word:
			*w = Word{from, n}
		case *DivisorWord:
			*w = DivisorWord{Word{from, n}}
		}
		n += wordsOf(v)
	})
	return s
}

// PackWords is the words of an array that [ParamWords] declared. Numbers have to fit 32 bits.
func PackWords(s any) (words []uint32, err error) {
	if reflect.ValueOf(s).Kind() != reflect.Struct {
		return nil, fmt.Errorf("internal error: an argument of type %T", s)
	}
	eachField(reflect.ValueOf(s), func(name string, v reflect.Value) {
		switch n := v.Int(); {
		case n < 0 || n > math.MaxUint32:
			err = fmt.Errorf("%s of %d does not fit 32 bits: %w", name, n, compute.ErrTooLarge)
		case wordsOf(v) > 1:
			words = append(words, DivisorOf(int(n))...)
		default:
			words = append(words, uint32(n))
		}
	})
	return words, err
}

// WordNames is the fields of S in order, for docs.
func WordNames[S any]() string {
	var s S
	var names []string
	eachField(reflect.ValueOf(s), func(name string, v reflect.Value) {
		first, size := utf8.DecodeRuneInString(name)
		if name = string(unicode.ToLower(first)) + name[size:]; wordsOf(v) > 1 {
			name += " as divisor"
		}
		names = append(names, name)
	})
	return strings.Join(names, ", ")
}

// wordsOf is how many elements of the array a field takes.
func wordsOf(v reflect.Value) int {
	switch v.Interface().(type) {
	case DivisorWord, Divide:
		return DivisorWords
	}
	return 1
}

// eachField calls f for the fields of a struct and of those in it.
func eachField(s reflect.Value, f func(name string, v reflect.Value)) {
	for i := range s.NumField() {
		v := s.Field(i)
		switch v.Interface().(type) {
		case Word, DivisorWord, int, Divide:
			f(s.Type().Field(i).Name, v)
		default:
			eachField(v, f)
		}
	}
}
