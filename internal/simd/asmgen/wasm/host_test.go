package wasm

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/wavelane/wavelane/internal/testseed"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
	"github.com/wavelane/wavelane/internal/simd/asmgen/kernels"
)

// random returns the random numbers of a test.
func random(t *testing.T) *rand.Rand { return testseed.Rand(t) }

const (
	pageSize = 65536
	boxAt    = 64
	poison   = 0xffbadbad // a NaN
)

// machine runs a module on the host.
type machine struct {
	t   *testing.T
	mem api.Memory
	run api.Function
}

// newMachine makes an instance of the module with a memory of some pages.
func newMachine(t *testing.T, code []byte, pages byte) *machine {
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	t.Cleanup(func() { require.NoError(t, r.Close(ctx)) })
	// (module (memory (export "mem") pages) (global (export "box") i32 (i32.const boxAt)))
	env := []byte("\x00asm\x01\x00\x00\x00" + "\x05\x03\x01\x00" + string(pages) + "\x06\x07\x01\x7f\x00\x41" +
		string([]byte{boxAt | 0x80, 0}) + "\x0b" + "\x07\x0d\x02\x03mem\x02\x00\x03box\x03\x00")
	_, err := r.InstantiateWithConfig(ctx, env, wazero.NewModuleConfig().WithName("go"))
	require.NoError(t, err)
	m, err := r.InstantiateWithConfig(ctx, code, wazero.NewModuleConfig().WithName("kernels"))
	require.NoError(t, err)
	return &machine{t, r.Module("go").Memory(), m.ExportedFunction("run")}
}

func (m *machine) put(at int, v uint32) { require.True(m.t, m.mem.WriteUint32Le(uint32(at), v)) }
func (m *machine) word(at int) uint32 {
	v, ok := m.mem.ReadUint32Le(uint32(at))
	require.True(m.t, ok)
	return v
}
func (m *machine) float(at int) float32 { return math.Float32frombits(m.word(at)) }
func (m *machine) slice(at, n int) []byte {
	b, ok := m.mem.Read(uint32(at), uint32(n))
	require.True(m.t, ok)
	return b
}

func (m *machine) write(at int, x []float32) {
	for i, v := range x {
		m.put(at+4*i, math.Float32bits(v))
	}
}

func (m *machine) read(at, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = m.float(at + 4*i)
	}
	return x
}

// fill poisons the whole memory.
func (m *machine) fill() {
	b := m.slice(0, int(m.mem.Size()))
	for i := 0; i < len(b); i += 4 {
		binary.LittleEndian.PutUint32(b[i:], poison)
	}
}

// call runs an operation on operands at addresses, and returns the number of elements done.
func (m *machine) call(op, n int, pointers []int, params []float32, words ...int) int {
	m.put(boxAt+boxOp, uint32(op))
	m.put(boxAt+boxN, uint32(n))
	for i, p := range pointers {
		m.put(boxAt+boxPointers+8*i, uint32(p))
	}
	for i, p := range params {
		m.put(boxAt+boxParams+4*i, math.Float32bits(p))
	}
	for i, w := range words {
		m.put(boxAt+boxWords+4*i, uint32(w))
	}
	done, err := m.run.Call(context.Background())
	require.NoError(m.t, err)
	return int(done[0])
}

// same says that numbers are the same, whatever the bits of NaN.
func same(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) || (a != a && b != b) }

func requireSame(t *testing.T, want, got []float32, msg string, args ...any) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		if !same(want[i], got[i]) {
			require.Failf(t, "differs", "element %d: want %v (%#x), got %v (%#x); "+msg, append([]any{i, want[i],
				math.Float32bits(want[i]), got[i], math.Float32bits(got[i])}, args...)...)
		}
	}
}

// openZeros says that a kernel takes minima or maxima, of which it is open which of two zeros they are.
func openZeros(b *ir.Body) bool {
	return slices.ContainsFunc(b.Nodes, func(n *ir.Node) bool {
		return n.Op == ir.OpMin || n.Op == ir.OpMax || n.Op == ir.OpMinNaN || n.Op == ir.OpMaxNaN
	})
}

func unsignedZeros(x []float32) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = v + 0
	}
	return y
}

