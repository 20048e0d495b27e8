package ptxkernels

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/norm"
	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/flow"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/quant"
)

// longLengths are those that the loops of every kernel are tested beyond.
var longLengths = []int{1<<16 - 1, 1_000_000}

// shortLoops are kernels whose loops are not as long as data, with the reason.
var shortLoops = []struct {
	reason string
	names  []string
}{
	{"sums of a few thousand products: longer ones go to other kernels", []string{"matmul_small"}},
	{"the parts into which a depth was cut", []string{"matmul_sum"}},
	{"at most 128 parts of keys", []string{"attention_decode_combine"}},
	{"a page of 4,096 bytes", []string{"lz4_compress", "lz4_decompress"}},
	{"what aligns a row to 16 bytes", []string{"kv_append_packed"}},
}

var blockFormats = []compute.BlockFormat{compute.Q4_0, compute.Q4_1, compute.Q5_0, compute.Q5_1, compute.Q8_0, compute.Q2_K, compute.Q3_K,
	compute.Q4_K, compute.Q5_K, compute.Q6_K}

// longCases are calls of an entry whose kernels go over more than n elements in one loop, and little else: for kernels of 128 and 256
// columns, and weights in blocks along rows, there are sparse calls, for which no case has to hold n times so many elements.
func longCases(e *program.Entry, n int) (cases []conformance.Case) {
	n = (n/256 + 1) * 256
	a := program.Attr{Options: e.Options}
	for _, s := range e.Scalars {
		a.Scalars = append(a.Scalars, s.Test[0])
	}
	add := func(c func(*program.Entry, program.Attr, ...program.Type) conformance.Case, a program.Attr, in ...program.Type) {
		if _, err := e.Check(in, a); err == nil {
			cases = append(cases, c(e, a, in...))
		}
	}
	halves := []compute.DType{compute.Float32, compute.Float16, compute.BFloat16}
	switch {
	case e.Class.Elementwise():
		odd := (n/3 + 1) | 1
		for _, s := range [][2][]int{{{n}, {n}}, {{2, n / 2}, {n / 2}}, {{3, odd}, {odd}}} {
			in := slices.Repeat([]program.Type{program.F32(s[0]...)}, len(e.Inputs))
			if len(in) > 1 {
				in[1] = program.F32(s[1]...)
			}
			add(conformance.NewCase, a, in...)
		}
	case e == catalogue.BiasActivation:
		for _, n := range []int{n, n + 1} {
			add(conformance.NewCase, a, program.F32(2, n), program.F32(n))
		}
	case e == catalogue.Cast:
		types := append(slices.Clone(halves), compute.Uint8)
		for _, from := range types {
			for _, to := range types {
				add(conformance.NewCase, program.Attr{Options: compute.CastOptions{To: to}}, program.Type{DType: from, Shape: []int{n + 1}})
			}
		}
	case e == catalogue.SwiGLUBackward:
		add(conformance.NewCase, a, slices.Repeat([]program.Type{program.F32(n + 1)}, 3)...)
	case norm.Kernels[e].Kernel != nil:
		in := []program.Type{program.F32(2, n)}
		for range e.Inputs[1:] {
			in = append(in, program.F32(n))
		}
		add(conformance.NewCase, a, in...)
	case e.Class == program.Reduce:
		a.Options = compute.LastAxis
		add(conformance.NewCase, a, slices.Repeat([]program.Type{program.F32(2, n)}, len(e.Inputs))...)
	case e == catalogue.MatMul:
		for _, p := range []compute.Precision{compute.FullPrecision, compute.TF32, compute.FP32Tensor} {
			for _, d := range halves {
				for _, m := range []int{1, 2, 4, 8, 16} {
					for _, o := range []compute.MatMulOptions{{}, {TransA: true}, {TransB: true}, {TransA: true, TransB: true}} {
						if o.Precision = p; p != compute.FullPrecision && (d != compute.Float32 || m < 16) {
							continue
						}
						x, y := []int{m, n}, []int{n, 16}
						if o.TransA {
							slices.Reverse(x)
						}
						if o.TransB {
							slices.Reverse(y)
						}
						add(conformance.NewIntegerCase, program.Attr{Options: o}, program.Type{DType: d, Shape: x}, program.Type{DType: d, Shape: y})
					}
				}
			}
		}
	case e == catalogue.RMSNormMatVec, e == catalogue.QKV, e == catalogue.GateUpSwiGLU:
		for _, d := range halves {
			for _, m := range []int{1, 3} {
				x, w := program.F32(m, n), program.Type{DType: d, Shape: []int{2, n}}
				switch e {
				case catalogue.RMSNormMatVec:
					add(conformance.NewCase, a, x, program.F32(n), w)
				case catalogue.GateUpSwiGLU:
					add(conformance.NewCase, a, x, w, w)
				case catalogue.QKV:
					add(conformance.NewCase, a, x, w, w, w)
				}
			}
		}
	case e == catalogue.QuantMatMulRowMajor:
		for _, f := range blockFormats {
			for _, q8 := range []bool{false, true} {
				for _, m := range []int{1, 3, 8, 9} {
					cases = append(cases, conformance.NewQuantCase(e, compute.QuantOptions{Format: f, Q8: q8}, m, n, 2))
				}
			}
		}
	case e == catalogue.Conv2D:
		for _, out := range []int{1, 5} {
			add(conformance.NewIntegerCase, program.Attr{Options: compute.Conv2DOptions{}}, program.F32(1, n/2+1, 1, 3), program.F32(out, n/2+1, 1, 2))
		}
	case e == catalogue.Attention:
		for _, d := range halves {
			for _, queries := range []int{1, 3, 5} {
				for _, q := range []compute.DType{compute.Float32, d} {
					kv := program.Type{DType: d, Shape: []int{1, n + 1, 1, 8}}
					add(conformance.NewCase, program.Attr{Options: compute.AttentionOptions{}}, program.Type{DType: q, Shape: []int{1, queries, 1, 8}}, kv, kv)
				}
			}
		}
		for _, queries := range []int{1, 3, 5} {
			cases = append(cases, conformance.NewPackedAttentionCase(queries, n+1))
		}
	case e == catalogue.AttentionBackward:
		o := compute.AttentionOptions{}
		cases = append(cases, conformance.NewAttentionBackwardCase(o, 1, n+1, 2), conformance.NewAttentionBackwardCase(o, n+1, 1, 2))
	}
	return cases
}

