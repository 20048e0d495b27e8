package rope

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
)

// Rope lowers rotary position embeddings.
func Rope(s *kit.Step) error { return ropeStep(s, 1) }

// RopeBackward lowers their gradient, the rotation by the opposite angle.
func RopeBackward(s *kit.Step) error { return ropeStep(s, -1) }

// ropeBusy is the number of threads for each multiprocessor from which on they take more than one head each.
const ropeBusy = 2048

func ropeStep(s *kit.Step, direction float64) error {
	o := s.Attr.Options.(compute.RopeOptions)
	d, err := catalogue.RopeShape(s.Operands[0].Shape, s.Operands[1].Shape, o)
	if err != nil {
		return err
	}
	unit := 1 // pairs of a thread
	if d.D%4 == 0 && d.Dims%8 == 0 {
		unit = 4
	}
	pairs := d.Dims / 2 / unit
	units := pairs + (d.D-d.Dims)/unit // and those that are only copied
	heads := max(1, min(d.Tokens*d.Heads*units/(ropeBusy*s.Caps.Multiprocessors), d.Heads))
	chunks := kit.CeilDiv(d.Heads, heads)
	total := d.Tokens * chunks * units
	flags := kit.FlagIf(ropeNeoX, o.NeoX) | kit.FlagIf(ropeVector, unit == 4) | kit.FlagIf(ropeFactors, len(s.Operands) == 3)
	factors := kit.In(0)
	if len(s.Operands) == 3 {
		factors = kit.In(2)
	}
	steps := d.Steps()
	frequency, kernel := direction*d.Scale, ropeFast
	if o.Precise {
		frequency, kernel = frequency/(2*math.Pi), ropePrecise
	}
	words := make([]uint32, 0, 2*(len(steps)+1))
	for _, f := range append([]float64{frequency}, steps[:]...) {
		if o.Precise {
			b := math.Float64bits(f)
			words = append(words, uint32(b), uint32(b>>32))
		} else {
			words = append(words, math.Float32bits(float32(f)))
		}
	}
	s.Launch(kernel, [3]int{kit.CeilDiv(total, ropeThreads), 1, 1}, ropeParams{Threads: total, Heads: d.Heads, D: d.D, Dims: d.Dims,
		Rotated: pairs, HeadsPerThread: heads, Flags: int(flags), Units: scalar.Divide(units), Chunks: scalar.Divide(chunks),
		Positions: scalar.Divide(d.Positions), Steps: words, X: kit.In(0), At: kit.In(1), Factors: factors, Y: kit.Out})
	return nil
}
