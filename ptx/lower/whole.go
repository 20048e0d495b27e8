package lower

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

// What concerns tensors as a whole: bytes are copied and words filled without a kernel.

func init() {
	lowerings[op.Copy] = copyAll
	lowerings[op.Reshape] = copyAll
	lowerings[op.Fill] = func(s *step) error {
		s.fillWords(result, math.Float32bits(s.Attr.Scalars[0]), s.out.Len())
		return nil
	}
	lowerings[op.Cast] = func(s *step) error {
		if s.in[0].DType == s.out.DType {
			return copyAll(s)
		}
		kernel := widen
		if s.out.DType == compute.Float16 {
			kernel = narrow
		}
		quads := ceilDiv(s.out.Len(), 4)
		s.launch(kernel, s.strides(quads, castBlock), quads, operand(0), result)
		return nil
	}
}

func copyAll(s *step) error {
	s.copyBytes(operand(0), result, s.out.Bytes())
	return nil
}
