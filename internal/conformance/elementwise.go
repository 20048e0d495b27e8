package conformance

import (
	"math"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func init() {
	byClass[program.Unary] = unaryCases
	byClass[program.Binary] = func(b *builder) { broadcastCases(b, binaryShapes, specials(b.Entry)) }
	byClass[program.Ternary] = func(b *builder) {
		inf := float32(math.Inf(1))
		// Nothing here overflows on the way to a finite result or to an infinity of the other sign.
		broadcastCases(b, ternaryShapes, []float32{float32(math.NaN()), inf, -inf, 0, 1, -1, 0.5, 3, 1e19, -1e19, 1e-40, 0x1p-126})
		const largest = math.MaxFloat32
		b.given("FLT_MAX", program.Attr{}, vector(largest, -largest, largest, 1, largest), vector(1, 1, largest, largest, 0), vector(0, 1, 0.5, 0, 1)).loose = 16
	}
}

// lengths are sizes around those of vectors, tiles and workgroups, and primes.
var lengths = []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 2048, 4099, 65537}

// specials are values at which functions, formats and machines change their behaviour.
func specials(e *program.Entry) []float32 {
	inf := float32(math.Inf(1))
	s := []float32{float32(math.NaN()), inf, -inf, 0, float32(math.Copysign(0, -1)), 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 2, -2,
		3, -3, 6, 1e-4, -1e-4, 0.1, -0.1, math.Pi, 20, -20, 1000, -1000, 1e-20, -1e-20, 0x1p-126, -0x1p-126}
	s = append(s, 1e-40, -1e-40, 0x1p-149, -0x1p-149) // subnormals
	if e.Name == "sin" || e.Name == "cos" {
		return s // beyond 8192 their error is not bounded
	}
	return append(s, 88.7, 88.8, -87.4, -88, 104, -104, 8388607.5, -8388607.5, 16777216, 1e10, -1e10, math.MaxFloat32, -math.MaxFloat32)
}

func unaryCases(b *builder) {
	all := attrs(b.Entry, nil)
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	if b.Entry == catalogue.Clip {
		all = append(all, program.Attr{Scalars: []float32{2, 1}}, program.Attr{Scalars: []float32{-inf, inf}}, program.Attr{Scalars: []float32{0.25, 0.25}})
	}
	if b.Entry == catalogue.Clip {
		for _, bounds := range [][]float32{{nan, 1}, {0, nan}, {nan, nan}} {
			b.given("bounds that are NaN", program.Attr{Scalars: bounds}, vector(specials(b.Entry)...))
		}
	}
	for i, a := range all {
		for j, n := range lengths {
			if i == 0 || j%4 == 0 {
				b.random("", a, []int{n})
			}
		}
		for _, s := range [][]int{{}, {3, 5}, {2, 0, 3}, {1, 2, 1, 3, 2, 1, 2, 2}} {
			b.random("", a, s)
		}
		b.given("special values", a, vector(specials(b.Entry)...)).loose = 16
		b.add("NaN and Inf scattered", a, func(r *source) []operand {
			x := r.domain(b.Entry, 1111).set(nan, 0, 100, 255, 299, 1024, 1110).set(inf, 1, 256, 1025, 1030, 1035, 1040)
			return []operand{x.set(-inf, 2, 257, 1029, 1034, 1039, 1044)}
		})
	}
	c := b.random("", all[0], []int{1025})
	b.again(c, inPlace)
	b.again(c, shifted)
}

