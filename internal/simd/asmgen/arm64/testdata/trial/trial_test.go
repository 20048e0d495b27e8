package trial

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"unsafe"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

// lengths are all short ones and some longer ones.
func lengths(r *rand.Rand) []int {
	var ns []int
	for n := range 36 {
		ns = append(ns, n)
	}
	for range 6 {
		ns = append(ns, 36+r.IntN(100))
	}
	ns = append(ns, 256+r.IntN(300))
	return ns
}

// fenced is memory of a slice between pages that cannot be touched.
type fenced struct{ page []byte }

func newFenced(t *testing.T) fenced {
	size := os.Getpagesize()
	b, err := syscall.Mmap(-1, 0, 3*size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err == nil {
		err = syscall.Mprotect(b[:size], syscall.PROT_NONE)
	}
	if err == nil {
		err = syscall.Mprotect(b[2*size:], syscall.PROT_NONE)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fenced{b[size : 2*size]}
}

// floats is a slice at the memory's end or at its beginning.
func (f fenced) floats(n int, atEnd bool) []float32 {
	all := unsafe.Slice((*float32)(unsafe.Pointer(&f.page[0])), len(f.page)/4)
	if atEnd {
		return all[len(all)-n:]
	}
	return all[:n]
}

var specials = []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 8388607.5, 1e9, -3e9, 1e-40, -1e-45,
	math.MaxFloat32, -math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 0x1p-126}

func number(r *rand.Rand) float32 {
	switch r.IntN(4) {
	case 0:
		return specials[r.IntN(len(specials))]
	case 1:
		return math.Float32frombits(r.Uint32())
	}
	return float32(r.NormFloat64() * 10)
}

func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

func TestKernels(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("TRIAL_SEED"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 2))
	have := os.Getenv("TRIAL_FEATURES") != "none"
	features := ir.Features{FMA: have, Round: have}
	for _, k := range Kernels(seed) {
		f, ok := functions[k.Name]
		if !ok {
			t.Fatal(k.Name, "has no function")
		}
		tr := &trial{r: r, k: k, body: k.Build(features), f: reflect.ValueOf(f)}
		tr.zeros = leavesZerosOpen(tr.body)
		for range 5 {
			tr.memory = append(tr.memory, newFenced(t))
		}
	sweep:
		for _, n := range lengths(r) {
			for _, alias := range []int{-1, r.IntN(5)} {
				if err := tr.run(n, r.IntN(2) == 0, alias); err != nil {
					t.Errorf("%s, %d elements, alias %d: %v", k.Name, n, alias, err)
					break sweep
				}
			}
		}
	}
}

type trial struct {
	r      *rand.Rand
	k      *ir.Kernel
	body   *ir.Body
	f      reflect.Value
	memory []fenced
	zeros  bool // the body leaves open which of two zeros is the larger one
}

func leavesZerosOpen(b *ir.Body) bool {
	return slices.ContainsFunc(b.Nodes, func(n *ir.Node) bool {
		return slices.Contains([]ir.Op{ir.OpMin, ir.OpMax, ir.OpMinNaN, ir.OpMaxNaN}, n.Op)
	})
}

// run calls the kernel. Alias is by how many elements y begins before input 0; negative: it is elsewhere.
func (tr *trial) run(n int, atEnd bool, alias int) error {
	k, body := tr.k, tr.body
	const poison = 12345.678
	var in, before [][]float32
	for i := range k.Inputs {
		x := tr.memory[i].floats(n, atEnd)
		if i == 0 && alias > 0 {
			x = tr.memory[i].floats(n+alias, atEnd)[alias:]
		}
		for j := range x {
			x[j] = number(tr.r)
		}
		in = append(in, x)
		before = append(before, append([]float32(nil), x...))
	}
	y := tr.memory[4].floats(n, atEnd)
	if alias >= 0 {
		y = tr.memory[0].floats(n+alias, atEnd)[:n]
	}
	if alias != 0 {
		for j := range min(n, max(alias, n*(1-min(alias+1, 1)))) {
			y[j] = poison
		}
	}
	yBefore := append([]float32(nil), y...)
	var params []float32
	for range k.Params {
		params = append(params, number(tr.r))
	}

	// The call.
	var args []reflect.Value
	pointer := func(s []float32) { args = append(args, reflect.ValueOf(unsafe.SliceData(s))) }
	var lanes reflect.Value
	if tr.body.Accumulators != nil && body.Accumulators[0].Merge == ir.MergeNone {
		lanes = reflect.New(tr.f.Type().In(0).Elem())
		args = append(args, lanes)
	}
	if body.Store != nil {
		pointer(y)
	}
	for _, x := range in {
		pointer(x)
	}
	args = append(args, reflect.ValueOf(n))
	for _, p := range params {
		v := reflect.ValueOf(p)
		if tr.f.Type().In(len(args)).Kind() == reflect.Uint64 {
			v = reflect.ValueOf(uint64(math.Float32bits(p)))
		}
		args = append(args, v)
	}
	results := tr.f.Call(args)

	// What should have come.
	var want []ir.Lane
	guard := n
	var acc []float32
	accs := [][]float32{}
	for j := range n {
		var e []float32
		for i := range in {
			e = append(e, before[i][j])
		}
		l := body.Eval(e, params, acc)
		if l.Guard && guard == n {
			guard = j
		}
		acc = l.Acc
		accs = append(accs, acc)
		want = append(want, l)
	}
	done := n
	if body.Guard != nil {
		done = int(results[0].Int())
		results = results[1:]
		if done > guard || guard-done >= ir.Lanes || guard == n && done != n || done < 0 {
			return fmt.Errorf("done is %d, the guard holds at %d", done, guard)
		}
	}
	if body.Store != nil {
		for j, v := range y {
			w := yBefore[j]
			if j < done {
				w = want[j].Store
			}
			if !same(v, w) && !(tr.zeros && v == 0 && w == 0) {
				var e []float32
				for i := range in {
					e = append(e, before[i][j])
				}
				return fmt.Errorf("y[%d] is %v (%#x), not %v (%#x); inputs %v, params %v",
					j, v, math.Float32bits(v), w, math.Float32bits(w), e, params)
			}
		}
	}
	for i, a := range body.Accumulators {
		w := math.Float32frombits(a.Init)
		if done > 0 {
			w = accs[done-1][i]
		}
		var v float32
		if lanes.IsValid() {
			for j := range ir.Lanes {
				v += float32(lanes.Elem().Index(i*ir.Lanes + j).Float())
			}
		} else {
			v = float32(results[i].Float())
		}
		if !same(v, w) {
			return fmt.Errorf("accumulator %d is %v, not %v", i, v, w)
		}
	}
	return nil
}
