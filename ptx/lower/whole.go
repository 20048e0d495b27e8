package lower

import (
	"math"
)

// What concerns tensors as a whole: bytes are copied and words filled without a kernel.

func fillStep(s *step) error {
	s.fillWords(result, math.Float32bits(s.Attr.Scalars[0]), s.out.Len())
	return nil
}

func copyStep(s *step) error {
	s.copyBytes(operand(0), result, s.out.Bytes())
	return nil
}

func castStep(s *step) error {
	s.cast(operand(0), s.in[0].DType, result, s.out.DType, s.out.Len())
	return nil
}