var binaryShapes = [][][]int{
	{{}, {}}, {{}, {5}}, {{5}, {}}, {{1}, {7}}, {{7}, {1}}, {{1, 1}, {1}}, {{}, {2, 3, 4}},
	{{4, 5}, {5}}, {{5}, {4, 5}}, {{4, 5}, {1, 5}}, {{4, 5}, {4, 1}}, {{4, 1}, {4, 5}}, {{4, 1}, {1, 5}}, {{4, 1}, {5}},
	{{2, 3, 4}, {3, 1}}, {{2, 3, 4}, {1, 3, 1}}, {{2, 1, 4}, {1, 3, 1}}, {{2, 3, 4, 5}, {3, 1, 5}}, {{2, 1, 4, 1}, {3, 1, 5}},
	{{1024, 3}, {1024, 1}}, {{256, 4}, {256, 1}}, {{2, 1, 2, 1, 2, 1, 2, 4}, {1, 2, 1, 2, 1, 2, 1, 4}},
	{{64, 65}, {65}}, {{257, 33}, {257, 1}}, {{1, 257}, {129, 1}}, {{63, 4}, {4}}, {{33, 16}, {33, 1}},
	{{2, 1, 3, 1, 2, 1, 2, 3}, {1, 2, 1, 2, 1, 2, 1, 1}}, {{2, 1, 2, 1, 2, 1, 2, 1}, {1, 3, 1, 2, 1, 2, 1, 3}},
	{{2, 2, 2, 2, 2, 2, 2, 2}, {2, 2, 2, 2, 1, 2, 2, 2}},
	{{0}, {1}}, {{1}, {0}}, {{0}, {}}, {{0, 3}, {1, 3}}, {{3, 0, 2}, {1, 1}}, {{2, 1}, {1, 0}}, {{0, 0}, {0, 0}},
}

var ternaryShapes = [][][]int{
	{{}, {}, {}}, {{}, {5}, {}}, {{5}, {}, {}}, {{}, {}, {5}}, {{1}, {7}, {1}}, {{4, 5}, {5}, {4, 1}}, {{5}, {4, 1}, {4, 5}},
	{{4, 1}, {1, 5}, {}}, {{2, 3, 4}, {3, 1}, {1, 1, 4}}, {{2, 1, 4}, {1, 3, 1}, {4}}, {{2, 1, 1}, {3, 1}, {4}},
	{{1024, 3}, {1024, 1}, {}}, {{256, 4}, {256, 1}, {4}},
	{{2, 1, 2, 1, 2, 1, 2, 4}, {1, 2, 1, 2, 1, 2, 1, 4}, {1, 2, 1, 1, 2, 1, 1, 4}},
	{{4, 1}, {4, 12}, {4, 1}}, {{64, 65}, {65}, {64, 1}}, {{1, 257}, {129, 1}, {1}}, {{33, 17}, {33, 17}, {1, 17}},
	{{2, 1, 2, 1, 2, 1, 2, 1}, {1, 3, 1, 2, 1, 2, 1, 3}, {2, 1, 1, 1, 1, 1, 1, 1}},
	{{0}, {1}, {}}, {{3, 0, 2}, {1, 1}, {2}}, {{1}, {1}, {0}},
}

func broadcastCases(b *builder, shapes [][][]int, special []float32) {
	none := program.Attr{}
	arity := len(b.Inputs)
	for _, n := range lengths {
		equal := make([][]int, arity)
		for i := range equal {
			equal[i] = []int{n}
		}
		b.random("", none, equal...)
	}
	for _, s := range shapes {
		b.random("", none, s...)
	}
	// Every combination of special values, once by broadcasting and once element by element.
	crossed := make([]operand, arity)
	var shape []int
	for i := range crossed {
		s := make([]int, arity)
		for j := range s {
			s[j] = 1
		}
		s[i] = len(special)
		shape = append(shape, len(special))
		crossed[i] = f32s(s, special...)
	}
	b.given("special values", none, crossed...).loose = 16
	flat := make([]operand, arity)
	for i := range flat {
		x := make([]float32, program.Len(shape))
		strides := program.BroadcastStrides(crossed[i].Shape, shape)
		program.Walk(shape, func(at int, index []int) { x[at] = special[program.Dot(index, strides)] })
		flat[i] = vector(x...)
	}
	b.given("special values", none, flat...).loose = 16
	if b.Entry == catalogue.Pow {
		b.add("integer exponents", none, func(r *source) []operand {
			return []operand{r.floats(-4, 4, 300), r.integers(-5, 5, 300)}
		})
		b.add("positive bases", none, func(r *source) []operand {
			return []operand{r.floats(1e-3, 4, 300), r.floats(-4, 4, 300)}
		})
	}
	same := make([][]int, arity)
	for i := range same {
		same[i] = []int{259}
	}
	b.random("one value for all operands", none, same...).same = true
	c := b.random("", none, same...)
	b.again(c, inPlace)
	b.again(c, shifted)
	row := append([][]int{{259}}, same[1:]...)
	row[len(row)-1] = []int{3, 259}
	c = b.random("", none, row...)
	b.again(c, inPlace)
	b.again(c, shifted)
}
