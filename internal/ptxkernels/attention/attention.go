package attention

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
)

// Attention lowers attention and its form that also returns the logarithms of the sums: over tiles of queries, or split over keys where queries
// are few.
func Attention(s *kit.Step) error {
	d, err := catalogue.AttentionShape(s.Operands[0].Shape, s.Operands[1].Shape, s.Operands[2].Shape, s.Attr.Options.(compute.AttentionOptions))
	if err != nil {
		return err
	}
	if d.NK == 0 { // there are no keys
		s.Fill(kit.Out, 0, kit.CeilDiv(s.Result.Bytes(), 4))
		if len(s.Results) > 1 {
			s.Fill(kit.OutAt(1), math.Float32bits(float32(math.Inf(-1))), s.Results[1].Len())
		}
		return nil
	}
	c := cacheOf{q: 0, k: 1, v: 2, AttentionDims: d}
	if len(s.Operands) > 3 {
		c.lengths = 3
	}
	if s.Operands[c.k].DType == compute.Uint32 { // packed, which only these kernels read
		attendSplit(s, c)
		return nil
	}
	var lse kit.Buffer
	if len(s.Results) > 1 {
		lse = kit.OutAt(1)
	}
	names := []string{"tiles"}
	set := attendSetFor(s, c)
	if set != nil {
		names = []string{"mma", "tiles"}
	}
	wgmmas := wgmmaSetFor(s, c)
	if wgmmas != nil {
		at := 1 // tiles of few queries leave most of a warpgroup idle, and few blocks most of the GPU
		if wgmmaBlocks(c) >= s.Caps.Multiprocessors && c.N >= 64 {
			at = 0
		}
		names = slices.Insert(names, at, "wgmma")
	}
	switch {
	case lse != kit.Buffer{}: // parts of keys do not leave them
	case decodes(d):
		names = slices.Insert(names, 0, "split")
	default:
		names = append(names, "split")
	}
	problem := fmt.Sprintf("%dx%dx%dx%d", d.N*d.Group(), d.NK, d.D, d.Batch*d.KVHeads)
	switch names[s.Choose("attention", problem, names)] {
	case "split":
		attendSplit(s, c)
	case "wgmma":
		attendWgmma(s, wgmmas, c, lse)
	case "mma":
		attendMma(s, set, c, lse)
	default:
		attendTiles(s, c, lse)
	}
	return nil
}

// attendTiles is attention whose blocks go over all keys of a head. Operands and results of 16 bits are converted before and after.
// The logarithms of sums go to lse, if there is such a buffer.
func attendTiles(s *kit.Step, c cacheOf, lse kit.Buffer) {
	rows := c.N * c.Group()
	shape := flashShapes[0]
	for i := 1; shape.width < c.D; i++ {
		shape = flashShapes[i]
	}
	tiles := kit.CeilDiv(rows, shape.rows)
	wanted := lse != kit.Buffer{}
	p := c.flashParams(tiles, wanted)
	p.Q, p.K, p.V = s.InFloat32(kit.In(c.q)), s.InFloat32(kit.In(c.k)), s.InFloat32(kit.In(c.v))
	y, out := kit.Out, s.Results[0]
	if out.DType != compute.Float32 {
		y = s.NewScratch(4 * out.Len())
	}
	if !wanted {
		lse = y // is not touched
	}
	p.Y, p.LSE = y, lse
	s.Launch(flashKernels[shape], [3]int{c.Batch * c.KVHeads * tiles, 1, 1}, p)
	if y != kit.Out {
		s.Cast(y, compute.Float32, kit.Out, out.DType, out.Len())
	}
}
