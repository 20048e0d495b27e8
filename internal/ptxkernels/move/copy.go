package move

import (
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
)

// What concerns tensors as a whole: bytes are copied and words filled without a kernel.

// Fill lowers a tensor of one value, which needs no kernel.
func Fill(s *kit.Step) error {
	s.Fill(kit.Out, math.Float32bits(s.Attr.Scalars[0]), s.Result.Len())
	return nil
}

// Copy lowers a copy of a whole tensor, which needs no kernel.
func Copy(s *kit.Step) error {
	s.Copy(kit.In(0), kit.Out, s.Result.Bytes())
	return nil
}

// Cast lowers the conversion to another element type.
func Cast(s *kit.Step) error {
	s.Cast(kit.In(0), s.Operands[0].DType, kit.Out, s.Result.DType, s.Result.Len())
	return nil
}