// ownCases are entries of which longCases has all that conformance has, of smaller size.
var ownCases = []*program.Entry{catalogue.MatMul, catalogue.MatVec, catalogue.VecMat, catalogue.RMSNormMatVec, catalogue.QKV, catalogue.GateUpSwiGLU,
	catalogue.QuantMatMulRowMajor, catalogue.QuantMatMulColMajor, catalogue.Attention, catalogue.AttentionLSE, catalogue.AttentionBackward}

// depth is how many elements the loops of a call's kernels go over, those of products those of a sum.
func depth(c conformance.Case) int {
	in := func(i, axis int) int { return c.In[i].Shape[axis] }
	switch e := c.Entry; {
	case e == catalogue.MatMul, e == catalogue.MatVec, e == catalogue.VecMat:
		p, err := catalogue.ProductOf(e, c.In, c.Attr)
		if err != nil {
			return 0
		}
		return p.K
	case e == catalogue.Conv1D, e == catalogue.Conv2D:
		return program.Len(c.In[1].Shape[1:])
	case e == catalogue.MaxPool2D, e == catalogue.AvgPool2D:
		o := c.Attr.Options.(compute.PoolOptions)
		return o.Size[0] * o.Size[1]
	case strings.HasPrefix(e.Name, "quant_"), e == catalogue.RMSNormMatVec, e == catalogue.QKV, e == catalogue.GateUpSwiGLU:
		return in(0, len(c.In[0].Shape)-1)
	}
	out, err := c.Entry.Check(c.In, c.Attr)
	if err != nil {
		return 0
	}
	if c.Entry.Class.Elementwise() {
		return out[0].Len()
	}
	most := 0
	for _, t := range append(slices.Clone(c.In), out...) {
		for _, n := range t.Shape {
			most = max(most, n)
		}
	}
	return most
}

