package catalogue

import (
	"fmt"
	"math"
	"strings"

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

// AttentionShape derives the sizes of an attention. Queries of three axes are a batch of one. Keys and values with an axis less are packed.
func AttentionShape(q, k, v []int, o compute.AttentionOptions) (AttentionDims, error) {
	d := AttentionDims{Causal: o.Causal, Window: o.Window, SoftCap: o.SoftCap, Scale: o.Scale}
	if !program.EqualShape(k, v) {
		return d, fmt.Errorf("k and v differ: %w", compute.ErrShape)
	}
	if len(q) == 3 || len(q) == 4 {
		var err error
		if k, err = unpackedShape(k, len(q), q[len(q)-1]); err != nil {
			return d, err
		}
	}
	if len(q) != len(k) || len(q) != 3 && len(q) != 4 {
		return d, fmt.Errorf("needs q [batch n heads d] with k and v [batch keys heads d], or all without batch: %w", compute.ErrShape)
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

// InUse returns the number of keys in use for a length, and the slot of the oldest. They are contiguous from there on,
// wrapping at the end of a cache whose length exceeds its capacity.
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

// attentionInputs are those with keys and values of some types.
func attentionInputs(kv []compute.DType) []program.Input {
	return []program.Input{{Name: "q", Types: floats}, {Name: "k", Types: kv}, {Name: "v", Types: kv},
		{Name: "lengths", Types: []compute.DType{compute.Int32}, Optional: true}}
}

const attentionSpecial = "The matrix of scores is never in memory. q is [batch, n, heads, d], k and v are " +
	"[batch, keys, kvheads, d]; all three may lack the batch. d is at most 256. heads is a multiple of kvheads: " +
	"each head of keys serves as many neighbouring heads of q (grouped queries). k and v have one element type; " +
	"scores and sums are Float32; the result has q's type and shape. lengths holds for each sequence how many keys " +
	"are in use; without it all are. A length beyond keys means that k and v are rings: position p lies at p mod " +
	"keys, and the newest keys have replaced the oldest. Keys not in use are not read. Positions count from the " +
	"oldest key in use; AttentionOptions says which of them a query sees. A query that sees no key, or only scores " +
	"of −Inf, gives zeros. NaN or +Inf among the scores of a query gives NaN. Values that are NaN or infinite may " +
	"reach queries that do not see them."

func inferAttention(in []program.Type, a program.Attr) (AttentionDims, error) {
	d, err := AttentionShape(in[0].Shape, in[1].Shape, in[2].Shape, a.Options.(compute.AttentionOptions))
	if err != nil {
		return d, err
	}
	if err := checkPacked(in[1], len(in[0].Shape)); err != nil {
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
var Attention = &program.Entry{Name: "attention", Method: "Attention", Class: program.Matrix, Dots: attentionFlops(4),
	Doc:     "softmax(scale·q·kᵀ)·v for every head (Dao, \"FlashAttention-2\", 2023)",
	Special: attentionSpecial + " " + strings.TrimSpace(packedCache), Inputs: attentionInputs(cacheTypes), Options: compute.AttentionOptions{},
	Tol: attentionTol, Domain: [2]float64{-2, 2},
	Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
		_, err := inferAttention(in, a)
		return in[0], err
	}}

// AttentionLSE is what training keeps of attention.
var AttentionLSE = &program.Entry{Name: "attention_lse", Method: "AttentionLSE", Class: program.Layer, Dots: attentionFlops(4),
	Doc: "attention and, for each query, the logarithm of the sum of the exponentials of its scores",
	Special: "lse is [batch, heads, n], or [heads, n] without batch; attention_backward needs it. It " +
		"is −Inf where the result is zeros. " + attentionSpecial,
	Inputs: attentionInputs(floats), Results: []string{"y", "lse"}, Options: compute.AttentionOptions{},
	Tol: attentionTol, Domain: [2]float64{-2, 2},
	InferAll: func(in []program.Type, a program.Attr) ([]program.Type, error) {
		d, err := inferAttention(in, a)
		return []program.Type{in[0], d.lseType(in[0])}, err
	}}

// lseType is the type of the logarithms of the sums of queries q.
func (d AttentionDims) lseType(q program.Type) program.Type {
	if len(q.Shape) == 3 {
		return program.F32(d.Heads, d.N)
	}
	return program.F32(d.Batch, d.Heads, d.N)
}
