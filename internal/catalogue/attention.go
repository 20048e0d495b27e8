package catalogue

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// AttentionDims are the sizes of an attention with all defaults filled in. Queries are [Batch, N, Heads, D], keys and values
// [Batch, NK, KVHeads, D]; query head h reads head h/Group() of keys and values.
type AttentionDims struct {
	Batch, N, NK   int
	Heads, KVHeads int
	D              int
	Causal         bool
	Window         int     // 0 for none
	SoftCap, Scale float32 // SoftCap is 0 for none
}

const (
	maxHeadSize = 256
	maxWindow   = 1 << 30 // so that positions plus or minus it fit 32 bits
)

// AttentionShape derives the sizes of an attention. Operands of three axes are a batch of one.
func AttentionShape(q, k, v []int, o compute.AttentionOptions) (AttentionDims, error) {
	d := AttentionDims{Causal: o.Causal, Window: o.Window, SoftCap: o.SoftCap, Scale: o.Scale}
	if len(q) != len(k) || len(q) != 3 && len(q) != 4 {
		return d, fmt.Errorf("needs q [batch n heads d] with k and v [batch keys heads d], or all without batch: %w", compute.ErrShape)
	}
	if !program.EqualShape(k, v) {
		return d, fmt.Errorf("k and v differ: %w", compute.ErrShape)
	}
	d.Batch = 1
	if len(q) == 4 {
		if d.Batch = q[0]; k[0] != q[0] {
			return d, fmt.Errorf("batches of %d and %d: %w", q[0], k[0], compute.ErrShape)
		}
		q, k = q[1:], k[1:]
	}
	d.N, d.Heads, d.D = q[0], q[1], q[2]
	d.NK, d.KVHeads = k[0], k[1]
	if k[2] != d.D || d.D < 1 || d.D > maxHeadSize {
		return d, fmt.Errorf("heads of %d and %d elements, must be the same from 1 to %d: %w", d.D, k[2], maxHeadSize, compute.ErrShape)
	}
	if d.KVHeads == 0 && d.Heads > 0 || d.KVHeads > 0 && d.Heads%d.KVHeads != 0 {
		return d, fmt.Errorf("%d heads of queries are no multiple of %d heads of keys: %w", d.Heads, d.KVHeads, compute.ErrShape)
	}
	if o.Window < 0 || o.Window > maxWindow {
		return d, fmt.Errorf("window of %d, must be 0 to %d: %w", o.Window, maxWindow, compute.ErrArgument)
	}
	if !(o.SoftCap >= 0 && o.SoftCap <= math.MaxFloat32) || !(o.Scale >= 0 && o.Scale <= math.MaxFloat32) {
		return d, fmt.Errorf("soft cap %v and scale %v must be finite and not negative: %w", o.SoftCap, o.Scale, compute.ErrArgument)
	}
	if o.Scale == 0 {
		d.Scale = float32(1 / math.Sqrt(float64(d.D)))
	}
	return d, nil
}

// Group is the number of query heads that share a head of keys and values.
func (d AttentionDims) Group() int { return max(1, d.Heads) / max(1, d.KVHeads) }

// InUse returns how many keys a length means, and the slot of the oldest of them. They follow each other from there on, round
// the end of a cache whose length exceeds its capacity.
func (d AttentionDims) InUse(length int) (used, first int) {
	if length > d.NK && d.NK > 0 {
		return d.NK, length % d.NK
	}
	return min(max(length, 0), d.NK), 0
}

// Seen returns which keys query i sees, counted from the oldest of those in use: from ≤ key < to.
func (d AttentionDims) Seen(i, used int) (from, to int) {
	p := used - d.N + i
	to = used
	if d.Causal {
		to = min(to, p+1)
	}
	if d.Window > 0 {
		from, to = max(0, p-d.Window+1), min(to, p+d.Window)
	}
	return from, max(from, to)
}

var attentionInputs = []program.Input{{Name: "q", Types: floats}, {Name: "k", Types: floats}, {Name: "v", Types: floats},
	{Name: "lengths", Types: []compute.DType{compute.Int32}, Optional: true}}

