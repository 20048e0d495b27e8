package llm

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/decoder"
)

// Sampling says how tokens are chosen. The zero value takes the most likely one.
type Sampling struct {
	// Temperature divides logits before a token is drawn: below 1 likely tokens become likelier. 0 takes the most likely token.
	Temperature float64
	// TopK, if not 0, draws from that many of the most likely tokens.
	TopK int
	// TopP, if not 0, draws from the most likely tokens that together have at least this probability: above 0, up to 1.
	TopP float64
	// MinP, if not 0, draws from tokens with at least this share of the probability of the most likely one: from 0 to 1.
	MinP float64
	// RepetitionPenalty, if not 0, divides positive logits of tokens that were there, and multiplies negative ones: 1 changes nothing.
	RepetitionPenalty float64
	// FrequencyPenalty is subtracted from a token's logit for each time that it was there, PresencePenalty once.
	FrequencyPenalty, PresencePenalty float64
	// PenaltyWindow is how many of the last tokens of prompt and answer the penalties look at; 0 is 64.
	PenaltyWindow int
	// Seed of the draws.
	Seed uint64
}

const (
	defaultPenaltyWindow = 64
	mostOnDevice         = 1024 // most likely tokens that a device finds
)

func (s *Sampling) check() error {
	finite := func(name string, x, least, most float64) error {
		if !(x >= least && x <= most) {
			return fmt.Errorf("llm: %s %v, must be from %v to %v: %w", name, x, least, most, compute.ErrArgument)
		}
		return nil
	}
	for _, err := range []error{finite("temperature", s.Temperature, 0, math.MaxFloat64), finite("top-p", s.TopP, 0, 1), finite("min-p", s.MinP, 0, 1),
		finite("repetition penalty", s.RepetitionPenalty, 0, math.MaxFloat32), finite("frequency penalty", s.FrequencyPenalty, -math.MaxFloat32, math.MaxFloat32),
		finite("presence penalty", s.PresencePenalty, -math.MaxFloat32, math.MaxFloat32)} {
		if err != nil {
			return err
		}
	}
	if s.TopK < 0 || s.PenaltyWindow < 0 {
		return fmt.Errorf("llm: top-k %d, penalty window %d: %w", s.TopK, s.PenaltyWindow, compute.ErrArgument)
	}
	return nil
}

func (s *Sampling) penalises() bool {
	return s.RepetitionPenalty != 0 && s.RepetitionPenalty != 1 || s.FrequencyPenalty != 0 || s.PresencePenalty != 0
}

// output is what the device has to deliver: as few logits as possible.
func (s *Sampling) output(probabilities bool) decoder.Output {
	switch {
	case probabilities || s.penalises():
		return decoder.Output{}
	case s.Temperature == 0:
		return decoder.Output{TopK: 1}
	case s.TopK == 0 || s.TopK > mostOnDevice:
		return decoder.Output{}
	}
	k := 32 // few different numbers, as each is a plan
	for k < s.TopK {
		k *= 2
	}
	return decoder.Output{TopK: k}
}

// Candidate is a token that could be next.
type Candidate struct {
	ID      int32
	LogProb float64 // natural logarithm of the probability that the model gives it, before sampling changes it
}

// sampler chooses the tokens of one text.
type sampler struct {
	Sampling
	random *rand.Rand
	allows func(token int32) bool // nil allows all

	all     []candidate
	weights []weighted // of the latest distribution
	taken   []float64  // by token, zeros between calls
}

type candidate struct {
	id    int32
	logit float64
}

// Streams of random numbers of one seed.
const (
	choiceStream = iota
	draftStream
)

func newSampler(s Sampling, stream uint64) *sampler {
	if s.PenaltyWindow == 0 {
		s.PenaltyWindow = defaultPenaltyWindow
	}
	return &sampler{Sampling: s, random: rand.New(rand.NewPCG(s.Seed, stream))}
}

// pick chooses a token after those so far. Errors are those of distribution.
func (s *sampler) pick(n *decoder.Next, tokens []int32) (int32, error) {
	p, err := s.distribution(n, tokens)
	if err != nil {
		return 0, err
	}
	return s.draw(&p), nil
}

// verify chooses a token as pick does, where one was drawn from another distribution: that one as often as may be, else one from what the
// other distribution has too little of. What it returns is distributed as what pick returns, whatever the other distribution is (Leviathan and
// others, "Fast Inference from Transformers via Speculative Decoding", 2023, appendix A.1).
func (s *sampler) verify(n *decoder.Next, tokens []int32, drawn int32, from *distribution) (int32, error) {
	p, err := s.distribution(n, tokens)
	if err != nil {
		return 0, err
	}
	if s.random.Float64()*from.share(drawn) < p.share(drawn) {
		return drawn, nil
	}
	if s.subtract(&p, from); p.sum == 0 {
		return drawn, nil // the distributions are the same but for rounding
	}
	return s.draw(&p), nil
}

// distribution is what a token is drawn from.
type distribution struct {
	all  []weighted
	sum  float64 // of the weights
	best int32   // what has the largest weight
}

// weighted is a candidate that is drawn in proportion to its weight.
type weighted struct {
	id     int32
	weight float64
}

// share is the probability of a token.
func (d *distribution) share(token int32) float64 {
	for _, c := range d.all {
		if c.id == token {
			return c.weight / d.sum
		}
	}
	return 0
}

