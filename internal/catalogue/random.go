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

// Entries of random numbers. Counters are laid out as cuRAND does: a place of 64 bits, of which the upper half is 0, and a stream.
var (
	RandomUniform = random("random_uniform", "RandomUniform", "random numbers from 0 to below 1, the same on every device", program.Tolerance{},
		"They are the upper 24 bits of words of Philox4x32-10 (Salmon et al., 2011), times 2⁻²⁴: element i comes of word i mod 4 of "+
			"counter (⌊i/4⌋, 0, stream, 0), with the seed as key. Equal seeds and streams give equal numbers, others have nothing to do "+
			"with each other.")
	RandomNormal = random("random_normal", "RandomNormal", "random numbers of the normal distribution, of mean 0 and variance 1",
		program.Tolerance{Abs: 1e-5},
		"They are made of the words of Philox that random_uniform takes, of which two, u and v, make two numbers (Box and Muller, 1958): "+
			"√(−2·ln(u+2⁻²⁴)) times the cosine and the sine of 2πv. None is beyond ±5.77. The words are the same on every device.")
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
