package wgsl

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

func init() { lowerings[op.Cast] = cast }

func cast(s *step) error {
	if s.in[0].DType == s.out.DType {
		return copyAll(s)
	}
	half, lanes := s.out.DType == compute.Float16, s.workgroup()
	k := cached(fmt.Sprintf("cast/%v/%d", half, lanes), func() *Kernel {
		return &Kernel{Bindings: []Access{Read, ReadWrite}, Uniform: 16, Workgroup: [3]uint32{uint32(lanes), 1, 1},
			Source: render("cast.wgsl", struct {
				Half  bool
				Lanes int
			}{half, lanes})}
	})
	n := s.out.Len()
	chunk := s.chunk() // elements: aligned on both sides
	for first := 0; first < n; first += chunk {
		count := min(chunk, n-first)
		part := func(b Buffer, size int) Buffer {
			b.Offset, b.Size = uint64(first*size), BufferSize(count*size)
			return b
		}
		pairs := ceilDiv(count, 2)
		s.dispatch(k, s.linear(ceilDiv(pairs, lanes)), words(pairs), part(operand(0), s.in[0].DType.Size()), part(result, s.out.DType.Size()))
	}
	return nil
}
