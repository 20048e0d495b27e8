package gemm

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

// fusedRows is how many rows of x the kernels of family fused have room for.
const fusedRows = 8

// fusedForm is what stands around the products.
type fusedForm uint8

const (
	fusedNorm  fusedForm = iota // of a norm of x
	fusedThree                  // of three weights, with biases
	fusedGate                   // silu(x·w0)·(x·w1)
)

// fusedParams are those of the kernels of family fused. Only a norm has Eps and Gamma, only three weights have biases.
type fusedParams struct {
	threadgroup.Work
	M, N0, N1, N2 int       `array:"sizes"` // rows of x, and of each weight
	Biased        int       // 0 or 1
	Eps           []float32 `names:"eps"`
	X             kit.Buffer
	Gamma         []kit.Buffer
	W             []kit.Buffer `of:"numbers"`
	B, Y          []kit.Buffer
}

// params has as many of each as a kernel of that form.
func (f fusedForm) params() (p fusedParams) {
	n := map[fusedForm]int{fusedNorm: 1, fusedThree: 3, fusedGate: 2}[f]
	p.W, p.Y = make([]kit.Buffer, n), make([]kit.Buffer, 1)
	switch f {
	case fusedNorm:
		p.Eps, p.Gamma = make([]float32, 1), make([]kit.Buffer, 1)
	case fusedThree:
		p.B, p.Y = make([]kit.Buffer, n), make([]kit.Buffer, n)
	}
	return p
}

// fusedKernels are those of each entry, by element type of the weights: for one row of x, and for up to fusedRows.
var fusedKernels = map[*program.Entry]struct {
	form           fusedForm
	first, weights int // operands that are weights
	kernel         map[compute.DType][2]*kit.Kernel
}{
	catalogue.RMSNormMatVec: {fusedNorm, 2, 1, fusedKernelsOf("rms_norm_matvec", fusedNorm)},
	catalogue.QKV:           {fusedThree, 1, 3, fusedKernelsOf("qkv", fusedThree)},
	catalogue.GateUpSwiGLU:  {fusedGate, 1, 2, fusedKernelsOf("gate_up_swiglu", fusedGate)},
}

// fusedUnit is how many neighbouring weights a lane reads at once: 16 bytes.
func fusedUnit(d compute.DType) int { return 16 / d.Size() }

func fusedKernelsOf(name string, form fusedForm) map[compute.DType][2]*kit.Kernel {
	of := map[compute.DType][2]*kit.Kernel{}
	for _, d := range []compute.DType{compute.Float32, compute.Float16, compute.BFloat16} {
		var both [2]*kit.Kernel
		for i, room := range []int{1, fusedRows} {
			build := map[compute.DType]func(k *ptx.Kernel, form fusedForm, room int){compute.Float32: buildFused[float32],
				compute.Float16: buildFused[ptx.F16], compute.BFloat16: buildFused[ptx.BF16]}[d]
			both[i] = kit.Register(kit.Kernel{Family: "fused", Name: fmt.Sprintf("%s_%v_%d", name, d, room), Block: [3]int{threadgroup.Threads, 1, 1},
				Doc:    fmt.Sprintf("%s of up to %d rows of x: a thread group has a row of the weights.", name, room),
				Params: form.params(),
				Build:  func(k *ptx.Kernel) { build(k, form, room) }})
		}
		of[d] = both
	}
	return of
}

