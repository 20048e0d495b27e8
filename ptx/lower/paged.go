package lower

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
)

func pagedAttention(s *step) error {
	d, p, err := catalogue.PagedShape(s.in[0].Shape, s.in[1].Shape, s.in[2].Shape, s.in[3].Shape, s.in[4].Shape,
		s.Attr.Options.(compute.AttentionOptions))
	if err != nil {
		return err
	}
	attendSplit(s, cacheOf{q: 0, k: 1, v: 2, table: 3, lengths: 4, AttentionDims: d, Paging: p})
	return nil
}
