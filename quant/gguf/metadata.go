package gguf

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/wavelane/wavelane/compute"
)

// Keys returns the keys of the metadata in the order of the file.
func (f *File) Keys() []string { return slices.Clone(f.keys) }

// Value returns a value of the metadata, of the Go type of its [Kind], and whether there is one.
func (f *File) Value(key string) (any, bool) {
	v, ok := f.values[key]
	return v, ok
}

// Int returns an integer of any kind. Errors of this and of Float, [Value] and [Values] wrap [ErrMissing] where there is no such key,
// and [compute.ErrDType] where the value is something else or does not fit.
func (f *File) Int(key string) (int, error) {
	v, err := f.find(key)
	if err != nil {
		return 0, err
	}
	switch r := reflect.ValueOf(v); {
	case r.CanInt() && r.Int() >= math.MinInt && r.Int() <= math.MaxInt:
		return int(r.Int()), nil
	case r.CanUint() && r.Uint() <= math.MaxInt:
		return int(r.Uint()), nil
	}
	return 0, unlike(key, v, "an int")
}

// Float returns a number of any kind that float64 holds exactly or, for integers of 64 bits, to the nearest.
func (f *File) Float(key string) (float64, error) {
	v, err := f.find(key)
	if err != nil {
		return 0, err
	}
	switch r := reflect.ValueOf(v); {
	case r.CanFloat():
		return r.Float(), nil
	case r.CanInt():
		return float64(r.Int()), nil
	case r.CanUint():
		return float64(r.Uint()), nil
	}
	return 0, unlike(key, v, "a number")
}

// Value returns a value of the metadata whose Go type is T, such as string or bool. For numbers of any kind see [File.Int] and
// [File.Float], for arrays [Values].
func Value[T any](f *File, key string) (T, error) {
	var zero T
	return typed[T](f, key, fmt.Sprintf("a %T", zero))
}

// Values returns an array whose elements have the Go type T.
func Values[T any](f *File, key string) ([]T, error) {
	var zero T
	a, err := typed[*Array](f, key, fmt.Sprintf("an array of %T", zero))
	if err != nil {
		return nil, err
	}
	if k, err := kindOf(zero); err == nil && k != a.Elem {
		return nil, unlike(key, a, fmt.Sprintf("an array of %v", k))
	}
	values, err := a.Values()
	if err != nil {
		return nil, err
	}
	v, ok := values.([]T)
	if !ok {
		return nil, unlike(key, a, fmt.Sprintf("an array of %T", zero))
	}
	return v, nil
}

func typed[T any](f *File, key, what string) (T, error) {
	v, err := f.find(key)
	t, ok := v.(T)
	if err == nil && !ok {
		err = unlike(key, v, what)
	}
	return t, err
}

func (f *File) find(key string) (any, error) {
	if v, ok := f.values[key]; ok {
		return v, nil
	}
	return nil, fmt.Errorf("gguf: metadata %q: %w", key, ErrMissing)
}

func unlike(key string, v any, what string) error {
	is := fmt.Sprintf("%T %v", v, v)
	switch v := v.(type) {
	case string:
		is = "a string"
	case *Array:
		is = fmt.Sprintf("an array of %d × %v", v.Len, v.Elem)
	}
	return fmt.Errorf("gguf: metadata %q is %s, not %s: %w", key, is, what, compute.ErrDType)
}
