package conformance

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

func TestMain(m *testing.M) {
	code := m.Run()
	fmt.Print(Summary())
	os.Exit(code)
}

// recorder collects failures instead of failing a test.
type recorder struct {
	failures []string
	first    bool // stop at the first one
}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
	if r.first {
		r.FailNow()
	}
}

func (r *recorder) FailNow() { runtime.Goexit() }

// failures runs a part of the suite and returns what it complained about.
func failures(part func(t require.TestingT)) []string { return record(&recorder{}, part) }

// firstFailure is failures up to the first.
func firstFailure(part func(t require.TestingT)) string {
	return strings.Join(record(&recorder{first: true}, part), "")
}

func record(r *recorder, part func(t require.TestingT)) []string {
	done := make(chan struct{})
	go func() {
		defer close(done)
		part(r)
	}()
	<-done
	return r.failures
}

func (r *referenceDevice) device() *testDevice {
	return &testDevice{Executor: r, name: "reference", count: &atomic.Int64{}}
}

func TestReferencePasses(t *testing.T) {
	d := (&referenceDevice{}).device()
	for _, e := range catalogue.All() {
		require.Empty(t, failures(func(t require.TestingT) { d.entry(t, e, 1) }), e.Name)
	}
	for _, p := range programs {
		require.Empty(t, failures(func(t require.TestingT) { d.program(t, p) }), p.name)
	}
	require.Greater(t, d.count.Load(), int64(5000))
}

// An entry that nobody says how to test is a failure.
func TestEntryWithoutCases(t *testing.T) {
	e := *catalogue.Copy
	e.Name, e.Class = "unheard_of", program.Matrix
	got := failures(func(t require.TestingT) { (&referenceDevice{}).device().entry(t, &e, 1) })
	require.Len(t, got, 1)
	require.Contains(t, got[0], "unheard_of has 0 cases")
}

// One element of every result moved by ten times the tolerance, or for exact entries to the next number, is noticed.
func TestPerturbationIsNoticed(t *testing.T) {
	for _, e := range catalogue.All() {
		dev := &referenceDevice{mutate: func(s program.Step, in []operand, result any) {
			r, ok := result.([]float32)
			if !ok || len(r) == 0 {
				perturbWords(result)
				return
			}
			at := len(r) / 2
			out, err := s.Entry.Check(types(in), s.Attr)
			require.NoError(t, err)
			x := expect(s.Entry, s.Attr, in, out)[0]
			if v := r[at] + float32(10*x.slack(at)); v != r[at] {
				r[at] = v
			} else {
				r[at] = math.Nextafter32(r[at], float32(math.Inf(1)))
			}
		}}
		got := firstFailure(func(t require.TestingT) { dev.device().entry(t, e, 1) })
		require.Contains(t, got, e.Name+" #")
		require.Contains(t, got, "WAVELANE_SEED=")
	}
}

func perturbWords(result any) {
	switch s := result.(type) {
	case []int32:
		if len(s) > 0 {
			s[len(s)-1]++
		}
	case []uint32:
		if len(s) > 0 {
			s[0] ^= 1
		}
	case []compute.F16:
		if len(s) > 0 {
			s[len(s)-1] ^= 1
		}
	}
}

// A destination that the device leaves alone, wholly or in its last element, is noticed even where NaN is right.
func TestUnwrittenIsNoticed(t *testing.T) {
	for _, e := range catalogue.All() {
		got := firstFailure(func(t require.TestingT) { (&referenceDevice{skip: true}).device().entry(t, e, 1) })
		require.Contains(t, got, "never written", e.Name)
	}
}