// longTrials has for each kernel and each of longLengths the trial whose loops are longer than that at the least cost: in one block
// where that can be.
var longTrials = sync.OnceValues(func() (trials map[*kit.Kernel][]*trial, err error) {
	trials = map[*kit.Kernel][]*trial{}
	for _, e := range lowered() {
		var cases []conformance.Case
		if !slices.Contains(ownCases, e) {
			cases = conformance.LongCases(e)
		}
		for _, n := range longLengths {
			cases = append(cases, longCases(e, n)...)
		}
		for _, c := range cases {
			d := depth(c)
			if d <= longLengths[0] {
				continue
			}
			err = cmp.Or(err, eachLowering(c, func(t trial, l kit.Lowering) {
				for _, a := range l.Actions {
					if a.Launch == nil {
						continue
					}
					k, g := a.Launch.Kernel, a.Launch.Grid
					t := t
					t.blocks = int(g[0]) * int(g[1]) * int(g[2])
					t.cost += t.blocks * threads(k)
					best := trials[k]
					if best == nil {
						best = make([]*trial, len(longLengths))
						trials[k] = best
					}
					for i, n := range longLengths {
						if d > n && (best[i] == nil || cmp.Or(cmp.Compare(t.blocks, best[i].blocks), cmp.Compare(t.cost, best[i].cost)) < 0) {
							best[i] = &t
						}
					}
				}
			}))
		}
	}
	return trials, err
})

// TestLongLoops executes kernels with loops on data of which one dimension is beyond what fits into 16 bits, and beyond a million. Every
// kernel that has loops has such calls, or a reason in shortLoops. It runs one in longOf of them, others by each seed, but large
// tiles; make proofs runs all.
func TestLongLoops(t *testing.T) {
	const longOf = 63
	trials, err := longTrials()
	require.NoError(t, err)
	short, number := map[string]bool{}, 0
	for _, s := range shortLoops {
		require.NotEmpty(t, s.reason)
		for _, name := range s.names {
			require.NotNil(t, kit.KernelNamed(name), "%s is no kernel", name)
			short[name] = true
		}
	}
	for _, f := range kit.Families() {
		m, err := f.Module()
		require.NoError(t, err)
		for _, k := range f.Kernels {
			i := slices.IndexFunc(m.Funcs, func(fn *ir.Func) bool { return fn.Name == k.Name })
			g := flow.New(m.Funcs[i])
			if loops := len(g.Loops)+len(g.Irreducible) > 0; !loops || short[k.Name] {
				assert.False(t, !loops && short[k.Name], "%s has no loops", k.Name)
				continue
			}
			for i, n := range longLengths {
				var run func(t *testing.T) error
				if list := trials[k]; list != nil && list[i] != nil {
					run = func(*testing.T) error {
						r := newTrialRig(kerneltest.Fast())
						list[i].setUp(r)
						return list[i].Run(r)
					}
				} else if slices.Contains(wideHeads, k.Name) {
					run = func(t *testing.T) error { return sparseAttention(t, k, n) }
				} else if strings.HasPrefix(k.Name, "quant_columns_") {
					run = func(t *testing.T) error { return sparseColumns(t, k, n) }
				} else {
					t.Errorf("no call of %s has loops over more than %d elements: see longCases", k.Name, n)
					continue
				}
				// A million products for each element of a tile take the software GPU a minute.
				dear := n > 1<<16 && (strings.Contains(k.Name, "mma_") || strings.Contains(k.Name, "gemm_"))
				if number++; everything || !dear && (number+int(conformance.Seed()))%longOf == 0 {
					t.Run(fmt.Sprint(k.Name, "/", n), func(t *testing.T) { require.NoError(t, run(t)) })
				}
			}
		}
	}
}

// wideHeads are kernels of heads with more than 64 elements, for which [sparseAttention] makes calls: a million such keys would take gigabytes beside
// their copies and the reference.
var wideHeads = []string{"attention_128", "attention_256", "attention_mma_f16_128", "attention_mma_f16_256", "attention_mma_bf16_128",
	"attention_mma_bf16_256", "attention_wgmma_f16_128", "attention_wgmma_bf16_128", "attention_dq_128", "attention_dq_256", "attention_dk_dv_128", "attention_dk_dv_256"}

