package wgslkernels

import (
	"fmt"
	mathbits "math/bits"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/wgsl"
)

// Scattering uses integer atomics only, whose result does not depend on their order.

// embeddingBackward is the code of [catalogue.EmbeddingBackward].
func embeddingBackward(s *step) error {
	s.fill(0)
	return s.eachScatter(s.scatterAdd)
}

// scatter is a number of updates for the rows from low to high, within what bindings hold. It needs as much memory as one of the most
// updates for the most rows.
type scatter struct {
	n, mostUpdates      int
	low, high, mostRows int
	width               int // of rows
	indices, x, y       Buffer
	indices0, x0, y0    int // where they begin in their bindings
}

// unit is the number of words that are moved at once.
func (c *scatter) unit() int {
	if c.width%4 == 0 {
		return 4
	}
	return 1
}

// eachScatter calls f for parts of the rows, and for each of them for parts of the updates, one after the other.
func (s *step) eachScatter(f func(c *scatter)) error {
	d := catalogue.GatherRows(s.Operands[0].Shape, s.Operands[1].Shape)
	if d.Count == 0 {
		return nil
	}
	const wayOut = "put narrower rows"
	rows, err := s.planes(d.Rows, d.Inner, d.Inner, "a row", wayOut)
	if err != nil {
		return err
	}
	some, err := s.planes(d.Count, d.Inner, d.Inner, "a row", wayOut)
	if err != nil {
		return err
	}
	first := len(s.Scratch)
	for low := 0; low < d.Rows; low += rows {
		c := &scatter{mostUpdates: some, low: low, high: min(low+rows, d.Rows), mostRows: rows, width: d.Inner}
		c.y, c.y0 = s.window(result, low*d.Inner, (c.high-low)*d.Inner)
		for i := 0; i < d.Count; i += some {
			c.n = min(some, d.Count-i)
			c.indices, c.indices0 = s.window(operand(1), i, c.n)
			c.x, c.x0 = s.window(operand(2), i*d.Inner, c.n*d.Inner)
			s.Scratch = s.Scratch[:first] // the same for all
			f(c)
		}
	}
	return nil
}

// scatterLast puts the last update of each row there.
func (s *step) scatterLast(c *scatter) {
	lanes, unit := s.workgroup(), c.unit()
	last := s.NewScratch(4 * c.mostRows)
	s.fillWords(last, c.high-c.low, 0)
	find := cached(fmt.Sprintf("scatter/%d", lanes), func() *wgsl.Kernel {
		return &wgsl.Kernel{Bindings: []wgsl.Access{wgsl.Read, wgsl.ReadWrite}, Uniform: 16, Workgroup: [3]uint32{uint32(lanes), 1, 1},
			Source: render("scatter.wgsl", struct{ Lanes int }{lanes})}
	})
	s.dispatch(find, s.linear(ceilDiv(c.n, lanes)), words(c.n, c.low, c.high, c.indices0), c.indices, last)
	put := cached(fmt.Sprintf("scatter_rows/%d/%d", unit, lanes), func() *wgsl.Kernel {
		return &wgsl.Kernel{Bindings: []wgsl.Access{wgsl.Read, wgsl.Read, wgsl.Read, wgsl.ReadWrite}, Uniform: 32, Workgroup: [3]uint32{uint32(lanes), 1, 1},
			Source: render("scatter_rows.wgsl", struct {
				Vec   bool
				Lanes int
			}{unit == 4, lanes})}
	})
	total := c.n * c.width / unit
	s.dispatch(put, s.linear(ceilDiv(total, lanes)),
		words(total, c.width/unit, c.low, c.high, c.indices0, c.x0/unit, c.y0/unit), c.indices, last, c.x, c.y)
}

const (
	// segmentPiece is how many rows at most one invocation adds up. Their sums are added up likewise, by a tree.
	segmentPiece = 32
	// wideRow is the number of units from which neighbouring invocations have one row: then each looks at one row of a piece only.
	wideRow = 8
)