// distribution is that of the token after those so far, valid until the next call. Errors wrap [compute.ErrNotFinite] if the model has no largest logit, and
// [compute.ErrUnsupported] if no token is allowed.
func (s *sampler) distribution(n *decoder.Next, tokens []int32) (distribution, error) {
	if n.Logits == nil {
		return certain(n.Indices[0]), nil
	}
	s.all = s.all[:0]
	for i, x := range n.Logits {
		id := int32(i)
		if n.Indices != nil {
			id = n.Indices[i]
		}
		s.all = append(s.all, candidate{id, float64(x)})
	}
	if n.Indices == nil && s.penalises() {
		s.penalise(tokens)
	}
	if s.allows != nil {
		if s.all = slices.DeleteFunc(s.all, func(c candidate) bool { return !s.allows(c.id) }); len(s.all) == 0 {
			return distribution{}, fmt.Errorf("llm: the vocabulary has no token that the JSON schema allows: %w", compute.ErrUnsupported)
		}
	}
	best := s.all[0]
	for _, c := range s.all {
		if c.logit > best.logit || math.IsNaN(best.logit) {
			best = c
		}
	}
	if math.IsNaN(best.logit) || math.IsInf(best.logit, 0) {
		return distribution{}, fmt.Errorf("llm: the largest logit is %v: %w", best.logit, compute.ErrNotFinite)
	}
	if s.Temperature == 0 {
		return certain(best.id), nil
	}
	d := distribution{all: s.weights[:0], best: best.id}
	for _, c := range s.filtered(best.logit) {
		w := math.Exp((c.logit - best.logit) / s.Temperature)
		d.all, d.sum = append(d.all, weighted{c.id, w}), d.sum+w
	}
	s.weights = d.all
	return d, nil
}

// certain is the distribution of one token alone.
func certain(token int32) distribution {
	return distribution{[]weighted{{token, 1}}, 1, token}
}

// penalise changes the logits, which are those of all tokens.
func (s *sampler) penalise(tokens []int32) {
	times := map[int32]float64{}
	for _, t := range tokens[max(0, len(tokens)-s.PenaltyWindow):] {
		times[t]++
	}
	for t, n := range times {
		x := &s.all[t].logit
		if r := s.RepetitionPenalty; r != 0 && *x > 0 {
			*x /= r
		} else if r != 0 {
			*x *= r
		}
		*x -= n*s.FrequencyPenalty + s.PresencePenalty
	}
}

// filtered are the candidates that may be drawn.
func (s *sampler) filtered(best float64) []candidate {
	all := slices.DeleteFunc(s.all, func(c candidate) bool { return math.IsNaN(c.logit) })
	if s.MinP > 0 && s.TopK == 0 && (s.TopP == 0 || s.TopP == 1) {
		return slices.DeleteFunc(all, func(c candidate) bool { return math.Exp(c.logit-best) < s.MinP })
	}
	if s.TopK > 0 || s.TopP > 0 && s.TopP < 1 {
		slices.SortFunc(all, func(a, b candidate) int { return cmp.Or(cmp.Compare(b.logit, a.logit), cmp.Compare(a.id, b.id)) })
	}
	if s.TopK > 0 {
		all = all[:min(len(all), s.TopK)]
	}
	if s.TopP > 0 && s.TopP < 1 {
		sum := 0.0
		for _, c := range all {
			sum += math.Exp(c.logit - best)
		}
		so := 0.0
		for i, c := range all {
			if so += math.Exp(c.logit - best); so >= s.TopP*sum {
				all = all[:i+1]
				break
			}
		}
	}
	if s.MinP > 0 {
		all = slices.DeleteFunc(all, func(c candidate) bool { return math.Exp(c.logit-best) < s.MinP })
	}
	return all
}

func (s *sampler) draw(d *distribution) int32 {
	at := s.random.Float64() * d.sum
	for _, c := range d.all {
		if at -= c.weight; at < 0 {
			return c.id
		}
	}
	return d.best // rounding has left nothing
}

// subtract makes weights of what the probabilities of d exceed those of another distribution by.
func (s *sampler) subtract(d, other *distribution) {
	for _, c := range other.all {
		if missing := int(c.id) + 1 - len(s.taken); missing > 0 {
			s.taken = append(s.taken, make([]float64, missing)...)
		}
		s.taken[c.id] = c.weight / other.sum
	}
	sum, most := 0.0, 0.0
	for i := range d.all {
		c := &d.all[i]
		if c.weight /= d.sum; int(c.id) < len(s.taken) {
			c.weight = max(c.weight-s.taken[c.id], 0)
		}
		if sum += c.weight; c.weight > most {
			most, d.best = c.weight, c.id
		}
	}
	d.sum = sum
	for _, c := range other.all {
		s.taken[c.id] = 0
	}
}

// logProbs are the logarithm of a token's probability, and the most likely tokens.
func logProbs(logits []float32, token int32, top int) (float64, []Candidate) {
	best := math.Inf(-1)
	for _, x := range logits {
		best = max(best, float64(x))
	}
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - best)
	}
	norm := best + math.Log(sum)
	var list []Candidate
	for i, x := range logits {
		c := Candidate{int32(i), float64(x) - norm}
		if len(list) == top && (top == 0 || c.LogProb <= list[top-1].LogProb) {
			continue
		}
		at, _ := slices.BinarySearchFunc(list, c, func(a, b Candidate) int {
			return cmp.Or(cmp.Compare(b.LogProb, a.LogProb), cmp.Compare(a.ID, b.ID))
		})
		list = slices.Insert(list, at, c)[:min(len(list)+1, top)]
	}
	return float64(logits[token]) - norm, list
}
