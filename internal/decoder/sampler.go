package decoder

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/wavelane/wavelane/compute"
)

// Sampler chooses tokens. It belongs to one goroutine.
type Sampler struct {
	temperature float64
	topK        int
	random      *rand.Rand
}

// NewSampler returns one for a temperature by which logits are divided, 0 for always the most likely token, and the number of
// tokens that are chosen from, the most likely ones, 0 for all. Errors wrap [compute.ErrArgument].
func NewSampler(temperature float64, topK int, seed uint64) (*Sampler, error) {
	if !(temperature >= 0 && temperature <= math.MaxFloat64) {
		return nil, fmt.Errorf("decoder: temperature %v, must be 0 or more and finite: %w", temperature, compute.ErrArgument)
	}
	if topK < 0 {
		return nil, fmt.Errorf("decoder: top %d: %w", topK, compute.ErrArgument)
	}
	return &Sampler{temperature, topK, rand.New(rand.NewPCG(seed, 0))}, nil
}

// Output is what the sampler has to be given: the device finds the most likely tokens.
func (s *Sampler) Output() Output {
	if s.temperature == 0 {
		return Output{TopK: 1}
	}
	return Output{TopK: s.topK}
}

// Pick chooses a token.
func (s *Sampler) Pick(n *Next) int32 {
	i := 0
	if len(n.Logits) > 0 {
		i = s.draw(n.Logits)
	}
	if n.Indices != nil {
		return n.Indices[i]
	}
	return int32(i)
}

// draw is an index with a probability that grows with the exponential of its logit.
func (s *Sampler) draw(logits []float32) int {
	largest := math.Inf(-1)
	best := 0
	for i, x := range logits {
		if float64(x) > largest {
			largest, best = float64(x), i
		}
	}
	if s.temperature == 0 {
		return best
	}
	sum := 0.0
	weights := make([]float64, len(logits))
	for i, x := range logits {
		weights[i] = math.Exp((float64(x) - largest) / s.temperature)
		sum += weights[i]
	}
	at := s.random.Float64() * sum
	for i, w := range weights {
		if at -= w; at < 0 {
			return i
		}
	}
	return best // of sums that are no number
}
