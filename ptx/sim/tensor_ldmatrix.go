package sim

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/tensorcore"
)

// rowOp is how ldmatrix and stmatrix access the 16 bytes of a row of a matrix. The lane that gives a row's address counts as
// the one that accesses it.
func (c *compiler) rowOp(in *ir.Instr, write bool) *memOp {
	op := c.memOp(in, 16, write)
	op.atomic = false
	return op
}

// rows are the registers, the address and the access of ldmatrix and stmatrix.
func (c *compiler) rows(in *ir.Instr, regs, addr int) (refs []ref, a address, op *memOp, err error) {
	count := map[ir.Mod]int{ir.X1: 1, ir.X2: 2, ir.X4: 4}[in.First(ir.X1, ir.X2, ir.X4)]
	if !in.Has("m8n8") || in.Type(0) != ir.B16 || count == 0 || len(in.Args) != 2 {
		return nil, a, nil, c.unsupported(in)
	}
	if refs, err = c.list(in, &in.Args[regs], ir.B32); err != nil {
		return nil, a, nil, err
	}
	if len(refs) != count {
		return nil, a, nil, c.errorf(in, compute.ErrArgument, "%d registers, want %d", len(refs), count)
	}
	a, err = c.addr(in, &in.Args[addr])
	return refs, a, c.rowOp(in, regs == 1), err
}

// rowBytes is the memory of a row.
func (w *warp) rowBytes(lane int, op *memOp, addr uint64, undef uint32) ([]byte, uint32) {
	w.inShared(lane, op.space, addr)
	return w.bytes(lane, op, addr, undef)
}

// inShared faults if a generic address is not in shared memory.
func (w *warp) inShared(lane int, space ir.Space, addr uint64) {
	if space == ir.NoSpace && addr/windowSize != sharedWindow/windowSize {
		w.fault(BadOperand, lane, space, addr, "the generic address is not one of shared memory")
	}
}

func compileLdmatrix(c *compiler, in *ir.Instr) (step, error) {
	refs, addr, op, err := c.rows(in, 0, 1)
	if err != nil {
		return nil, err
	}
	trans := in.Has(ir.Trans)
	return c.warpwide(func(w *warp, _ uint32) {
		var out [4][warpSize]uint32
		var bad [4]uint32
		for i := range refs { // before any register is written: an address may lie in one
			for row := range 8 {
				from := 8*i + row
				b, undef := w.rowBytes(from, op, addr.of(w, from), 0)
				for col := range 8 {
					lane, half := tensorcore.LdmatrixElement(row, col)
					if trans {
						lane, half = tensorcore.LdmatrixElement(col, row)
					}
					out[i][lane] |= (uint32(b[2*col]) | uint32(b[2*col+1])<<8) << (16 * half)
					if undef>>(2*col)&3 != 0 {
						bad[i] |= 1 << lane
					}
				}
			}
		}
		for i, r := range refs {
			for lane := range warpSize {
				w.set(r, lane, uint64(out[i][lane]))
			}
			w.poison[i] = bad[i]
		}
	}), nil
}

func compileStmatrix(c *compiler, in *ir.Instr) (step, error) {
	refs, addr, op, err := c.rows(in, 1, 0)
	if err != nil {
		return nil, err
	}
	trans := in.Has(ir.Trans)
	return c.warpwide(func(w *warp, _ uint32) {
		var rows [warpSize]matrixRow
		for i, r := range refs {
			for row := range 8 {
				v := &rows[8*i+row]
				undef := uint32(0)
				for col := range 8 {
					lane, half := tensorcore.LdmatrixElement(row, col)
					if trans {
						lane, half = tensorcore.LdmatrixElement(col, row)
					}
					store(v.data[2*col:], 2, w.get(r, lane)>>(16*half))
					undef |= w.poison[i] >> lane & 1 * 3 << (2 * col)
				}
				v.at, v.undef = addr.of(w, 8*i+row), undef
			}
		}
		stored := rows[:8*len(refs)]
		if w.mon != nil {
			w.watched.twice = equalRows(stored)
		}
		for to := range stored {
			b, _ := w.rowBytes(to, op, stored[to].at, stored[to].undef)
			copy(b, stored[to].data[:])
		}
		w.watched.twice = 0
	}), nil
}

// matrixRow is a row that stmatrix stores.
type matrixRow struct {
	at    uint64
	undef uint32
	data  [16]byte
}

// equalRows are those that another one equals, in its place too: lanes that store the same to one place do not race.
func equalRows(rows []matrixRow) (set uint32) {
	for i := range rows {
		for j := range rows[:i] {
			if rows[i] == rows[j] {
				set |= 1<<i | 1<<j
			}
		}
	}
	return set
}

func compileMovmatrix(c *compiler, in *ir.Instr) (step, error) {
	if !in.Has("m8n8") || !in.Has(ir.Trans) || in.Type(0) != ir.B16 || len(in.Args) != 2 {
		return nil, c.unsupported(in)
	}
	d, err := c.dst(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	a, err := c.arg(in, 1, ir.B32)
	return c.warpwide(func(w *warp, _ uint32) {
		var out [warpSize]uint64
		for row := range 8 {
			for col := range 8 {
				from, half := tensorcore.LdmatrixElement(row, col)
				to, place := tensorcore.LdmatrixElement(col, row)
				out[to] |= w.get(a, from) >> (16 * half) & 0xffff << (16 * place)
			}
		}
		for lane, v := range out {
			w.set(d, lane, v)
		}
	}), err
}