func buildFused[T scalar.Floating](k *ptx.Kernel, form fusedForm, room int) {
	k.MinBlocks(4 / min(room, 2)) // what ptxas needs to know lest it saves registers and spills
	at := form.params()
	p := kit.NewParams(k, &at)
	t, c := threadgroup.Of(p, &at.Work), scalar.Math{K: k}
	m := p.U32(&at.M)
	var eps scalar.Float
	if form == fusedNorm {
		eps = kit.Read(p, &at.Eps[0])
	}
	pointers := func(fields []kit.Buffer) (to []ptx.Ptr[ptx.Global, float32]) {
		for i := range fields {
			to = append(to, kit.Ptr[float32](p, &fields[i], ptx.Align(16)))
		}
		return to
	}
	x := kit.Ptr[float32](p, &at.X, ptx.Align(16))
	gamma := pointers(at.Gamma)
	var weights []ptx.Ptr[ptx.Global, T]
	for i := range at.W {
		weights = append(weights, kit.Ptr[T](p, &at.W[i], ptx.Align(16)))
	}
	biases, y := pointers(at.B), pointers(at.Y)

	// The row of the weights, and where its products go. With three weights their rows are numbered through.
	row, width, to := t.Row, ptx.Reg[uint32]{}, y[0]
	bias := ptx.F32(0)
	if form == fusedThree {
		n0, n1 := p.U32(&at.N0), p.U32(&at.N0).Add(p.U32(&at.N1))
		second, third := row.Ge(n0), row.Ge(n1)
		choose := func(p []ptx.Ptr[ptx.Global, float32]) ptx.Ptr[ptx.Global, float32] {
			a := ptx.Select(second, ptx.Address(p[1]), ptx.Address(p[0]))
			return ptx.PtrAt[ptx.Global, float32](k, ptx.Select(third, ptx.Address(p[2]), a))
		}
		w := choose([]ptx.Ptr[ptx.Global, float32]{ptx.Cast[float32](weights[0]), ptx.Cast[float32](weights[1]), ptx.Cast[float32](weights[2])})
		weights, to = []ptx.Ptr[ptx.Global, T]{ptx.Cast[T](w)}, choose(y)
		width = ptx.Select(third, p.U32(&at.N2), ptx.Select(second, p.U32(&at.N1), n0))
		row = row.Sub(ptx.Select(third, n1, ptx.Select(second, n0, 0)))
		ok := t.Active.And(p.U32(&at.Biased).Ne(0))
		bias = ptx.LoadIf(ok, choose(biases).At(row), 0)
	}
	if form != fusedThree {
		width = p.U32(&at.N0)
	}
	matrix := make([]ptx.Ptr[ptx.Global, T], len(weights))
	for i, w := range weights {
		matrix[i] = w.At(row.MulWide(t.Cols))
	}
	// Rows of x; where there are fewer than room, the last is repeated.
	var rows []ptx.Ptr[ptx.Global, float32]
	for v := range room {
		i := ptx.U32(v).Min(m.Sub(1))
		rows = append(rows, x.At(i.MulWide(t.Cols)))
	}
	acc := scalar.Zeros(k, len(matrix)*room)
	var squares scalar.Variables[float32]
	if form == fusedNorm {
		squares = scalar.Zeros(k, room)
	}
	unit := scalar.WideElements[T]()
	walk := func(unit int) {
		from, stride := t.Start.Add(t.Lane.Mul(unit)), t.Lanes.Mul(unit)
		rest := t.End.Max(from).Sub(from)
		iterations := rest.Add(stride.Sub(1)).Shr(t.Log().Add(scalar.Log2(unit)))
		place := ptx.VarOf(k, from)
		ptx.For(k, 0, iterations, 1, func(ptx.Reg[uint32]) {
			var w [][]scalar.Float
			at := place.Get().Copy()
			place.Set(at.Add(stride))
			for _, p := range matrix {
				w = append(w, loadMany(k, p.At(at), unit))
			}
			if form == fusedNorm {
				for i, g := range loadMany(k, gamma[0].At(at), unit) {
					w[0][i] = w[0][i].Mul(g)
				}
			}
			for v, p := range rows {
				for i, e := range loadMany(k, p.At(at), unit) {
					for j := range w {
						sum := acc[j*room+v]
						sum.Set(w[j][i].Fma(e, sum.Get()))
					}
					if form == fusedNorm {
						squares[v].Set(e.Fma(e, squares[v].Get()))
					}
				}
			}
		}, ptx.Unroll(max(1, 4/room)))
	}
	k.If(t.Vector(), func() { walk(unit) }, func() { walk(1) })
	all := append(acc.Get(), squares.Get()...)
	all = threadgroup.ReducerOf(t, threadgroup.Sums[float32](len(all))).Reduce(all)
	k.If(t.First(), func() {
		var each scalar.Float
		if form == fusedNorm {
			each = c.Inverse(ptx.Convert[float32](t.Cols))
		}
		for v := range room {
			r := all[v]
			switch form {
			case fusedNorm:
				r = r.Mul(all[room+v].Fma(each, eps).Rsqrt())
			case fusedThree:
				r = r.Add(bias)
			case fusedGate:
				r = c.Silu(r).Mul(all[room+v])
			}
			at := to.At(ptx.U32(v).MadWide(width, ptx.Convert[uint64](row)))
			if v == 0 { // there is a row
				at.Store(r)
				continue
			}
			ptx.StoreIf(ptx.U32(v).Lt(m), at, r)
		}
	})
}

// loadMany reads that many neighbours, 16 bytes at once where there are several.
func loadMany[T scalar.Floating](k *ptx.Kernel, p ptx.Ptr[ptx.Global, T], n int) (v []scalar.Float) {
	if n == 1 {
		return []scalar.Float{scalar.ToFloat32(k, p.Load(ptx.ReadOnly))}
	}
	for i := 0; i < n; i += scalar.WideElements[T]() {
		v = append(v, scalar.LoadWide(k, p.At(i))...)
	}
	return v
}