// What devices get wrong in practice.
func TestKnownMistakesAreNoticed(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name  string
		entry *program.Entry
		bend  func(s program.Step, in []operand, result any)
	}{
		{"the last of equals", catalogue.ArgMax, func(s program.Step, in []operand, result any) {
			x := in[0].data.([]float32)
			r := result.([]int32)
			cols := len(x) / max(len(r), 1)
			for i := range r {
				for j, v := range x[i*cols : (i+1)*cols] {
					if v == x[i*cols+int(r[i])] {
						r[i] = int32(j)
					}
				}
			}
		}},
		{"a maximum that ignores NaN", catalogue.Max, func(s program.Step, in []operand, result any) {
			for i, v := range result.([]float32) {
				if v != v {
					result.([]float32)[i] = 8
				}
			}
		}},
		{"relu that drops NaN", catalogue.ReLU, func(s program.Step, in []operand, result any) {
			for i, v := range result.([]float32) {
				if v != v {
					result.([]float32)[i] = 0
				}
			}
		}},
		{"softmax of -Inf as zeros", catalogue.Softmax, func(s program.Step, in []operand, result any) {
			for i := range result.([]float32) {
				if math.IsInf(float64(in[0].data.([]float32)[i]), -1) {
					result.([]float32)[i] = 0
				}
			}
		}},
		{"a variance of E[x²] − E[x]²", catalogue.LayerNorm, func(s program.Step, in []operand, result any) {
			x, r := in[0].data.([]float32), result.([]float32)
			cols := in[0].Shape[len(in[0].Shape)-1]
			for i := range r {
				row := x[i/cols*cols : (i/cols+1)*cols]
				var sum, squares float32
				for _, v := range row {
					sum, squares = sum+v, squares+v*v
				}
				mean := sum / float32(cols)
				rstd := 1 / math.Sqrt(float64(squares/float32(cols)-mean*mean+s.Attr.Scalars[0]))
				r[i] = (x[i]-mean)*float32(rstd)*in[1].data.([]float32)[i%cols] + in[2].data.([]float32)[i%cols]
			}
		}},
		{"K rounded down to a multiple of four", catalogue.MatMul, func(s program.Step, in []operand, result any) {
			o := s.Attr.Options.(compute.MatMulOptions)
			if d, _ := catalogue.MatMulShape(in[0].Shape, in[1].Shape, o); d.K%4 != 0 && d.K > 4 && o.Act == 0 && !o.TransA && !o.TransB && d.Batch == 1 {
				r := result.([]float32)
				for i := range r {
					r[i] -= in[0].data.([]float32)[i/d.N*d.K+d.K-1] * in[1].data.([]float32)[(d.K-1)*d.N+i%d.N]
				}
			}
		}},
		{"a running float32 sum", catalogue.Sum, func(s program.Step, in []operand, result any) {
			if r := result.([]float32); len(r) == 1 {
				r[0] = 0
				for _, v := range in[0].data.([]float32) {
					r[0] += v
				}
				r[0] *= 1 + 1e-5
			}
		}},
		{"padding that wins", catalogue.MaxPool2D, func(s program.Step, in []operand, result any) {
			for i, v := range result.([]float32) {
				result.([]float32)[i] = max(v, 0)
			}
		}},
		{"padding that counts", catalogue.AvgPool2D, func(s program.Step, in []operand, result any) {
			o := s.Attr.Options.(compute.PoolOptions)
			if r := result.([]float32); o.Pad[0] > 0 && len(r) > 0 {
				r[0] *= 0.75
			}
		}},
		{"ids clamped", catalogue.Embedding, func(s program.Step, in []operand, result any) {
			for i, v := range result.([]float32) {
				if v != v && len(in[0].data.([]float32)) > 0 {
					result.([]float32)[i] = in[0].data.([]float32)[0]
				}
			}
		}},
		{"halves rounded away from zero", catalogue.Round, func(s program.Step, in []operand, result any) {
			for i, v := range in[0].data.([]float32) {
				result.([]float32)[i] = float32(math.Round(float64(v)))
			}
		}},
		{"halves cut off", catalogue.Cast, func(s program.Step, in []operand, result any) {
			if r, ok := result.([]compute.F16); ok && in[0].DType == compute.Float32 {
				for i, v := range in[0].data.([]float32) {
					if math.Abs(element(r, i)) > math.Abs(float64(v)) && math.Abs(float64(v)) < 65504 {
						r[i]--
					}
				}
			}
		}},
		{"words moved as floats", catalogue.Copy, func(s program.Step, in []operand, result any) {
			if r, ok := result.([]uint32); ok {
				for i, v := range r {
					if f := math.Float32frombits(v); f != 0 && math.Abs(float64(f)) < smallestNormal {
						r[i] = 0
					}
				}
			}
		}},
		{"NaN for NaN's neighbour", catalogue.Add, func(s program.Step, in []operand, result any) {
			r := result.([]float32)
			for i := len(r) - 1; i > 0; i-- {
				if r[i-1] != r[i-1] {
					r[i] = nan
				}
			}
		}},
	} {
		dev := &referenceDevice{mutate: c.bend}
		require.NotEmpty(t, firstFailure(func(t require.TestingT) { dev.device().entry(t, c.entry, 1) }), c.name)
	}
}