// sparseAttention executes a kernel of wideHeads on more than n keys, or queries for gradients of keys. All rows are zeros but for four, whose results
// have a closed form, and operands of these rows are one in memory.
func sparseAttention(t *testing.T, k *kit.Kernel, n int) error {
	length := n/64*64 + 65
	d := 72
	if strings.HasSuffix(k.Name, "_256") {
		d = 136
	}
	kind, tolerance := compute.Float32, 1e-4
	if strings.Contains(k.Name, "f16") {
		kind, tolerance = compute.Float16, 0.02
		if strings.Contains(k.Name, "bf16") {
			kind = compute.BFloat16
		}
	}
	gradient, ofKeys := strings.Contains(k.Name, "_d"), strings.Contains(k.Name, "_dk_")
	rows := [4]int{5, length / 3, min(1<<16, length-2), length - 1}
	long := make([]float32, length*d) // the sparse rows
	queries, keys := 1, length
	if ofKeys {
		queries, keys = length, 2
	}
	few := make([]float32, 2*d) // the other rows, two at most
	lse := make([]float32, queries)
	var y, dy, want []float32
	e := math.Exp
	if !ofKeys {
		// Row i has a 4 in column i and a score of s[i]; the others have none.
		s, sum := [4]float64{12, 13, 13.5, 14}, float64(length-4)
		for i, r := range rows {
			long[r*d+i] = 4
			few[i] = float32(s[i] / 4)
			sum += e(s[i])
		}
		y, dy, want = make([]float32, d), make([]float32, d), make([]float32, d)
		copy(dy, []float32{1, -1, 2, 0.5})
		delta := 0.0
		for i := range s {
			y[i] = float32(4 * e(s[i]) / sum)
			delta += float64(dy[i] * y[i])
		}
		lse[0] = float32(math.Log(sum))
		copy(want, y)
		for i := range s {
			if gradient {
				want[i] = float32(4 * e(s[i]) / sum * (4*float64(dy[i]) - delta))
			}
		}
		few = few[:d]
	} else {
		// Row i has a 2 in column i, so that δ is 4; keys are values, the second is zeros.
		want = make([]float32, 4*d) // dk, then dv
		for q := range lse {
			lse[q] = float32(math.Ln2)
		}
		for i, r := range rows {
			long[r*d+i] = 2
			few[i] = float32(i+1) / 4
			p := [2]float64{e(2*float64(few[i])) / (e(2*float64(few[i])) + 1), 1 / (e(2*float64(few[i])) + 1)}
			lse[r] = float32(math.Log(e(2*float64(few[i])) + 1))
			for j, v := range []float64{float64(few[i]), 0} {
				want[j*d+i] = float32(2 * p[j] * (2*v - 4))
				want[2*d+j*d+i] = float32(2 * p[j])
			}
		}
		y, dy = long, long
	}

	entry := catalogue.Attention
	q, kv := program.Type{DType: kind, Shape: []int{1, queries, 1, d}}, program.Type{DType: kind, Shape: []int{1, keys, 1, d}}
	in := []program.Type{q, kv, kv}
	if gradient {
		entry = catalogue.AttentionBackward
		in = append(in, q, program.F32(1, 1, queries), q)
	}
	launches := func(a kit.Action) bool { return a.Launch != nil && a.Launch.Kernel == k }
	code, err := loweringWith(launches, conformance.NewCase(entry, program.Attr{Options: compute.AttentionOptions{Scale: 1}}, in...))
	if err != nil {
		return err
	}
	r := newTrialRig(kerneltest.Fast())
	place := func(bytes []byte) uint64 {
		at, err := r.GPU.Alloc(len(bytes))
		require.NoError(t, err)
		require.NoError(t, r.GPU.Write(at, bytes))
		return at
	}
	of := func(x []float32) []byte { return program.Bytes(as(kind, x)) }
	longAt, fewAt, lseAt := place(of(long)), place(of(few)), place(program.Bytes(lse))
	operands := []uint64{fewAt, longAt, longAt, 0, lseAt, 0}
	if ofKeys {
		operands = []uint64{longAt, fewAt, fewAt, longAt, lseAt, longAt}
	} else {
		operands[3], operands[5] = place(of(y)), place(of(dy))
	}
	result := make([]byte, len(of(want)))
	out := place(result)
	var scratch []uint64
	for _, n := range code.Scratch {
		scratch = append(scratch, place(make([]byte, n)))
	}
	for _, a := range code.Actions {
		if !launches(a) && (a.Launch == nil || a.Launch.Kernel.Name != "attention_stats") {
			continue // the other gradients are of as many elements as the operands
		}
		if err := r.Act(a, func(b kit.Buffer) uint64 {
			switch b.Role {
			case lowering.Operand:
				return operands[b.Index] + uint64(b.Offset)
			case lowering.Result:
				if b.Index == 2 { // dv
					return out + uint64(len(result)/2+b.Offset)
				}
				return out + uint64(b.Offset)
			}
			return scratch[b.Index] + uint64(b.Offset)
		}); err != nil {
			return err
		}
	}
	if err := r.GPU.Read(result, out); err != nil {
		return err
	}
	for i, got := range decoded(kind, result) {
		if math.Abs(float64(got-want[i])) > tolerance*(math.Abs(float64(want[i]))+1e-2) {
			return fmt.Errorf("%d rows of %d: element %d is %v, must be %v", length, d, i, got, want[i])
		}
	}
	return nil
}