// scatterAdd adds the updates: sorted by their rows, then in pieces of equal size, whatever rows they are for.
func (s *step) scatterAdd(c *scatter) {
	keys, order := s.sortUpdates(c)
	lanes, unit := s.workgroup(), c.unit()
	x, x0, first := c.x, c.x0, true
	pieces := ceilDiv(c.mostUpdates, segmentPiece)
	var ends, sums [2]Buffer // of stages in turn
	for i := 0; i < 2 && pieces > 1; i++ {
		ends[i], sums[i] = s.NewScratch(4*2*pieces), s.NewScratch(4*2*pieces*c.width)
		pieces = ceilDiv(2*pieces, segmentPiece)
	}
	for n, stage := c.n, 0; ; stage++ {
		pieces := ceilDiv(n, segmentPiece)
		last := pieces == 1
		access, bind := []wgsl.Access{wgsl.Read}, []Buffer{keys}
		if first {
			access, bind = append(access, wgsl.Read), append(bind, order)
		}
		access, bind = append(access, wgsl.Read, wgsl.ReadWrite), append(bind, x, c.y)
		if !last {
			access, bind = append(access, wgsl.ReadWrite, wgsl.ReadWrite), append(bind, ends[stage%2], sums[stage%2])
		}
		k := cached(fmt.Sprintf("segment_sum/%v/%v/%d/%d", first, last, unit, lanes), func() *wgsl.Kernel {
			return &wgsl.Kernel{Bindings: access, Uniform: 32, Workgroup: [3]uint32{uint32(lanes), 1, 1},
				Source: render("segment_sum.wgsl", struct {
					First, Last, Vec bool
					Lanes, Piece     int
				}{first, last, unit == 4, lanes, segmentPiece})}
		})
		span := segmentPiece
		if c.width/unit >= wideRow {
			span = 1
		}
		total := ceilDiv(n, span) * c.width / unit
		s.dispatch(k, s.linear(ceilDiv(total, lanes)), words(total, c.width/unit, n, c.high-c.low, span, x0/unit, c.y0/unit), bind...)
		if last {
			return
		}
		keys, x, x0, first, n = ends[stage%2], sums[stage%2], 0, false, 2*pieces
	}
}

// sortRounds is how many updates of a block each of its lanes has.
const sortRounds = 16

// sortUpdates returns the rows of the updates, counted from low, in ascending order, those beyond high at the end, and the updates'
// numbers.
func (s *step) sortUpdates(c *scatter) (keys, order Buffer) {
	lanes := s.workgroup()
	mostBits := min(8, max(1, mathbits.Len(uint(lanes))-1))
	rowBits := max(1, mathbits.Len(uint(c.mostRows-1)))
	passes := ceilDiv(rowBits, mostBits)
	digitBits := ceilDiv(rowBits, passes)
	blocks, mostBlocks := ceilDiv(c.n, lanes*sortRounds), ceilDiv(c.mostUpdates, lanes*sortRounds)
	var to [2][2]Buffer // keys and numbers, of passes in turn
	for i := range min(2, passes) {
		to[i] = [2]Buffer{s.NewScratch(4 * c.mostUpdates), s.NewScratch(4 * c.mostUpdates)}
	}
	counts, totals := s.NewScratch(4*(1<<mostBits+1)*mostBlocks), s.NewScratch(4*(1<<mostBits+1))
	keys = c.indices
	for pass := range passes {
		first, digits, low, keys0 := pass == 0, 1<<digitBits, 0, 0
		if first {
			low, keys0 = c.low, c.indices0
		}
		params := words(c.n, blocks, pass*digitBits, digits, low, c.high-c.low, keys0)
		if blocks > 1 {
			s.dispatch(sortKernel("count", lanes, mostBits, blocks, false, wgsl.Read, wgsl.ReadWrite), s.linear(blocks), params, keys, counts)
			s.dispatch(sortKernel("scan", lanes, mostBits, blocks, false, wgsl.ReadWrite, wgsl.ReadWrite), s.linear(digits+1), params, counts, totals)
		}
		access, bind := []wgsl.Access{wgsl.Read}, []Buffer{keys}
		if !first {
			access, bind = append(access, wgsl.Read), append(bind, order)
		}
		if blocks > 1 {
			access, bind = append(access, wgsl.Read, wgsl.Read), append(bind, counts, totals)
		}
		keys, order = to[pass%2][0], to[pass%2][1]
		s.dispatch(sortKernel("place", lanes, mostBits, blocks, first, append(access, wgsl.ReadWrite, wgsl.ReadWrite)...), s.linear(blocks), params,
			append(bind, keys, order)...)
	}
	return keys, order
}

func sortKernel(mode string, lanes, mostBits, blocks int, first bool, access ...wgsl.Access) *wgsl.Kernel {
	blocks = min(blocks, 2)
	return cached(fmt.Sprintf("sort/%s/%d/%d/%v", mode, lanes, blocks, first), func() *wgsl.Kernel {
		d := struct {
			Mode                                 string
			Lanes, Rounds, Digits, Words, Blocks int
			First                                bool
			Distances                            []int
		}{Mode: mode, Lanes: lanes, Rounds: sortRounds, Digits: 1 << mostBits, Words: ceilDiv(lanes, 32), Blocks: blocks, First: first}
		for l := 1; l < lanes; l *= 2 {
			d.Distances = append(d.Distances, l)
		}
		k := &wgsl.Kernel{Bindings: access, Uniform: 32, Workgroup: [3]uint32{uint32(lanes), 1, 1}, Source: render("sort.wgsl", d)}
		switch mode {
		case "count":
			k.Shared = 4 * (d.Digits + 1)
		case "scan":
			k.Shared = 4 * lanes
		default:
			k.Shared = 4 * (lanes + (d.Digits+1)*(1+d.Words))
		}
		return k
	})
}