// outcome is what a kernel does by its definition.
type outcome struct {
	done  int
	store []float32
	lanes [][]float32 // by accumulator, all copies
}

// interpret runs a kernel by ir.Body.Eval, on as many lanes as the translation has.
func interpret(k *ir.Kernel, in [][]float32, params []float32) outcome {
	body, unroll, n := k.Build(features), max(k.Unroll, 1), len(in[0])
	o := outcome{store: make([]float32, n)}
	for _, a := range body.Accumulators {
		l := make([]float32, unroll*lanes)
		for i := range l {
			l[i] = math.Float32frombits(a.Init)
		}
		o.lanes = append(o.lanes, l)
	}
	for o.done < n {
		step := unroll * lanes
		if n-o.done < step {
			step = min(lanes, n-o.done)
		}
		results := make([]ir.Lane, step)
		for j := range results {
			var x, acc []float32
			for _, v := range in {
				x = append(x, v[o.done+j])
			}
			for _, l := range o.lanes {
				acc = append(acc, l[j])
			}
			if results[j] = body.Eval(x, params, acc); results[j].Guard {
				return o
			}
		}
		for j, r := range results {
			o.store[o.done+j] = r.Store
			for i, l := range o.lanes {
				l[j] = r.Acc[i]
			}
		}
		o.done += step
	}
	return o
}

// merge adds up the lanes of an accumulator in the order of the translation.
func merge(m ir.Merge, l []float32) float32 {
	f := map[ir.Merge]func(a, b float32) float32{
		ir.MergeAdd: func(a, b float32) float32 { return a + b },
		ir.MergeMax: func(a, b float32) float32 { return max(a, b) },
		ir.MergeMin: func(a, b float32) float32 { return min(a, b) },
	}[m]
	sum := append([]float32(nil), l[len(l)-lanes:]...)
	for c := len(l)/lanes - 2; c >= 0; c-- {
		for j := range sum {
			sum[j] = f(l[c*lanes+j], sum[j])
		}
	}
	return f(f(sum[0], sum[1]), f(sum[2], sum[3]))
}

// element returns a number for a test: mostly ordinary, sometimes special.
func element(r *rand.Rand) float32 {
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, 1.5, 2.5, -0.5, math.MaxFloat32, -math.MaxFloat32,
		math.SmallestNonzeroFloat32, 1e-39, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 88, -104}
	switch r.IntN(8) {
	case 0:
		return special[r.IntN(len(special))]
	case 1:
		return math.Float32frombits(r.Uint32())
	}
	return float32(r.NormFloat64() * 8)
}

// check runs a kernel with its operands at the end of the memory, where a read or write past the end of an operand traps, in
// order of their addresses; the last one alternates.
func check(t *testing.T, m *machine, r *rand.Rand, op int, k *ir.Kernel, n int) {
	body := k.Build(features)
	in := make([][]float32, len(k.Inputs))
	for i := range in {
		in[i] = make([]float32, n)
		for j := range in[i] {
			in[i][j] = element(r)
			if body.Guard != nil && r.IntN(max(n, 1)) != 0 {
				in[i][j] = float32(r.NormFloat64()) // so that the guard rarely holds
			}
		}
	}
	params := make([]float32, len(k.Params))
	for i := range params {
		params[i] = float32(r.NormFloat64())
	}
	want := interpret(k, in, params)

	compare := func(want, got []float32, msg string, args ...any) {
		t.Helper()
		if openZeros(body) {
			want, got = unsignedZeros(want), unsignedZeros(got)
		}
		requireSame(t, want, got, msg, args...)
	}
	unmerged := len(body.Accumulators) > 0 && body.Accumulators[0].Merge == ir.MergeNone
	var sizes []int // of the operands in bytes
	if body.Store != nil {
		sizes = append(sizes, 4*n)
	}
	for range in {
		sizes = append(sizes, 4*n)
	}
	for last := range max(len(sizes), 1) {
		m.fill()
		pointers := make([]int, len(sizes))
		at := int(m.mem.Size())
		for i := range sizes {
			which := (last + len(sizes) - i) % len(sizes)
			at -= sizes[which]
			pointers[which] = at
			at -= 4 * r.IntN(3)
		}
		inputs := pointers[len(pointers)-len(in):]
		for i := range in {
			m.write(inputs[i], in[i])
		}
		before := append([]byte(nil), m.slice(0, int(m.mem.Size()))...)
		done := m.call(op, n, pointers, params)
		require.Equal(t, want.done, done, "%s of %d", k.Name, n)
		if unmerged {
			for i, l := range want.lanes {
				compare(l, m.read(boxAt+boxLanes+4*ir.Lanes*i, len(l)), "%s of %d, lanes %d", k.Name, n, i)
			}
		} else {
			for i, l := range want.lanes {
				got := m.float(boxAt + boxResults + 4*i)
				compare([]float32{merge(body.Accumulators[i].Merge, l)}, []float32{got}, "%s of %d, result %d", k.Name, n, i)
			}
		}
		if body.Store != nil {
			y := pointers[len(pointers)-len(in)-1]
			compare(want.store[:done], m.read(y, done), "%s of %d, last operand %d", k.Name, n, last)
			copy(before[y:y+4*done], m.slice(y, 4*done))
		}
		const box = boxAt + boxSize
		require.Equal(t, before[box:], m.slice(box, len(before)-box), "%s of %d writes elsewhere", k.Name, n)
	}
}

