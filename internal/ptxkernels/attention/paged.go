package attention

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
)

// Paged lowers attention over a cache in pages.
func Paged(s *kit.Step) error {
	d, p, err := catalogue.PagedShape(s.Operands[0].Shape, s.Operands[1].Shape, s.Operands[2].Shape, s.Operands[3].Shape, s.Operands[4].Shape,
		s.Attr.Options.(compute.AttentionOptions))
	if err != nil {
		return err
	}
	attendSplit(s, cacheOf{q: 0, k: 1, v: 2, table: 3, lengths: 4, AttentionDims: d, Paging: p})
	return nil
}