// loweringWith returns a lowering of a call that has such an action.
func loweringWith(has func(kit.Action) bool, c conformance.Case) (code *kit.Lowering, err error) {
	err = eachLowering(c, func(_ trial, l kit.Lowering) {
		if code == nil && slices.ContainsFunc(l.Actions, has) {
			code = &l
		}
	})
	if err == nil && code == nil {
		err = fmt.Errorf("no way to lower %s %v launches the kernel", c.Entry.Name, c.In)
	}
	return code, err
}

// sparseColumns executes a kernel of quant_columns on weights of more than n rows, all of them zeros but for four.
func sparseColumns(t *testing.T, k *kit.Kernel, n int) error {
	length := n/64*64 + 65
	name, vectors := strings.TrimPrefix(k.Name, "quant_columns_"), 1
	if strings.HasSuffix(name, "_8") {
		vectors = 3
	}
	var format compute.BlockFormat
	for _, f := range blockFormats {
		if strings.EqualFold(fmt.Sprint(f), name[:len(name)-2]) {
			format = f
		}
	}
	kind, rng := quant.Type(format), ptxtest.Random(t)
	columns := kind.BlockLen()
	values := make([]float32, 4*columns)
	for i := range values {
		values[i] = 2*rng.Float32() - 1
	}
	m, err := quant.QuantizeMatrix(kind, 4, columns, values, quant.Options{})
	if err != nil {
		return err
	}
	packed, err := quant.Pack(m)
	if err != nil {
		return err
	}
	if err := m.Dequantize(values); err != nil {
		return err
	}
	words := len(packed.Words) / 4 // of a row
	long, x := make([]uint32, length*words), make([]float32, vectors*length)
	for i := range x {
		x[i] = 2*rng.Float32() - 1
	}
	want := make([]float64, vectors*columns)
	for i, r := range []int{5, length / 3, min(1<<16, length-2), length - 1} {
		copy(long[r*words:], packed.Words[i*words:][:words])
		for v := range vectors {
			for c := range columns {
				want[v*columns+c] += float64(x[v*length+r]) * float64(values[i*columns+c])
			}
		}
	}
	in := []program.Type{program.F32(vectors, length), {DType: compute.Uint32, Shape: []int{length, words}}}
	code, err := loweringWith(func(a kit.Action) bool { return a.Launch != nil && a.Launch.Kernel == k },
		conformance.NewCase(catalogue.QuantMatMulColMajor, program.Attr{Options: compute.QuantOptions{Format: format}}, in...))
	if err != nil {
		return err
	}
	r := newTrialRig(kerneltest.Fast())
	got := decoded(compute.Float32, r.Perform(t, *code, 4*len(want), program.Bytes(x), program.Bytes(long)))
	for i, w := range want {
		if math.Abs(float64(got[i])-w) > 1e-4 {
			return fmt.Errorf("%d rows: element %d is %v, must be %v", length, i, got[i], w)
		}
	}
	return nil
}

// as is numbers as elements of a type.
func as(d compute.DType, x []float32) any {
	switch d {
	case compute.Float16:
		y := make([]compute.F16, len(x))
		for i, v := range x {
			y[i] = compute.F16(float16.Fromfloat32(v).Bits())
		}
		return y
	case compute.BFloat16:
		y := make([]compute.BF16, len(x))
		for i, v := range x {
			y[i] = compute.BF16Of(v)
		}
		return y
	}
	return x
}

// decoded is elements of a type as numbers.
func decoded(d compute.DType, x []byte) (y []float32) {
	for ; len(x) > 0; x = x[d.Size():] {
		switch d {
		case compute.Float16:
			y = append(y, float16.Frombits(binary.LittleEndian.Uint16(x)).Float32())
		case compute.BFloat16:
			y = append(y, math.Float32frombits(uint32(binary.LittleEndian.Uint16(x))<<16))
		default:
			y = append(y, math.Float32frombits(binary.LittleEndian.Uint32(x)))
		}
	}
	return y
}
