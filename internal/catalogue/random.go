package catalogue

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Philox returns the four words that Philox4x32-10 makes of a counter and a key: Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", 2011.
func Philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	for round := range PhiloxRounds {
		if round > 0 {
			key[0], key[1] = key[0]+PhiloxWeyl0, key[1]+PhiloxWeyl1
		}
		high0, low0 := bits.Mul32(PhiloxFactor0, counter[0])
		high1, low1 := bits.Mul32(PhiloxFactor1, counter[2])
		counter = [4]uint32{high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0}
	}
	return counter
}

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
			"with each other.",
		func(w [4]uint32) (y [4]float64) {
			for i, v := range w {
				y[i] = float64(v>>8) * 0x1p-24
			}
			return y
		})
	RandomNormal = random("random_normal", "RandomNormal", "random numbers of the normal distribution, of mean 0 and variance 1",
		program.Tolerance{Abs: 1e-5},
		"They are made of the words of Philox that random_uniform takes, of which two, u and v, make two numbers (Box and Muller, 1958): "+
			"√(−2·ln(u+2⁻²⁴)) times the cosine and the sine of 2πv. None is beyond ±5.77. The words are the same on every device.",
		func(w [4]uint32) (y [4]float64) {
			for i := 0; i < 4; i += 2 {
				r := math.Sqrt(-2 * math.Log(float64(w[i]>>8+1)*0x1p-24))
				sin, cos := math.Sincos(2 * math.Pi * 0x1p-24 * float64(w[i+1]>>8))
				y[i], y[i+1] = r*cos, r*sin
			}
			return y
		})
)

func random(name, method, doc string, tol program.Tolerance, special string, f func(words [4]uint32) [4]float64) *program.Entry {
	return register(&program.Entry{Name: name, Method: method, Class: program.Layer, Doc: doc, Special: special, Tol: tol,
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
		},
		Ref: func(in []program.Array, a program.Attr, out program.Type) []float64 {
			y := make([]float64, 0, out.Len()+3)
			key := [2]uint32{uint32(in[0].Data[0]), uint32(in[0].Data[1])}
			stream := uint32(a.Options.(compute.RandomOptions).Stream)
			for i := uint32(0); len(y) < out.Len(); i++ {
				four := f(Philox([4]uint32{i, 0, stream, 0}, key))
				y = append(y, four[:]...)
			}
			return y[:out.Len()]
		}})
}
