package reference

import (
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func attentionTable() table {
	return table{
		catalogue.Attention: {values: one(func(in []Array, a program.Attr, out program.Type) []float64 {
			in = unpackedCaches(in, len(in[0].Shape))
			return attended(out, in[2], func(f func(r queryRow)) { eachQuery(in, a, f) })
		}),
			magnitudes: one(func(in []Array, a program.Attr, out program.Type) []float64 {
				in = unpackedCaches(in, len(in[0].Shape))
				return attendedMagnitude(out, in[2], func(f func(r queryRow)) { eachQuery(in, a, f) })
			})},
		catalogue.AttentionLSE: {values: func(in []Array, a program.Attr, out []program.Type) [][]float64 {
			lse := make([]float64, out[1].Len())
			y := attended(out[0], in[2], func(f func(r queryRow)) {
				eachQuery(in, a, func(r queryRow) {
					lse[r.row] = r.lse
					f(r)
				})
			})
			return [][]float64{y, lse}
		},
			magnitudes: func(in []Array, a program.Attr, out []program.Type) [][]float64 {
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
			}},
	}
}

// queryRow is a query of one head, and what it sees.
type queryRow struct {
	catalogue.AttentionDims
	q, row int       // where the query begins, and its number in [batch, heads, n]
	keys   []int     // where the keys that it sees begin
	s      []float64 // their scores, bent
	slope  []float64 // by which bending has multiplied a change of the score
	size   []float64 // what rounding errors of scores grow with: Σ|q·k|·scale; of infinite products, the score under the cap or 0
	p      []float64 // their weights: exp(s − lse)
	lse    float64   // log Σ exp(s); −Inf if there are none
}

// eachQuery calls f for every query of every head.
func eachQuery(in []Array, a program.Attr, f func(r queryRow)) {
	d, _ := catalogue.AttentionShape(in[0].Shape, in[1].Shape, in[2].Shape, a.Options.(compute.AttentionOptions)) // checked
	for b := range d.Batch {
		length := d.NK
		if len(in) > 3 {
			length = int(in[3].Data[b])
		}
		used, first := d.InUse(length)
		eachOf(d, b, used, in[0], in[1], func(head, t int) (int, bool) {
			return ((b*d.NK+(first+t)%d.NK)*d.KVHeads + head) * d.D, true
		}, f)
	}
}

// eachOf calls f for every query of sequence b, given how many of its keys are in use: at says where key t of a head lies, if
// there is such a key.
func eachOf(d catalogue.AttentionDims, b, used int, q, k Array, at func(head, t int) (int, bool), f func(r queryRow)) {
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
func attended(out program.Type, v Array, each func(f func(r queryRow))) []float64 {
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
func attendedMagnitude(out program.Type, v Array, each func(f func(r queryRow))) []float64 {
	m := make([]float64, out.Len())
	var unit, subnormal float64 // what rounding a weight is off by, relatively and at least
	switch out.DType {
	case compute.Float16:
		unit, subnormal = 2*0x1p-11/catalogue.Attention.Tol.Mag, 2*0x1p-25/catalogue.Attention.Tol.Mag
	case compute.BFloat16:
		unit = 2 * 0x1p-8 / catalogue.Attention.Tol.Mag
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
