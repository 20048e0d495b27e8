package sim

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

// layout is a matrix in the registers of a warp: which element lies where.
type layout struct {
	refs []ref
	bits int      // of an element
	per  int      // elements in a register
	at   []uint16 // the element's index in the matrix, by register, lane and place in the register
}

// layout makes the layout of the registers of an operand for a matrix of count elements of type t; index says which element
// it is that a lane has at a place, counted through its registers.
func (c *compiler) layout(in *ir.Instr, o *ir.Operand, t ir.Type, count int, index func(lane, e int) int) (*layout, error) {
	width := max(32, t.Bits())
	regType := ir.B32
	if width == 64 {
		regType = ir.B64
	}
	l := &layout{bits: t.Bits(), per: width / t.Bits()}
	var err error
	if l.refs, err = c.list(in, o, regType); err != nil {
		return nil, err
	}
	if want := count / 32 / l.per; len(l.refs) != want {
		return nil, c.errorf(in, compute.ErrArgument, "%d registers for a matrix of %d elements of %v, want %d", len(l.refs),
			count, t, want)
	}
	for _, r := range l.refs {
		if int(r.bits) != width {
			return nil, c.errorf(in, compute.ErrArgument, "a register of %d bits holds elements of %v, want one of %d", r.bits, t, width)
		}
	}
	for reg := range l.refs {
		for lane := range warpSize {
			for e := range l.per {
				l.at = append(l.at, uint16(index(lane, reg*l.per+e)))
			}
		}
	}
	return l, nil
}

// gather reads the matrix.
func (l *layout) gather(w *warp, dst []uint64) {
	mask := ^uint64(0) >> (64 - l.bits)
	at := l.at
	for _, r := range l.refs {
		for lane := range warpSize {
			v := w.get(r, lane)
			for e := range l.per {
				dst[at[e]] = v >> (e * l.bits) & mask
			}
			at = at[l.per:]
		}
	}
}

// scatter writes it.
func (l *layout) scatter(w *warp, src []uint64) {
	at := l.at
	for _, r := range l.refs {
		for lane := range warpSize {
			v := uint64(0)
			for e := range l.per {
				v |= src[at[e]] << (e * l.bits)
			}
			w.set(r, lane, v)
			at = at[l.per:]
		}
	}
}

// warpwide makes a step that a whole warp of 32 lanes executes together.
func (c *compiler) warpwide(s step) step {
	return c.aligned(func(w *warp, m uint32) {
		if m != full {
			w.fault(WarpSync, first(m), 0, 0, "the warp has only lanes %#08x, the instruction needs all 32", m)
		}
		s(w, m)
	})
}
