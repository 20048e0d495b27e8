package lower

import (
	"math"

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
}

func copyAll(s *step) error {
	s.copyBytes(operand(0), result, s.out.Bytes())
	return nil
}
