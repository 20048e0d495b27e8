package lower

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
)

func Rope(s *step) error { return ropeStep(s, 1) }

func RopeBackward(s *step) error { return ropeStep(s, -1) }

// ropeBusy is the number of threads for each multiprocessor from which on they take more than one head each.
const ropeBusy = 2048

func ropeStep(s *step, direction float64) error {
	o := s.Attr.Options.(compute.RopeOptions)
	d, err := catalogue.RopeShape(s.in[0].Shape, s.in[1].Shape, o)
	if err != nil {
		return err
	}
	unit := 1 // pairs of a thread
	if d.D%4 == 0 && d.Dims%8 == 0 {
		unit = 4
	}
	pairs := d.Dims / 2 / unit
	units := pairs + (d.D-d.Dims)/unit // and those that are only copied
	heads := max(1, min(d.Tokens*d.Heads*units/(ropeBusy*s.caps.Multiprocessors), d.Heads))
	chunks := ceilDiv(d.Heads, heads)
	total := d.Tokens * chunks * units
	flags := flagIf(ropeNeoX, o.NeoX) | flagIf(ropeVector, unit == 4) | flagIf(ropeFactors, len(s.in) == 3)
	sizes := []uint32{uint32(total), uint32(d.Heads), uint32(d.D), uint32(d.Dims), uint32(pairs), uint32(heads), flags}
	for _, n := range []int{units, chunks, d.Positions} {
		sizes = append(sizes, divisorOf(n)...)
	}
	factors := operand(0)
	if len(s.in) == 3 {
		factors = operand(2)
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
	s.launch(kernel, [3]int{ceilDiv(total, ropeThreads), 1, 1}, sizes, words, operand(0), operand(1), factors, result)
	return nil
}
