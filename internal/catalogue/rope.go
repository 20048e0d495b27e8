package catalogue

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// RopeDims are the sizes of a rotary embedding with all defaults filled in: Tokens × Heads heads of D elements, of which the
// first Dims are rotated in pairs. Token t has position t modulo Positions.
type RopeDims struct {
	Tokens, Positions int
	Heads, D, Dims    int
	Base, Scale       float64
}

// RopeShape derives the sizes of a rotary embedding.
func RopeShape(x, positions []int, o compute.RopeOptions) (RopeDims, error) {
	var r RopeDims
	rank := len(x)
	if rank < 3 {
		return r, fmt.Errorf("x needs [… n heads d]: %w", compute.ErrShape)
	}
	lead := x[:rank-2]
	r.Tokens, r.Positions, r.Heads, r.D = program.Len(lead), program.Len(positions), x[rank-2], x[rank-1]
	if !program.EqualShape(positions, lead) && !program.EqualShape(positions, lead[len(lead)-1:]) {
		return r, fmt.Errorf("positions must have shape %v or %v: %w", lead[len(lead)-1:], lead, compute.ErrShape)
	}
	if r.Dims = o.Dims; o.Dims == 0 {
		r.Dims = r.D
	}
	if r.Dims < 0 || r.Dims > r.D || r.Dims%2 != 0 || r.Dims > maxRopeDims {
		return r, fmt.Errorf("%d elements of heads of %d cannot be rotated in pairs: must be even and at most %d: %w", r.Dims, r.D,
			maxRopeDims, compute.ErrArgument)
	}
	r.Base, r.Scale = float64(o.Base), float64(o.Scale)
	if o.Base == 0 {
		r.Base = 10000
	}
	if o.Scale == 0 {
		r.Scale = 1
	}
	if !(r.Base >= 1 && r.Base <= math.MaxFloat32) {
		return r, fmt.Errorf("base %v must be at least 1 and finite: %w", o.Base, compute.ErrArgument)
	}
	if !(r.Scale > 0 && r.Scale <= maxRopeScale) {
		return r, fmt.Errorf("scale %v must be above 0, at most %d: %w", o.Scale, maxRopeScale, compute.ErrArgument)
	}
	return r, nil
}

const (
	maxRopeDims  = 2 << RopeBits // kernels make the frequency of pair i from its bits
	maxRopeScale = 256
	// RopeBits is how many bits the number of a pair has at most.
	RopeBits = 11
)

// Pair returns the indices in a head of the two elements of pair i.
func (r RopeDims) Pair(i int, neox bool) (a, b int) {
	if neox {
		return i, i + r.Dims/2
	}
	return 2 * i, 2*i + 1
}

// Frequency returns radians per position of pair i, before its factor.
func (r RopeDims) Frequency(i int) float64 {
	return r.Scale * math.Pow(r.Base, -2*float64(i)/float64(r.Dims))
}

// Steps returns Base^(−2·2ʲ/Dims): the frequency of pair i is Scale times the product of those of its bits j.
func (r RopeDims) Steps() (s [RopeBits]float64) {
	for j := range s {
		s[j] = math.Pow(r.Base, -2*float64(int(1)<<j)/float64(max(r.Dims, 1)))
	}
	return s
}

const ropeSpecial = "positions are Int32 [n] or […, n]. factors are [Dims/2] and divide the " +
	"frequencies one by one (Llama 3, YaRN). Elements from Dims on are copied. Positions may be negative. A factor " +
	"of 0 or NaN gives NaN in its pairs. The result may be written over the first operand."

// Rotary position embedding (Su et al., "RoFormer", 2021) and its gradient, which rotates the other way.
var (
	Rope = rope("rope", "Rope", "x […, n, heads, d] with pair i of each head rotated by positions·Scale·Base^(−2i/Dims)/factors", "x")

	RopeBackward = rope("rope_backward", "RopeBackward",
		"the gradient of rope for x: dy […, n, heads, d] with its pairs rotated back", "dy")
)

func rope(name, method, doc, x string) *program.Entry {
	return &program.Entry{Name: name, Method: method, Class: program.Layer, Doc: doc, Special: ropeSpecial,
		Inputs:  []program.Input{{Name: x}, {Name: "positions", Types: []compute.DType{compute.Int32}}, {Name: "factors", Optional: true}},
		Options: compute.RopeOptions{}, Tol: program.Tolerance{Mag: 1e-6},
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			r, err := RopeShape(in[0].Shape, in[1].Shape, a.Options.(compute.RopeOptions))
			if err == nil && len(in) == 3 && !program.EqualShape(in[2].Shape, []int{r.Dims / 2}) {
				err = fmt.Errorf("factors must have shape [%d]: %w", r.Dims/2, compute.ErrShape)
			}
			return in[0], err
		}}
}
