package exec

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// number is an operand of one element that the walk depends on.
func (c *call) number(i int, def float64) (float64, error) {
	v := c.arg(i)
	if v == nil {
		return def, nil
	}
	t, err := c.constant(v)
	if err != nil {
		return 0, err
	}
	if t.Len() != 1 {
		return 0, fmt.Errorf("operand %d has shape %v, one number is needed: %w", i, t.Shape, compute.ErrShape)
	}
	return t.Floats()[0], nil
}

// source makes the random numbers of a node: by its seed, else others each time.
func (c *call) source() func() *rand.Rand {
	if !c.has("seed") {
		return func() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }
	}
	seed := uint64(math.Float32bits(c.float("seed", 0))) | uint64(c.int("seed", 0))
	return func() *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
}

// dropout is the identity but in training, where it hides elements at random.
func dropout(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	training := false
	ratio := float64(c.float("ratio", 0.5))
	if c.Version >= 12 {
		var err error
		if ratio, err = c.number(1, 0.5); err != nil {
			return nil, err
		}
		t, err := c.number(2, 0)
		if err != nil {
			return nil, err
		}
		training = t != 0
	}
	kind := host.Bool
	if c.Version < 10 {
		kind = x.kind
	}
	if !training || ratio == 0 {
		all, err := c.filled(host.Dims(x.shape).Ints(), host.FromFloats(kind, []float64{1}))
		if err != nil {
			return nil, err
		}
		return []*Value{x, all[0]}, nil
	}
	source := c.source()
	mask, err := c.onHost(c.Node.String(), 1, false, func([]*host.Tensor) ([]*host.Tensor, error) {
		r, m := source(), make([]float64, host.Len(x.shape))
		for i := range m {
			if r.Float64() >= ratio {
				m[i] = 1
			}
		}
		return []*host.Tensor{host.FromFloats(host.Bool, m, x.shape...)}, nil
	})
	if err != nil {
		return nil, err
	}
	d, err := c.devAll(x, mask[0])
	if err != nil {
		return nil, err
	}
	b := c.rec()
	return []*Value{c.device(x.kind, b.Select(d[1], b.Scale(d[0], float32(1/(1-ratio))), b.Scalar(0))), mask[0]}, nil
}

// random are the operators that make numbers of a distribution.
func random(c *call) ([]*Value, error) {
	kind, shape := host.Float, toInts(c.ints("shape"))
	if c.Op == "RandomNormalLike" || c.Op == "RandomUniformLike" || c.Op == "Bernoulli" || c.Op == "Multinomial" {
		if err := c.need(1); err != nil {
			return nil, err
		}
		kind, shape = c.in[0].kind, c.in[0].shape
	}
	if c.Op == "Multinomial" {
		kind = host.Int32
	}
	if c.has("dtype") {
		kind = host.Kind(c.int("dtype", 0))
	}
	if !kind.Known() || kind == host.String {
		return nil, fmt.Errorf("random numbers of type %v: %w", kind, compute.ErrUnsupported)
	}
	if err := host.CheckShape(shape); err != nil {
		return nil, err
	}
	source := c.source()
	mean, deviation := float64(c.float("mean", 0)), float64(c.float("scale", 1))
	low, high := float64(c.float("low", 0)), float64(c.float("high", 1))
	var in []*Value
	if c.Op == "Bernoulli" || c.Op == "Multinomial" {
		in = c.in[:1]
	}
	samples := int(c.int("sample_size", 1))
	if c.Op == "Multinomial" && (len(shape) != 2 || samples < 1 || samples > host.Most || shape[1] == 0) {
		return nil, fmt.Errorf("%d samples of %v: %w", samples, c.in[0], compute.ErrShape)
	}
	return c.onHost(c.Node.String(), 1, false, func(in []*host.Tensor) ([]*host.Tensor, error) {
		r := source()
		if c.Op == "Multinomial" {
			p, out := in[0].Floats(), make([]int64, shape[0]*samples)
			for i := range out {
				row := p[i/samples*shape[1]:][:shape[1]]
				sum := 0.0
				for _, l := range row {
					sum += math.Exp(l)
				}
				at := r.Float64() * sum
				for k, l := range row {
					out[i] = int64(k)
					if at -= math.Exp(l); at < 0 {
						break
					}
				}
			}
			return []*host.Tensor{host.FromInts(kind, out, shape[0], samples)}, nil
		}
		x := make([]float64, host.Len(shape))
		var p []float64
		if len(in) > 0 {
			p = in[0].Floats()
		}
		for i := range x {
			switch {
			case p != nil:
				if r.Float64() < p[i] {
					x[i] = 1
				}
			case c.Op == "RandomNormal" || c.Op == "RandomNormalLike":
				x[i] = mean + deviation*r.NormFloat64()
			default:
				x[i] = low + (high-low)*r.Float64()
			}
		}
		return []*host.Tensor{host.FromFloats(kind, x, shape...)}, nil
	}, in...)
}
