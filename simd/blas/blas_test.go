package blas_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/wavelane/wavelane/internal/testseed"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/gonum"
	"gonum.org/v1/gonum/mat"

	wavelane "github.com/wavelane/wavelane/simd/blas"
)

// source returns the random numbers of a test.
func source(t *testing.T) *rand.Rand { return testseed.Rand(t) }

// args makes arguments of BLAS routines.
type args struct{ *rand.Rand }

func (r args) scalar() float32 {
	return []float32{0, 1, -1, 2*r.Float32() - 1, 3}[r.IntN(5)]
}

func (r args) size() int {
	return []int{0, 1, 2, 3, 5, 16, 17, 31, 32, 33, 48, 63, 64, 65, 70, 100, 130}[r.IntN(17)]
}

func (r args) trans() blas.Transpose {
	return []blas.Transpose{blas.NoTrans, blas.Trans, blas.ConjTrans}[r.IntN(3)]
}
func (r args) uplo() blas.Uplo { return []blas.Uplo{blas.Upper, blas.Lower}[r.IntN(2)] }
func (r args) side() blas.Side { return []blas.Side{blas.Left, blas.Right}[r.IntN(2)] }
func (r args) diag() blas.Diag { return []blas.Diag{blas.Unit, blas.NonUnit}[r.IntN(2)] }
func (r args) inc() int        { return []int{1, 1, 1, 1, 2, -1, -3}[r.IntN(7)] }

// vector has n elements, and NaN between them. (Of longer slices gonum's Sgemv clears all elements.)
func (r args) vector(n, inc int) []float32 {
	step := max(inc, -inc)
	x := make([]float32, max(0, (n-1)*step+1))
	for i := range x {
		x[i] = float32(math.NaN())
	}
	for i := range n {
		x[i*step] = 2*r.Float32() - 1
	}
	return x
}

// matrix has NaN between and after its rows.
func (r args) matrix(rows, cols int) (a []float32, ld int) {
	ld = max(1, cols) + r.IntN(2)*r.IntN(5)
	a = make([]float32, max(0, (rows-1)*ld+cols)+r.IntN(3))
	for i := range a {
		a[i] = float32(math.NaN())
		if i%ld < cols && i/ld < rows {
			a[i] = 2*r.Float32() - 1
		}
	}
	return a, ld
}

// triangle has NaN in the other triangle, and a diagonal that makes solving harmless.
func (r args) triangle(n int, ul blas.Uplo, d blas.Diag) (a []float32, ld int) {
	a, ld = r.matrix(n, n)
	for i := range n {
		for j := range n {
			at := &a[i*ld+j]
			switch {
			case i == j && d == blas.Unit, i < j && ul == blas.Lower, i > j && ul == blas.Upper:
				*at = float32(math.NaN())
			case i == j:
				*at = 2 + r.Float32()
			default:
				*at /= float32(n)
			}
		}
	}
	return a, ld
}

// symmetric has NaN in the triangle that is not given.
func (r args) symmetric(n int, ul blas.Uplo) ([]float32, int) { return r.triangle(n, ul, blas.NonUnit) }

func (r args) op(t blas.Transpose, rows, cols int) ([]float32, int) {
	if t == blas.NoTrans {
		return r.matrix(rows, cols)
	}
	return r.matrix(cols, rows)
}

func (r args) order(s blas.Side, m, n int) int {
	if s == blas.Left {
		return m
	}
	return n
}