// lengths covers what a loop can meet: no element, tails of all lengths after any number of steps.
func lengths() (l []int) {
	for n := range 70 {
		l = append(l, n)
	}
	return append(l, 127, 128, 129, 257, 1000)
}

// kernels of this test have every operation between them, and every kind of loop.
func testKernels() []*ir.Kernel {
	one := []string{"a"}
	two := []string{"a", "b"}
	type F = ir.F
	store := func(name string, inputs []string, unroll int, f func(b *ir.Builder, x, y F) F) *ir.Kernel {
		return &ir.Kernel{Name: name, Inputs: inputs, Unroll: unroll, Params: []string{"p"}, Body: func(b *ir.Builder) {
			x, y := b.Input(0), b.Param(0)
			if len(inputs) > 1 {
				y = b.Input(1)
			}
			b.Store(f(b, x, y))
		}}
	}
	l := []*ir.Kernel{
		store("Add", two, 4, func(b *ir.Builder, x, y F) F { return b.Add(x, y) }),
		store("Sub", two, 2, func(b *ir.Builder, x, y F) F { return b.Sub(x, y) }),
		store("Mul", one, 1, func(b *ir.Builder, x, y F) F { return b.Mul(x, y) }),
		store("Div", two, 0, func(b *ir.Builder, x, y F) F { return b.Div(x, y) }),
		store("Sqrt", one, 4, func(b *ir.Builder, x, y F) F { return b.Sqrt(x) }),
		store("MulAdd", two, 2, func(b *ir.Builder, x, y F) F { return b.NegMulAdd(x, y, b.MulAdd(x, y, b.Const(0.25))) }),
		store("Min", two, 4, func(b *ir.Builder, x, y F) F { return b.Min(x, y) }),
		store("Max", two, 4, func(b *ir.Builder, x, y F) F { return b.Max(x, y) }),
		store("MinNaN", two, 4, func(b *ir.Builder, x, y F) F { return b.MinNaN(x, y) }),
		store("MaxNaN", two, 4, func(b *ir.Builder, x, y F) F { return b.MaxNaN(x, y) }),
		store("Clip", two, 4, func(b *ir.Builder, x, y F) F {
			return b.MinNaN(b.MaxNaN(x, b.Const(-1.5)), b.MaxNaN(b.Const(-1), b.MinNaN(b.Const(2), y)))
		}),
		store("Floor", one, 2, func(b *ir.Builder, x, y F) F { return b.Floor(x) }),
		store("Ceil", one, 2, func(b *ir.Builder, x, y F) F { return b.Ceil(x) }),
		store("Trunc", one, 2, func(b *ir.Builder, x, y F) F { return b.Trunc(x) }),
		store("Nearest", one, 2, func(b *ir.Builder, x, y F) F { return b.Nearest(x) }),
		store("Abs", one, 2, func(b *ir.Builder, x, y F) F { return b.Abs(b.Neg(x)) }),
		store("CopySign", two, 2, func(b *ir.Builder, x, y F) F { return b.CopySign(x, y) }),
		store("Compare", two, 2, func(b *ir.Builder, x, y F) F {
			r := b.Select(b.LT(x, y), b.Const(1), b.Const(0))
			r = b.Add(r, b.Select(b.LE(x, y), b.Const(2), b.Const(0)))
			r = b.Add(r, b.Select(b.EQ(x, y), b.Const(4), b.Const(0)))
			r = b.Add(r, b.Select(b.NE(x, y), b.Const(8), b.Const(0)))
			r = b.Add(r, b.Select(b.And(b.LT(x, y), b.Not(b.IsNaN(x))), b.Const(16), b.Const(0)))
			return b.Add(r, b.Select(b.Or(b.LT(x, y), b.IsNaN(x)), b.Const(32), b.Const(0)))
		}),
		store("Integers", two, 2, func(b *ir.Builder, x, y F) F {
			i, j := b.Bits(x), b.Bits(y)
			i, j = b.AddI(b.Shl(i, 3), b.ShrL(j, 9)), b.SubI(b.ShrA(i, 5), b.AndI(i, j))
			i = b.SelectI(b.GTI(i, j), b.OrI(i, j), b.XorI(i, b.ConstInt(0x12345)))
			i = b.SelectI(b.EQI(b.AndI(i, b.ConstInt(3)), b.ConstInt(1)), b.AndNotI(i, j), i)
			return b.FromInt(i)
		}),
		store("Round", two, 2, func(b *ir.Builder, x, y F) F {
			// Beyond ±2³¹ and for NaN conversions are open.
			x = b.Select(b.LT(b.Abs(x), b.Const(1<<30)), x, b.Const(0.5))
			return b.Sub(b.FromInt(b.ToInt(x)), b.FromInt(b.TruncToInt(x)))
		}),
		{Name: "Nothing", Inputs: two, Body: func(b *ir.Builder) {}},
		{Name: "Find", Inputs: one, Params: []string{"v"}, Unroll: 4, Body: func(b *ir.Builder) {
			b.Guard(b.LT(b.Const(12), b.Input(0)))
		}},
		{Name: "GuardedStore", Inputs: two, Params: []string{"v"}, Unroll: 2, Body: func(b *ir.Builder) {
			x := b.Mul(b.Input(0), b.Param(0))
			b.Guard(b.IsNaN(x))
			b.Store(x)
			b.Accumulate(0, ir.MergeAdd, func(acc F) F { return b.Add(acc, x) })
		}},
		{Name: "Lanes", Inputs: one, Unroll: 4, Body: func(b *ir.Builder) { // compensated sum: accumulators that use each other
			x := b.Sub(b.Input(0), b.Acc(1))
			s := b.Add(b.Acc(0), x)
			b.Accumulate(0, ir.MergeNone, func(acc F) F { return s })
			b.Accumulate(0, ir.MergeNone, func(acc F) F { return b.Sub(b.Sub(s, b.Acc(0)), x) })
		}},
	}
	for _, unroll := range []int{1, 2, 4} {
		l = append(l, &ir.Kernel{Name: "Fold" + strconv.Itoa(unroll), Inputs: two, Unroll: unroll, Body: func(b *ir.Builder) {
			b.Accumulate(0, ir.MergeAdd, func(acc F) F { return b.MulAdd(b.Input(0), b.Input(1), acc) })
			b.Accumulate(math.Inf(-1), ir.MergeMax, func(acc F) F { return b.MaxNaN(acc, b.Input(0)) })
			b.Accumulate(math.Inf(1), ir.MergeMin, func(acc F) F { return b.MinNaN(acc, b.Input(0)) })
		}})
	}
	return l
}

func TestOperations(t *testing.T) { testOn(t, testKernels()) }
func TestKernels(t *testing.T)    { testOn(t, kernels.All) }

// testOn compares translations of kernels with their definitions.
func testOn(t *testing.T, list []*ir.Kernel) {
	code, _, err := build(list)
	require.NoError(t, err)
	m := newMachine(t, code, 1)
	for op, k := range list {
		t.Run(k.Name, func(t *testing.T) {
			r := random(t)
			for _, n := range lengths() {
				check(t, m, r, op, k, n)
			}
		})
	}
}
