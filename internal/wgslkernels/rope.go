package wgslkernels

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/wgsl"
)

func (s *step) rope(direction float32) error {
	o := s.Attr.Options.(compute.RopeOptions)
	d, err := catalogue.RopeShape(s.Operands[0].Shape, s.Operands[1].Shape, o)
	if err != nil {
		return err
	}
	lanes := s.workgroup()
	k := cached(fmt.Sprintf("rope/%v/%d", o.Precise, lanes), func() *wgsl.Kernel {
		k := &wgsl.Kernel{Bindings: []wgsl.Access{wgsl.Read, wgsl.Read, wgsl.Read, wgsl.ReadWrite}, Workgroup: [3]uint32{uint32(lanes), 1, 1}}
		functions := functionsOf("sine")
		k.Uniform = 64 + 3*16
		if o.Precise {
			functions = functionsOf("nan")
			k.Uniform = 64 + 6*16
		}
		k.Source = render("rope.wgsl", struct {
			Precise         bool
			Functions       string
			Workgroup, Bits int
		}{o.Precise, functions, lanes, catalogue.RopeBits})
		return k
	})
	units := d.D - d.Dims/2
	heads := max(1, min(d.Tokens*d.Heads*units/manyThreads, d.Heads))
	chunks := ceilDiv(d.Heads, heads)
	apart := 1
	if o.NeoX {
		apart = d.Dims / 2
	}
	factors, scaled := operand(0), 0
	if len(s.Operands) == 3 {
		factors, scaled = operand(2), 1
	}
	token := 4 * d.Heads * d.D
	x := extent(func(first, end int) (from, to int) { return first * token, end * token })
	position := extent(func(first, end int) (from, to int) {
		if first/d.Positions < (end-1)/d.Positions { // they begin anew
			return 0, 4 * d.Positions
		}
		from = 4 * (first % d.Positions)
		return from, from + 4*(end-first)
	})
	return s.ranges(d.Tokens, func(first, end int, parts []part) {
		factors := factors
		if scaled == 0 { // bound, but never read
			factors = parts[0].of(factors)
		}
		total := (end - first) * chunks * units
		params := append(words(total, d.Heads, d.D, d.Dims, heads, chunks, first, d.Positions, parts[0].base/4, parts[1].base/4, apart,
			scaled), bits(direction), infBits, 0, 0)
		s.dispatch(k, s.linear(ceilDiv(total, lanes)), append(params, ropeSteps(d, o.Precise)...), parts[0].of(operand(0)),
			parts[1].of(operand(1)), factors, parts[0].of(result))
	}, x, position)
}

// ropeSteps are frequencies as rope.wgsl has them.
func ropeSteps(d catalogue.RopeDims, precise bool) (w []uint32) {
	if !precise {
		w = append(w, bits(float32(d.Scale)))
		for _, f := range d.Steps() {
			w = append(w, bits(float32(f)))
		}
		return w
	}
	fixed := func(v float64) {
		q := uint64(math.MaxUint64)
		if v < 0x1p64 {
			q = uint64(v)
		}
		w = append(w, uint32(q), uint32(q>>32))
	}
	fixed(math.Round(d.Scale / (2 * math.Pi) * 0x1p56))
	for _, f := range d.Steps() {
		fixed(math.Round(f * 0x1p64))
	}
	return w
}