// routines makes random arguments for every routine that is ours, by its name without the letter of the type.
var routines = map[string]func(r args) []any{
	"dot": func(r args) []any {
		n, p, q := r.size(), r.inc(), r.inc()
		return []any{n, r.vector(n, p), p, r.vector(n, q), q}
	},
	"axpy": func(r args) []any {
		n, p, q := r.size(), r.inc(), r.inc()
		return []any{n, r.scalar(), r.vector(n, p), p, r.vector(n, q), q}
	},
	"scal": func(r args) []any {
		n, p := r.size(), max(1, r.inc())
		return []any{n, r.scalar(), r.vector(n, p), p}
	},
	"asum": func(r args) []any { n, p := r.size(), max(1, r.inc()); return []any{n, r.vector(n, p), p} },
	"nrm2": func(r args) []any {
		n, p := r.size(), max(1, r.inc())
		x := r.vector(n, p)
		for i, f := range x { // some beyond what squares can hold
			x[i] = f * []float32{1, 1e-30, 1e30}[len(x)%3]
		}
		return []any{n, x, p}
	},
	"gemv": func(r args) []any {
		t, m, n, p, q := r.trans(), r.size(), r.size(), r.inc(), r.inc()
		a, lda := r.matrix(m, n)
		in, out := n, m
		if t != blas.NoTrans {
			in, out = m, n
		}
		return []any{t, m, n, r.scalar(), a, lda, r.vector(in, p), p, r.scalar(), r.vector(out, q), q}
	},
	"ger": func(r args) []any {
		m, n, p, q := r.size(), r.size(), r.inc(), r.inc()
		a, lda := r.matrix(m, n)
		return []any{m, n, r.scalar(), r.vector(m, p), p, r.vector(n, q), q, a, lda}
	},
	"symv": func(r args) []any {
		ul, n, p, q := r.uplo(), r.size(), r.inc(), r.inc()
		a, lda := r.symmetric(n, ul)
		return []any{ul, n, r.scalar(), a, lda, r.vector(n, p), p, r.scalar(), r.vector(n, q), q}
	},
	"syr": func(r args) []any {
		ul, n, p := r.uplo(), r.size(), r.inc()
		a, lda := r.symmetric(n, ul)
		return []any{ul, n, r.scalar(), r.vector(n, p), p, a, lda}
	},
	"syr2": func(r args) []any {
		ul, n, p, q := r.uplo(), r.size(), r.inc(), r.inc()
		a, lda := r.symmetric(n, ul)
		return []any{ul, n, r.scalar(), r.vector(n, p), p, r.vector(n, q), q, a, lda}
	},
	"trmv": triangularVector,
	"trsv": triangularVector,
	"gemm": func(r args) []any {
		tA, tB, m, n, k := r.trans(), r.trans(), r.size(), r.size(), r.size()
		a, lda := r.op(tA, m, k)
		b, ldb := r.op(tB, k, n)
		c, ldc := r.matrix(m, n)
		return []any{tA, tB, m, n, k, r.scalar(), a, lda, b, ldb, r.scalar(), c, ldc}
	},
	"symm": func(r args) []any {
		s, ul, m, n := r.side(), r.uplo(), r.size(), r.size()
		a, lda := r.symmetric(r.order(s, m, n), ul)
		b, ldb := r.matrix(m, n)
		c, ldc := r.matrix(m, n)
		return []any{s, ul, m, n, r.scalar(), a, lda, b, ldb, r.scalar(), c, ldc}
	},
	"syrk": func(r args) []any {
		ul, t, n, k := r.uplo(), r.trans(), r.size(), r.size()
		a, lda := r.op(t, n, k)
		c, ldc := r.symmetric(n, ul)
		return []any{ul, t, n, k, r.scalar(), a, lda, r.scalar(), c, ldc}
	},
	"syr2k": func(r args) []any {
		ul, t, n, k := r.uplo(), r.trans(), r.size(), r.size()
		a, lda := r.op(t, n, k)
		b, ldb := r.op(t, n, k)
		c, ldc := r.symmetric(n, ul)
		return []any{ul, t, n, k, r.scalar(), a, lda, b, ldb, r.scalar(), c, ldc}
	},
	"trmm": triangularMatrix,
	"trsm": triangularMatrix,
}

func triangularVector(r args) []any {
	ul, t, d, n, p := r.uplo(), r.trans(), r.diag(), r.size(), r.inc()
	a, lda := r.triangle(n, ul, d)
	return []any{ul, t, d, n, a, lda, r.vector(n, p), p}
}

func triangularMatrix(r args) []any {
	s, ul, t, d, m, n := r.side(), r.uplo(), r.trans(), r.diag(), r.size(), r.size()
	a, lda := r.triangle(r.order(s, m, n), ul, d)
	b, ldb := r.matrix(m, n)
	return []any{s, ul, t, d, m, n, r.scalar(), a, lda, b, ldb}
}

// call calls a routine and returns its result, if it has one; slices among the arguments hold the others.
func call(implementation any, name string, in []any) any {
	f := reflect.ValueOf(implementation).MethodByName(name)
	values := make([]reflect.Value, len(in))
	for i, v := range in {
		values[i] = reflect.ValueOf(v)
	}
	if out := f.Call(values); len(out) == 1 {
		return out[0].Interface()
	}
	return nil
}

// double returns copies of the arguments in float64.
func double(in []any) []any {
	out := make([]any, len(in))
	for i, v := range in {
		switch v := v.(type) {
		case float32:
			out[i] = float64(v)
		case []float32:
			d := make([]float64, len(v))
			for j, f := range v {
				d[j] = float64(f)
			}
			out[i] = d
		default:
			out[i] = v
		}
	}
	return out
}

// contiguous copies a vector to where its increment is 1.
func contiguous(n int, x []float64, inc int) []float64 {
	y := make([]float64, n)
	for i := range y {
		if inc > 0 {
			y[i] = x[i*inc]
		} else {
			y[i] = x[(n-1-i)*-inc]
		}
	}
	return y
}

// same compares with the result in float64. Sizes are at most 130 and numbers about 1, so that errors stay far below 1e-4
// of the largest number; NaN must be where NaN was.
func same(t *testing.T, want, got any, note ...any) {
	t.Helper()
	switch got := got.(type) {
	case nil:
	case float32:
		require.InDelta(t, want.(float64), float64(got), 1e-4*(1+math.Abs(want.(float64))), note...)
	case []float32:
		scale := 1.0
		for _, v := range want.([]float64) {
			if v == v {
				scale = max(scale, math.Abs(v))
			}
		}
		for i, v := range want.([]float64) {
			if d := math.Abs(v - float64(got[i])); !(d <= 1e-4*scale) && !(v != v && got[i] != got[i]) {
				require.Failf(t, "wrong element", "%d: want %v, got %v; %v", i, v, got[i], note)
			}
		}
	}
}

