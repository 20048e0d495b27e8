package catalogue

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Constants of Philox4x32-10.
const (
	PhiloxRounds  = 10
	PhiloxFactor0 = 0xD2511F53
	PhiloxFactor1 = 0xCD9E8D57
	PhiloxWeyl0   = 0x9E3779B9 // added to the key from round to round: the golden ratio,
	PhiloxWeyl1   = 0xBB67AE85 // and √3 − 1
)

// RandomSeed is the number of words of a seed.
const RandomSeed = 2

// Entries of random numbers. Counters are laid out as cuRAND does: an index of 64 bits, of which the upper half is 0, and a stream.
var (
	RandomUniform = random("random_uniform", "RandomUniform", "random numbers from 0 to below 1, the same on every device", program.Tolerance{},
		"Element i comes from word i mod 4 of Philox4x32-10 (Salmon et al., 2011) at counter (⌊i/4⌋, 0, "+
			"stream, 0), with the seed as key. It is the upper 24 bits of that word, times 2⁻²⁴. Equal seeds and "+
			"streams give equal numbers; others are independent.")
	RandomNormal = random("random_normal", "RandomNormal", "random numbers of the normal distribution with mean 0 and variance 1",
		program.Tolerance{Abs: 1e-5},
		"Two words u and v of random_uniform's generator make two numbers (Box and Muller, 1958): "+
			"√(−2·ln(u+2⁻²⁴)) times the cosine and the sine of 2πv. No number is beyond ±5.77. The words are the same "+
			"on every device.")
)

func random(name, method, doc string, tol program.Tolerance, special string) *program.Entry {
	return &program.Entry{Name: name, Method: method, Class: program.Layer, Doc: doc, Special: special, Tol: tol,
		Inputs: []program.Input{{Name: "seed", Types: []compute.DType{compute.Uint32}}}, Options: compute.RandomOptions{},
		Infer: func(in []program.Type, a program.Attr) (program.Type, error) {
			o := a.Options.(compute.RandomOptions)
			if !program.EqualShape(in[0].Shape, []int{RandomSeed}) {
				return program.Type{}, fmt.Errorf("seed must have shape [%d]: %w", RandomSeed, compute.ErrShape)
			}
			if o.Stream < 0 || o.Stream > math.MaxInt32 {
				return program.Type{}, fmt.Errorf("stream %d is not from 0 to 2³¹−1: %w", o.Stream, compute.ErrArgument)
			}
			t := program.F32(o.Shape...)
			return t, t.Check()
		}}
}
