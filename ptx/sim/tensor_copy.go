package sim

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/tensorcore"
)

// tensorCopies are the shapes of tcgen05.cp that are here. Each copies rows to as many lanes, and again to lanes after those: first the
// rows of a part, then that part once more, then the next part.
var tensorCopies = map[ir.Mod]struct{ rows, columns, part, times int }{
	"128x256b": {128, 8, 128, 1}, "128x128b": {128, 4, 128, 1}, "32x128b.warpx4": {32, 4, 32, 4},
	"64x128b.warpx2::02_13": {64, 4, 64, 2}, "64x128b.warpx2::01_23": {64, 4, 32, 2},
}

// compileTensorCopy compiles tcgen05.cp: [tensor memory], the descriptor of a matrix in shared memory whose rows are lanes.
func compileTensorCopy(c *compiler, in *ir.Instr) (step, error) {
	shape := in.First("128x256b", "128x128b", "64x128b", "32x128b", "4x256b")
	if to := in.First("warpx2::02_13", "warpx2::01_23", "warpx4"); to != "" {
		shape += "." + to
	}
	s, ok := tensorCopies[shape]
	switch {
	case len(in.Args) != 2:
		return nil, c.unsupported(in)
	case !ok:
		return nil, c.errorf(in, compute.ErrUnsupported, "copies of the shape %s to tensor memory are not supported", shape)
	case in.Has("b8x16"):
		return nil, c.errorf(in, compute.ErrUnsupported, "copies to tensor memory that unpack elements of 4 or 6 bits are not supported")
	}
	to, err := c.addr(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	desc, err := c.src(in, &in.Args[1], ir.B64)
	op := c.memOp(in, bulkChunk, false)
	op.space, op.async = ir.SharedClusterSpace, true
	c.tracks()
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			lane := first(m)
			d, err := tensorcore.DecodeTensorDescriptor(w.get(desc, lane))
			if err != nil {
				w.fault(BadOperand, lane, 0, 0, "%v", err)
			}
			addr := to.of(w, lane)
			if addr>>16 != 0 {
				w.fault(BadOperand, lane, 0, addr, "a copy to tensor memory from lane %d on, want 0", addr>>16)
			}
			blocks := w.pair(lane, blocksOf(in))
			x := &tensorWork{}
			for _, b := range blocks {
				a := w.area(lane, b, addr, lanesFrom(0, tensorLanes), s.columns)
				w.settleTensor(lane, &a, true, true)
				x.writes = append(x.writes, a)
			}
			x.flight = &flight{w: w, lane: lane, pc: w.at, src: op, each: func(each func(piece)) {
				for _, b := range blocks {
					d.Chunks(0, s.rows, 4*s.columns, 1, false, func(addr uint32) {
						each(piece{src: ofRank(uint64(addr), uint64(b.rank)), n: bulkChunk, to: bulkChunk})
					})
				}
			}}
			w.issue(x.flight)
			if x.flight.undef != nil {
				w.fault(Uninitialized, lane, 0, 0, "bytes of a matrix in shared memory have never been written")
			}
			x.run = func() {
				for i, b := range blocks {
					for row := range s.rows {
						for col := range s.columns {
							v := uint32(load(b.shared.data[d.Address(row, 4*col, 1, false):], 4))
							for j := range s.times {
								b.tensor.set(row/s.part*s.part*s.times+j*s.part+row%s.part, x.writes[i].column+col, v)
							}
						}
					}
				}
			}
			w.begin(x)
			for _, a := range x.writes {
				for row := range tensorLanes {
					for col := range s.columns {
						a.of.mark(row, a.column+col)
					}
				}
			}
		}
	}, err
}