const attentionSpecial = "Q is [batch, n, heads, d], k and v are [batch, keys, kvheads, d], or all three without batch; d is at " +
	"most 256, and heads a multiple of kvheads, of which each serves as many neighbouring heads of q (grouped queries). K and " +
	"v have one type; scores and sums are Float32 whatever the types; the result has q's type and shape. Lengths [batch] says how many keys " +
	"are in use, all without it; a length beyond keys means that k and v are rings, in which position p lies at p mod keys and " +
	"the newest have taken the place of the oldest. Keys not in use are not read. Positions count from the oldest key in use; " +
	"see AttentionOptions for which a query sees. A query that sees no key, or only scores of −Inf, gives zeros; NaN or +Inf " +
	"among its scores gives NaN. Values that are NaN or infinite may reach queries that do not see them."

func inferAttention(in []program.Type, a program.Attr) (AttentionDims, error) {
	d, err := AttentionShape(in[0].Shape, in[1].Shape, in[2].Shape, a.Options.(compute.AttentionOptions))
	if err != nil {
		return d, err
	}
	if in[1].DType != in[2].DType {
		return d, fmt.Errorf("k is %v, v is %v, must be one type: %w", in[1].DType, in[2].DType, compute.ErrDType)
	}
	if len(in) > 3 && in[3].DType == compute.Int32 && !program.EqualShape(in[3].Shape, []int{d.Batch}) {
		return d, fmt.Errorf("lengths must have shape [%d]: %w", d.Batch, compute.ErrShape)
	}
	return d, nil
}

var attentionTol = program.Tolerance{Abs: 1e-30, Mag: 3e-6}

// Attention entries.
var Attention = register(&program.Entry{Name: "attention", Method: "Attention", Class: program.Matrix, Dots: attentionFlops(4),
	Doc:     "softmax(scale·q·kᵀ)·v for every head, without the matrix of scores in memory (Dao, \"FlashAttention-2\", 2023)",
	Special: attentionSpecial, Inputs: attentionInputs, Options: compute.AttentionOptions{},
	Tol: attentionTol, Domain: [2]float64{-2, 2},
	Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
		_, err := inferAttention(in, a)
		return in[0], err
	},
	Ref: func(in []program.Array, a program.Attr, out program.Type) []float64 {
		return attended(out, in[2], func(f func(r queryRow)) { eachQuery(in, a, f) })
	},
	Magnitude: func(in []program.Array, a program.Attr, out program.Type) []float64 {
		return attendedMagnitude(out, in[2], func(f func(r queryRow)) { eachQuery(in, a, f) })
	}})

// AttentionLSE is what training keeps of attention.
var AttentionLSE = register(&program.Entry{Name: "attention_lse", Method: "AttentionLSE", Class: program.Layer, Dots: attentionFlops(4),
	Doc: "attention, and with it lse [batch, heads, n], for each query the logarithm of the sum of the exponentials of its scores, " +
		"which the gradients of attention need",
	Special: "Without batch, lse is [heads, n]. It is −Inf where the result is zeros. " + attentionSpecial,
	Inputs:  attentionInputs, Results: []string{"y", "lse"}, Options: compute.AttentionOptions{},
	Tol: attentionTol, Domain: [2]float64{-2, 2},
	InferAll: func(in []program.Type, a program.Attr) ([]program.Type, error) {
		d, err := inferAttention(in, a)
		return []program.Type{in[0], d.lseType(in[0])}, err
	},
	RefAll: func(in []program.Array, a program.Attr, out []program.Type) [][]float64 {
		lse := make([]float64, out[1].Len())
		y := attended(out[0], in[2], func(f func(r queryRow)) {
			eachQuery(in, a, func(r queryRow) {
				lse[r.row] = r.lse
				f(r)
			})
		})
		return [][]float64{y, lse}
	},
	MagnitudeAll: func(in []program.Array, a program.Attr, out []program.Type) [][]float64 {
		lse := make([]float64, out[1].Len())
		y := attendedMagnitude(out[0], in[2], func(f func(r queryRow)) {
			eachQuery(in, a, func(r queryRow) {
				if lse[r.row] = 1 + dot(r.p, r.size); math.Abs(r.lse) <= math.MaxFloat64 {
					lse[r.row] += math.Abs(r.lse)
				}
				f(r)
			})
		})
		return [][]float64{y, lse}
	}})

// lseType is the type of the logarithms of the sums of queries q.
func (d AttentionDims) lseType(q program.Type) program.Type {
	if len(q.Shape) == 3 {
		return program.F32(d.Heads, d.N)
	}
	return program.F32(d.Batch, d.Heads, d.N)
}

