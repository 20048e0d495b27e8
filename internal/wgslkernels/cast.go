package wgslkernels

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/wgsl"
)

// cast is the code of [catalogue.Cast].
func cast(s *step) error {
	if s.Operands[0].DType == s.Result.DType {
		return copyAll(s)
	}
	s.cast(operand(0), s.Operands[0].DType, result, s.Result.DType, s.Result.Len())
	return nil
}

// cast converts n elements.
func (s *step) cast(x Buffer, from compute.DType, y Buffer, to compute.DType, n int) {
	lanes := s.workgroup()
	key, enable := fmt.Sprintf("cast/%v/%v/%d", from, to, lanes), []string(nil)
	// The other way round, WGSL leaves rounding open.
	if from == compute.Float16 && s.nativeHalves(fmt.Sprint("cast ", n)) {
		key, enable = key+"/native", []string{"f16"}
	}
	k := cached(key, func() *wgsl.Kernel {
		return &wgsl.Kernel{Bindings: []wgsl.Access{wgsl.Read, wgsl.ReadWrite}, Uniform: 16, Workgroup: [3]uint32{uint32(lanes), 1, 1},
			Source: render("cast.wgsl", struct {
				From, To string
				F16      bool
				Lanes    int
			}{from.String(), to.String(), enable != nil, lanes}, enable...)}
	})
	chunk := s.chunk() // elements: aligned on both sides
	for first := 0; first < n; first += chunk {
		count := min(chunk, n-first)
		part := func(b Buffer, size int) Buffer {
			b.Offset, b.Size = first*size, int(wgsl.BufferSize(count*size))
			return b
		}
		quads := ceilDiv(count, 4)
		s.dispatch(k, s.linear(ceilDiv(quads, lanes)), words(quads), part(x, from.Size()), part(y, to.Size()))
	}
}

// nativeHalves chooses how elements of type f16 are read: as pairs in words, which works everywhere and is the default, or as
// f16.
func (s *step) nativeHalves(problem string) bool {
	return s.caps.F16 && s.Choose("f16", problem, []string{"words", "native"}) == 1
}
