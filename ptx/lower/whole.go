package lower

import (
	"math"

	"github.com/wavelane/wavelane/internal/catalogue"
)

// What concerns tensors as a whole: bytes are copied and words filled without a kernel.

func init() {
	lowerings[catalogue.Copy] = copyAll
	lowerings[catalogue.Reshape] = copyAll
	lowerings[catalogue.Fill] = func(s *step) error {
		s.fillWords(result, math.Float32bits(s.Attr.Scalars[0]), s.out.Len())
		return nil
	}
}

func copyAll(s *step) error {
	s.copyBytes(operand(0), result, s.out.Bytes())
	return nil
}
