package lower

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
)

func attention(s *step) error {
	d, err := catalogue.AttentionShape(s.in[0].Shape, s.in[1].Shape, s.in[2].Shape, s.Attr.Options.(compute.AttentionOptions))
	if err != nil {
		return err
	}
	if d.NK == 0 { // nobody sees anything
		s.fillWords(result, 0, ceilDiv(s.out.Bytes(), 4))
		if len(s.outs) > 1 {
			s.fillWords(resultAt(1), math.Float32bits(float32(math.Inf(-1))), s.outs[1].Len())
		}
		return nil
	}
	c := cacheOf{q: 0, k: 1, v: 2, AttentionDims: d}
	if len(s.in) > 3 {
		c.lengths = 3
	}
	var lse Buffer
	if len(s.outs) > 1 {
		lse = resultAt(1)
	}
	names := []string{"tiles"}
	set := attendSetFor(s, c)
	if set != nil {
		names = []string{"mma", "tiles"}
	}
	switch {
	case lse != Buffer{}: // parts of keys do not leave them
	case decodes(d):
		names = slices.Insert(names, 0, "split")
	default:
		names = append(names, "split")
	}
	problem := fmt.Sprintf("%dx%dx%dx%d", d.N*d.Group(), d.NK, d.D, d.Batch*d.KVHeads)
	switch names[s.choose("attention", problem, names)] {
	case "split":
		attendSplit(s, c)
	case "mma":
		attendMma(s, set, c, lse)
	default:
		attendTiles(s, c, lse)
	}
	return nil
}

// attendTiles is attention whose blocks go over all keys of a head. Operands and results of 16 bits are converted before and after.
// The logarithms of sums go to lse, if there is such a buffer.
func attendTiles(s *step, c cacheOf, lse Buffer) {
	rows := c.N * c.Group()
	shape := flashShapes[0]
	for i := 1; shape.width < c.D; i++ {
		shape = flashShapes[i]
	}
	tiles := ceilDiv(rows, shape.rows)
	wanted := lse != Buffer{}
	sizes, scale, bend := c.flashSizes(tiles, wanted)
	q, k, v := s.inFloat32(operand(c.q)), s.inFloat32(operand(c.k)), s.inFloat32(operand(c.v))
	y, out := result, s.outs[0]
	if out.DType != compute.Float32 {
		y = s.scratch(4 * out.Len())
	}
	if !wanted {
		lse = y // is not touched
	}
	s.launch(flashKernels[shape], [3]int{c.Batch * c.KVHeads * tiles, 1, 1}, sizes, scale, bend, q, k, v, operand(c.lengths), y, lse)
	if y != result {
		s.cast(y, compute.Float32, result, out.DType, out.Len())
	}
}