// queryRow is a query of one head, and what it sees.
type queryRow struct {
	AttentionDims
	q, row int       // where the query begins, and its number in [batch, heads, n]
	keys   []int     // where the keys that it sees begin
	s      []float64 // their scores, bent
	slope  []float64 // by which bending has multiplied a change of the score
	size   []float64 // what rounding errors of scores grow with: Σ|q·k|·scale; of infinite products, the score under the cap or 0
	p      []float64 // their weights: exp(s − lse)
	lse    float64   // log Σ exp(s); −Inf if there are none
}

// eachQuery calls f for every query of every head.
func eachQuery(in []program.Array, a program.Attr, f func(r queryRow)) {
	d, _ := AttentionShape(in[0].Shape, in[1].Shape, in[2].Shape, a.Options.(compute.AttentionOptions)) // checked
	for b := range d.Batch {
		length := d.NK
		if len(in) > 3 {
			length = int(in[3].Data[b])
		}
		used, first := d.InUse(length)
		d.eachOf(b, used, in[0], in[1], func(head, t int) (int, bool) {
			return ((b*d.NK+(first+t)%d.NK)*d.KVHeads + head) * d.D, true
		}, f)
	}
}

// eachOf calls f for every query of sequence b, of whose keys so many are in use: at says where key t of a head lies, if there is
// such a key.
func (d AttentionDims) eachOf(b, used int, q, k program.Array, at func(head, t int) (int, bool), f func(r queryRow)) {
	for h := range d.Heads {
		for i := range d.N {
			r := queryRow{AttentionDims: d, q: ((b*d.N+i)*d.Heads + h) * d.D, row: (b*d.Heads+h)*d.N + i, lse: math.Inf(-1)}
			from, to := d.Seen(i, used)
			for t := from; t < to; t++ {
				if key, ok := at(h/d.Group(), t); ok {
					r.keys = append(r.keys, key)
				}
			}
			r.weigh(q.Data[r.q:][:d.D], k.Data)
			f(r)
		}
	}
}

// attended is what the rows that each calls its function for see of the values.
func attended(out program.Type, v program.Array, each func(f func(r queryRow))) []float64 {
	y := make([]float64, out.Len())
	each(func(r queryRow) {
		for j, p := range r.p {
			for c := range r.D {
				y[r.q+c] += p * v.Data[r.keys[j]+c]
			}
		}
	})
	return y
}

// attendedMagnitude is the yardstick of attended: the relative error of a weight grows with the score, and with those of the sum
// that it is divided by. Tensor cores take weights, in units of the largest, in the queries' type, and so is their sum off.
func attendedMagnitude(out program.Type, v program.Array, each func(f func(r queryRow))) []float64 {
	m := make([]float64, out.Len())
	var unit, subnormal float64 // what rounding a weight is off by, relatively and at least
	switch out.DType {
	case compute.Float16:
		unit, subnormal = 2*0x1p-11/attentionTol.Mag, 2*0x1p-25/attentionTol.Mag
	case compute.BFloat16:
		unit = 2 * 0x1p-8 / attentionTol.Mag
	}
	each(func(r queryRow) {
		if len(r.p) == 0 {
			return
		}
		mean, least := dot(r.p, r.size), subnormal*slices.Max(r.p)
		for j, p := range r.p {
			for c := range r.D {
				m[r.q+c] += (p*(1+r.size[j]+mean+unit) + least) * math.Abs(v.Data[r.keys[j]+c])
			}
		}
	})
	return m
}

func (r *queryRow) weigh(q, k []float64) {
	n := len(r.keys)
	r.s, r.slope, r.size, r.p = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for j, at := range r.keys {
		for c, x := range k[at:][:r.D] {
			r.s[j] += q[c] * x
			r.size[j] += math.Abs(q[c] * x)
		}
		r.s[j] *= float64(r.Scale)
		r.size[j] *= float64(r.Scale)
		r.slope[j] = 1
		if c := float64(r.SoftCap); c > 0 {
			t := math.Tanh(r.s[j] / c)
			r.s[j], r.slope[j] = c*t, 1-t*t
		}
		if !(r.size[j] <= math.MaxFloat64) {
			r.size[j] = 0
			if s := math.Abs(r.s[j]); s <= math.MaxFloat64 {
				r.size[j] = s
			}
		}
	}
	if n == 0 {
		return
	}
	m := rowMax(r.s)
	if math.IsInf(m, -1) {
		return
	}
	total := 0.0
	for j, s := range r.s {
		r.p[j] = math.Exp(s - m)
		total += r.p[j]
	}
	for j := range r.p {
		r.p[j] /= total
	}
	r.lse = m + math.Log(total)
}