// A grid cut off at 65,535 workgroups is noticed, in one element of twenty million.
func TestLimitsAreNoticed(t *testing.T) {
	if testing.Short() {
		t.Skip("large cases run without -short")
	}
	dev := &referenceDevice{mutate: func(s program.Step, in []operand, result any) {
		if r := result.([]float32); len(r) > 65535*256 {
			r[65535*256] = 0
		} else if len(r) == 1 {
			for _, v := range in[0].data.([]float32)[65535*256:] {
				r[0] -= v
			}
		}
	}}
	for _, e := range []*program.Entry{catalogue.Exp, catalogue.Sum} {
		got := firstFailure(func(t require.TestingT) { dev.device().large(t, e) })
		require.Contains(t, got, e.Name)
		require.Contains(t, got, "elements wrong")
	}
}

// Programs notice a device that gets a step wrong only when it is not the first.
func TestProgramsNoticeWrongSteps(t *testing.T) {
	dev := &referenceDevice{mutate: func(s program.Step, in []operand, result any) {
		if r, ok := result.([]float32); ok && s.Out[0] > 12 && len(r) > 0 {
			r[len(r)-1] += 0.5
		}
	}}
	noticed := 0
	for _, p := range programs {
		if firstFailure(func(t require.TestingT) { dev.device().program(t, p) }) != "" {
			noticed++
		}
	}
	require.GreaterOrEqual(t, noticed, 3)
}

// Devices may flush subnormals and must do nothing else to small numbers.
func TestAccepts(t *testing.T) {
	inf := math.Inf(1)
	check := func(e *program.Entry, x float32, got float64, want bool) {
		t.Helper()
		o := vector(x)
		require.Equal(t, want, expect(e, attrs(e, nil)[0], []operand{o}, []program.Type{o.Type})[0].accepts(0, got), "%s(%v) = %v", e.Name, x, got)
	}
	check(catalogue.Neg, 1e-40, float64(-float32(1e-40)), true)
	check(catalogue.Neg, 1e-40, 0, true)
	check(catalogue.Neg, 1e-37, 0, false)
	check(catalogue.Recip, 1e-40, inf, true)
	check(catalogue.Recip, 0, inf, true)
	check(catalogue.Recip, 0, -inf, false)
	check(catalogue.Sign, 1e-40, 1, true)
	check(catalogue.Sign, 1e-40, 0, true)
	check(catalogue.Log, 1e-40, -inf, true)
	check(catalogue.Exp, 89, inf, true)
	check(catalogue.Exp, 88, inf, false)
	check(catalogue.Exp, 1, math.NaN(), false)
	check(catalogue.Sqrt, -1, math.NaN(), true)
	check(catalogue.Sqrt, -1, 0, false)
	check(catalogue.Exp, -104, 0, true)
	check(catalogue.Neg, 1, -1, true)
	check(catalogue.Neg, 1, float64(math.Nextafter32(-1, 0)), false)
}

// A result of 16 bits that is rounded to the wrong side is noticed: only where the exact number lies close to the middle between two
// may it be either.
func TestRoundingIsNoticed(t *testing.T) {
	t.Logf("seed %d", Seed())
	r := newSource(Seed(), "rounding", 0)
	for _, d := range []compute.DType{compute.Float16, compute.BFloat16} {
		a := program.Attr{Options: compute.MatMulOptions{Result: d}}
		in := []operand{r.floats(-1, 1, 40, 30), r.floats(-1, 1, 30, 50)}
		out, err := catalogue.MatMul.Check(types(in), a)
		require.NoError(t, err)
		x := expect(catalogue.MatMul, a, in, out)[0]
		large, either := 0, 0
		for i, want := range x.want {
			right := reference.Rounded(want, d)
			require.True(t, x.accepts(i, right))
			if math.Abs(want) < 0.25 { // what adding up may be off by is no small part of a unit of the last place
				continue
			}
			large++
			if x.accepts(i, following(right, d, 1)) || x.accepts(i, following(right, d, -1)) {
				either++
			}
			for _, n := range []int{-2, 2} {
				require.False(t, x.accepts(i, following(right, d, n)), "%v of %v", right, want)
			}
		}
		require.Less(t, either, large/8, "%v", d)
	}
}

// following is the number of a 16-bit type that is n numbers further from zero.
func following(v float64, d compute.DType, n int) float64 {
	if d == compute.BFloat16 {
		return float64((compute.BF16Of(float32(v)) + compute.BF16(n)).Float32())
	}
	return float64((float16.Fromfloat32(float32(v)) + float16.Float16(n)).Float32())
}