// TestAgainstFloat64 runs every routine of ours on random arguments, all strides, triangles and transposes, beside gonum's in
// float64. What lies between rows and in the triangles that are not given is NaN: it must neither be read nor written.
func TestAgainstFloat64(t *testing.T) {
	r := args{source(t)}
	for name, arguments := range routines {
		t.Run(name, func(t *testing.T) {
			for range 300 {
				in := arguments(r)
				wide := double(in)
				if name == "ger" { // gonum's reads outside of slices where an increment is negative
					wide[3], wide[4] = contiguous(wide[0].(int), wide[3].([]float64), wide[4].(int)), 1
					wide[5], wide[6] = contiguous(wide[1].(int), wide[5].([]float64), wide[6].(int)), 1
				}
				var shown []any
				for _, v := range in {
					if _, ok := v.([]float32); !ok {
						shown = append(shown, v)
					}
				}
				want := call(gonum.Implementation{}, "D"+name, wide)
				if name == "ger" {
					copy(wide[:7], double(in)) // x and y as they were
				}
				got := call(wavelane.Implementation{}, "S"+name, in)
				same(t, want, got, name, shown)
				for i := range in {
					if x, ok := in[i].([]float32); ok {
						same(t, wide[i], x, name, shown, "argument", i)
					}
				}
			}
		})
	}
}

// TestEveryRoutineIsTested reads the sources: each method that is not gonum's has arguments above.
func TestEveryRoutineIsTested(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	found := 0
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || !strings.HasPrefix(fn.Name.Name, "S") || fn.Name.Name == "Isamax" { // TestIsamax
				continue
			}
			found++
			require.Contains(t, routines, fn.Name.Name[1:])
		}
	}
	require.Equal(t, len(routines), found)
}

func TestIsamax(t *testing.T) {
	r := args{source(t)}
	var ours wavelane.Implementation
	for range 1000 {
		n := r.size()
		x := r.vector(n, 1)
		if n > 2 { // ties of both signs, NaN
			x[r.IntN(n)] = 2
			x[r.IntN(n)] = -2
			if r.IntN(4) == 0 {
				x[r.IntN(n)] = float32(math.NaN())
			}
		}
		require.Equal(t, gonum.Implementation{}.Isamax(n, x, 1), ours.Isamax(n, x, 1), x)
	}
}

// TestBadArguments: they panic as gonum's do.
func TestBadArguments(t *testing.T) {
	var ours wavelane.Implementation
	x := make([]float32, 4)
	for name, f := range map[string]func(i blas.Float32){
		"negative n": func(i blas.Float32) { i.Sdot(-1, x, 1, x, 1) },
		"short":      func(i blas.Float32) { i.Saxpy(5, 1, x, 1, make([]float32, 9), 1) },
		"increment":  func(i blas.Float32) { i.Sscal(2, 2, x, 0) },
		"lda":        func(i blas.Float32) { i.Sgemm(blas.NoTrans, blas.NoTrans, 2, 2, 2, 1, x, 1, x, 2, 0, x, 2) },
		"transpose":  func(i blas.Float32) { i.Sgemv('x', 2, 2, 1, x, 2, x, 1, 0, make([]float32, 2), 1) },
		"uplo": func(i blas.Float32) {
			i.Ssyrk('x', blas.NoTrans, 40, 40, 1, make([]float32, 1600), 40, 0, make([]float32, 1600), 40)
		},
		"short c": func(i blas.Float32) { i.Sgemm(blas.NoTrans, blas.NoTrans, 3, 3, 1, 1, x, 1, x, 3, 0, x, 3) },
	} {
		message := func(i blas.Float32) (v any) {
			defer func() { v = recover() }()
			f(i)
			return nil
		}
		want := message(gonum.Implementation{})
		require.NotNil(t, want, name)
		require.Equal(t, want, message(ours), name)
	}
}

// TestUse is what the package is for: programs that know blas32 only.
func TestUse(t *testing.T) {
	blas32.Use(wavelane.Implementation{})
	defer blas32.Use(gonum.Implementation{})
	r := source(t)
	const n = 90
	a, b, c := make([]float32, n*n), make([]float32, n*n), make([]float32, n*n)
	wide := mat.NewDense(n, n, nil)
	wideB := mat.NewDense(n, n, nil)
	for i := range a {
		a[i], b[i] = r.Float32(), r.Float32()
		wide.Set(i/n, i%n, float64(a[i]))
		wideB.Set(i/n, i%n, float64(b[i]))
	}
	general := func(x []float32) blas32.General { return blas32.General{Rows: n, Cols: n, Stride: n, Data: x} }
	blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, general(a), general(b), 0, general(c))
	var want mat.Dense
	want.Mul(wide, wideB)
	for i, v := range c {
		require.InEpsilon(t, want.At(i/n, i%n), float64(v), 1e-5)
	}
}
