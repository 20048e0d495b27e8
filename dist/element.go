package dist

import (
	"fmt"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
)

// Reduction is what AllReduce and ReduceScatter make of the elements of all members.
type Reduction = compute.Reduction

// The reductions.
const (
	Sum  = compute.ReduceSum
	Mean = compute.ReduceMean
	Max  = compute.ReduceMax
	Min  = compute.ReduceMin
)

// element is a type of elements.
type element uint8

const (
	float32s element = iota
	float16s
	bfloat16s
	int32s
	uint32s
	bytes
)

var elements = [...]struct {
	name string
	size int
}{{"float32", 4}, {"float16", 2}, {"bfloat16", 2}, {"int32", 4}, {"uint32", 4}, {"byte", 1}}

func (e element) String() string { return elements[e].name }
func (e element) size() int      { return elements[e].size }

// view is a slice as bytes.
type view struct {
	element
	data []byte
}

func (v view) len() int { return len(v.data) / v.size() }

func (v view) String() string { return fmt.Sprintf("%d %v", v.len(), v.element) }

func viewOf(slice any) (view, error) {
	switch s := slice.(type) {
	case []float32:
		return view{float32s, asBytes(s)}, nil
	case []compute.F16:
		return view{float16s, asBytes(s)}, nil
	case []compute.BF16:
		return view{bfloat16s, asBytes(s)}, nil
	case []int32:
		return view{int32s, asBytes(s)}, nil
	case []uint32:
		return view{uint32s, asBytes(s)}, nil
	case []byte:
		return view{bytes, s}, nil
	}
	return view{}, fmt.Errorf("%T is none of []float32, []compute.F16, []compute.BF16, []int32, []uint32, []byte: %w", slice, compute.ErrDType)
}

func asBytes[E any](s []E) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(E))))
}

func fromBytes[E any](b []byte) []E {
	return unsafe.Slice((*E)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(E))))
}

// checkReduction says whether elements can be reduced.
func checkReduction(r Reduction, e element) error {
	switch {
	case r > Min:
		return fmt.Errorf("%v: %w", r, compute.ErrArgument)
	case e == bytes:
		return fmt.Errorf("%v of bytes, which are only moved: %w", r, compute.ErrDType)
	case r == Mean && (e == int32s || e == uint32s):
		return fmt.Errorf("mean of %v: %w", e, compute.ErrDType)
	}
	return nil
}

// reduce sets dst to the reduction of parts, element by element, in their order. Dst may be one of them.
func reduce(r Reduction, e element, dst []byte, parts [][]byte) {
	switch e {
	case float32s:
		reduceFloats(r, fromBytes[float32](dst), partsOf[float32](parts), func(x float32) float32 { return x }, func(x float32) float32 { return x })
	case float16s:
		reduceFloats(r, fromBytes[compute.F16](dst), partsOf[compute.F16](parts), compute.F16.Float32, compute.F16Of)
	case bfloat16s:
		reduceFloats(r, fromBytes[compute.BF16](dst), partsOf[compute.BF16](parts), compute.BF16.Float32, compute.BF16Of)
	case int32s:
		reduceIntegers(r, fromBytes[int32](dst), partsOf[int32](parts))
	case uint32s:
		reduceIntegers(r, fromBytes[uint32](dst), partsOf[uint32](parts))
	}
}

func partsOf[E any](parts [][]byte) [][]E {
	p := make([][]E, len(parts))
	for i := range parts {
		p[i] = fromBytes[E](parts[i])
	}
	return p
}

// block is how many elements are reduced at a time, so that what is summed up stays in the L1 cache.
const block = 1024

func reduceFloats[E any](r Reduction, dst []E, parts [][]E, load func(E) float32, store func(float32) E) {
	var sums [block]float32
	for from := 0; from < len(dst); from += block {
		n := min(block, len(dst)-from)
		acc := sums[:n]
		for i, x := range parts[0][from : from+n] {
			acc[i] = load(x)
		}
		for _, p := range parts[1:] {
			p = p[from : from+n]
			switch r {
			case Max:
				for i, x := range p {
					acc[i] = max(acc[i], load(x))
				}
			case Min:
				for i, x := range p {
					acc[i] = min(acc[i], load(x))
				}
			default:
				for i, x := range p {
					acc[i] += load(x)
				}
			}
		}
		if r == Mean {
			for i := range acc {
				acc[i] /= float32(len(parts))
			}
		}
		for i, x := range acc {
			dst[from+i] = store(x)
		}
	}
}

func reduceIntegers[E int32 | uint32](r Reduction, dst []E, parts [][]E) {
	for i := range dst {
		acc := parts[0][i]
		for _, p := range parts[1:] {
			switch r {
			case Max:
				acc = max(acc, p[i])
			case Min:
				acc = min(acc, p[i])
			default:
				acc += p[i]
			}
		}
		dst[i] = acc
	}
}
