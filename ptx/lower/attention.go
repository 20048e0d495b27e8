package lower

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

func init() { lowerings[op.Attention] = attention }

func attention(s *step) error {
	d, err := op.AttentionShape(s.in[0].Shape, s.in[1].Shape, s.in[2].Shape, s.Attr.Options.(compute.AttentionOptions))
	if err != nil {
		return err
	}
	if d.NK == 0 { // nobody sees anything
		s.fillWords(result, 0, ceilDiv(s.out.Bytes(), 4))
		return nil
	}
	c := cacheOf{q: 0, k: 1, v: 2, AttentionDims: d}
	if len(s.in) > 3 {
		c.lengths = 3
	}
	s.attendSplit(c)
	return nil
}
