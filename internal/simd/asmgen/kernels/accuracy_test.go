package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/wavelane/wavelane/internal/testseed"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

// featureSets are those of the backends, with a backend each.
var featureSets = []struct {
	name string
	ir.Features
}{
	{"neon", ir.Features{FMA: true, Round: true}},
	{"wasm", ir.Features{Round: true}},
	{"sse", ir.Features{}},
}

// function is what a kernel must compute.
type function struct {
	name   string
	ulp    float64 // most error, in ULP unless error measures it
	f      func(x float64) float64
	params []float32
	// rare reports where the guard may hold.
	rare func(x float64) bool
	// points are where the kernel goes from one formula to another; tests look closely around them.
	points []float64
	odd    bool // f(−0) is −0
	error  func(got float32, x, want float64) float64
}

const block = 1024

// seed returns the seed of the run.
func seed(t *testing.T) uint64 { return testseed.Of(t) }

// samples passes blocks of arguments to do, from several goroutines: the special values, the surroundings of points, all
// exponents with random fractions, and denser those about 1; many more of them with WAVELANE_PROOFS=all.
// WAVELANE_EXHAUSTIVE=0-100000000 takes all float32 instead, or those of another range of bits.
func samples(t *testing.T, points []float64, do func(x []float32)) {
	if v := os.Getenv("WAVELANE_EXHAUSTIVE"); v != "" {
		var from, to int
		_, err := fmt.Sscanf(v, "%x-%x", &from, &to)
		require.NoError(t, err)
		parallel((to-from)/block, func(part int, x []float32) {
			for i := range x {
				x[i] = math.Float32frombits(uint32(from + part*block + i))
			}
			do(x)
		})
		return
	}
	points = append(points, 0, 0x1p-149, 0x1p-126, math.MaxFloat32, math.Inf(1), math.NaN(), 1, 2, 0.5)
	for _, p := range points {
		for _, p := range []float64{p, -p} {
			x := make([]float32, block)
			for i := range x {
				x[i] = math.Float32frombits(math.Float32bits(float32(p)) + uint32(i-block/2))
			}
			do(x)
		}
	}
	s, exponents := seed(t), 4 // in a block
	if os.Getenv("WAVELANE_PROOFS") == "all" {
		exponents = 1
	}
	parallel(512*2/exponents, func(part int, x []float32) {
		r := rand.New(rand.NewPCG(s, uint64(part)))
		for i := range x {
			v, e := r.Uint32(), part*exponents+i%exponents
			if e < 512 {
				v = v>>9 | uint32(e)<<23
			} else { // exponents of 2⁻¹⁶ to 2⁸
				v = v&(1<<31|1<<23-1) | (111+r.Uint32N(24))<<23
			}
			x[i] = math.Float32frombits(v)
		}
		do(x)
	})
}

func parallel(parts int, do func(part int, x []float32)) {
	var wg sync.WaitGroup
	const workers = 4
	for w := range workers {
		wg.Go(func() {
			x := make([]float32, block)
			for part := w; part < parts; part += workers {
				do(part, x)
			}
		})
	}
	wg.Wait()
}

// ulps is the distance of got from want in units in the last place of a float32 of want's size.
func ulps(got float32, want float64) float64 {
	g := float64(got)
	switch {
	case math.IsNaN(want) || math.IsNaN(g):
		if math.IsNaN(want) && math.IsNaN(g) {
			return 0
		}
		return math.Inf(1)
	case math.IsInf(g, 0):
		g = math.Copysign(0x1p128, g) // the next after the largest, as rounding sees it
		if math.Abs(want) > 0x1p128 {
			want = math.Copysign(0x1p128, want)
		}
	}
	if math.IsInf(want, 0) {
		return math.Inf(1)
	}
	return math.Abs(g-want) / ulpOf(want)
}

func kernel(t *testing.T, name string) *ir.Kernel {
	for _, k := range All {
		if k.Name == name {
			return k
		}
	}
	require.FailNow(t, "no kernel "+name)
	return nil
}

// worst is the largest error and where it was.
type worst struct {
	sync.Mutex
	ulp       float64
	x         float32
	got       float32
	want      float64
	guardedAt *float32
	sign      *float32
}

func (w *worst) String() string {
	return fmt.Sprintf("%.4g at %g (%#08x): %g for %g", w.ulp, w.x, math.Float32bits(w.x), w.got, w.want)
}

func (fn function) check(t *testing.T) {
	k := kernel(t, fn.name)
	if fn.error == nil {
		require.Contains(t, k.Doc, fmt.Sprintf("Within %g ULP", fn.ulp))
	}
	bodies := make([]*ir.Body, len(featureSets))
	found := make([]worst, len(featureSets))
	for i, s := range featureSets {
		bodies[i] = k.Build(s.Features)
	}
	type state struct {
		p      []*ir.Interpreter
		y      []float32
		stop   []bool
		expect []float64
	}
	pool := sync.Pool{New: func() any {
		s := &state{y: make([]float32, block), stop: make([]bool, block), expect: make([]float64, block)}
		for _, b := range bodies {
			s.p = append(s.p, b.Interpreter(block))
		}
		return s
	}}
	distance := fn.error
	if distance == nil {
		distance = func(got float32, _, want float64) float64 { return ulps(got, want) }
	}
	samples(t, fn.points, func(x []float32) {
		s := pool.Get().(*state)
		defer pool.Put(s)
		for i, v := range x {
			s.expect[i] = fn.f(float64(v))
		}
		for k, p := range s.p {
			p.Map(s.y, s.stop, [][]float32{x}, fn.params)
			w := worst{ulp: -1}
			for i, got := range s.y {
				if s.stop[i] {
					if fn.rare == nil || !fn.rare(float64(x[i])) {
						w.guardedAt = &x[i]
					}
					continue
				}
				u := distance(got, float64(x[i]), s.expect[i])
				if !(u <= w.ulp) {
					w.ulp, w.x, w.got, w.want = u, x[i], got, s.expect[i]
				}
				if fn.odd && math.Signbit(float64(got)) != math.Signbit(float64(x[i])) && x[i] == x[i] {
					w.sign = &x[i]
				}
			}
			f := &found[k]
			f.Lock()
			if !(w.ulp <= f.ulp) {
				f.ulp, f.x, f.got, f.want = w.ulp, w.x, w.got, w.want
			}
			if w.guardedAt != nil {
				v := *w.guardedAt
				f.guardedAt = &v
			}
			if w.sign != nil {
				v := *w.sign
				f.sign = &v
			}
			f.Unlock()
		}
	})
	for i, s := range featureSets {
		t.Logf("%-4s %s, %d operations", s.name, &found[i], operations(bodies[i]))
		if found[i].guardedAt != nil {
			t.Errorf("%s: guarded at %g", s.name, *found[i].guardedAt)
		}
		if found[i].sign != nil {
			t.Errorf("%s: wrong sign at %g", s.name, *found[i].sign)
		}
		if !(found[i].ulp <= fn.ulp) {
			t.Errorf("%s: error of %.4g, stated %.4g", s.name, found[i].ulp, fn.ulp)
		}
	}
}

// operations counts the instructions that a body costs, roughly.
func operations(b *ir.Body) (n int) {
	for _, x := range b.Nodes {
		switch x.Op {
		case ir.OpInput, ir.OpParam, ir.OpConst, ir.OpAcc, ir.OpBits, ir.OpFloat:
		default:
			n++
		}
	}
	return n
}
