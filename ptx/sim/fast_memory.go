package sim

import (
	"encoding/binary"

	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/lanes"
)

// window returns what a load or store in global or shared memory most probably falls into: the memory and the address of its
// first byte.
func (v *moved) window(w *warp, m uint32) ([]byte, uint64) {
	if v.op.space == ir.SharedSpace {
		return w.block.shared.data, 0
	}
	s := w.work.cache[v.op.slot]
	if s == nil {
		s = w.global(v.op, v.addr.of(w, first(m)))
	}
	if s == nil || s.readOnly && v.op.write {
		return nil, 0
	}
	return s.data, s.base
}

// plain tells loads and stores of one, two or four words of 32 bits in global or shared memory.
func (v *moved) plain() bool {
	for _, r := range v.elems {
		if r.bank != bank32 || r.bits != 32 || r.i < 0 {
			return false
		}
	}
	return v.size == 4 && !v.addr.frame && (v.op.space == ir.SharedSpace || v.op.space == ir.GlobalSpace)
}

// fastParam loads one register from the parameter block, of so many bytes. Nothing about that is ever to be complained about.
//
//go:noinline
func (v *moved) fastParam(size int) step {
	r := v.elems[0]
	n, at := uint64(v.size), v.addr.off
	if len(v.elems) != 1 || r.i < 0 || int(r.bits) != 8*v.size || v.size < 4 || at%n != 0 || at >= uint64(size) || at+n > uint64(size) {
		return nil
	}
	if n == 4 {
		return func(w *warp, m uint32) {
			fill(&w.r32[r.i], binary.LittleEndian.Uint32(w.block.grid.params.data[at:]), m)
		}
	}
	return func(w *warp, m uint32) {
		fill(&w.r64[r.i], binary.LittleEndian.Uint64(w.block.grid.params.data[at:]), m)
	}
}

// fill writes a value to lanes of a register.
func fill[T unsigned](r *[warpSize]T, v T, m uint32) {
	if m == full {
		for l := range r {
			r[l] = v
		}
		return
	}
	for ; m != 0; m &= m - 1 {
		r[first(m)&31] = v
	}
}

//go:noinline
func (v *moved) fastLoad() step {
	if !v.plain() {
		return nil
	}
	n := uint64(v.op.size)
	return func(w *warp, m uint32) {
		data, base := v.window(w, m)
		addr := &w.places[0]
		if within := v.addr.offsets(w, m, base, data, v.op.size, addr); m == full && within {
			v.loadFull(w, data, addr)
			return
		}
		if len(v.elems) == 1 {
			r := &w.r32[v.elems[0].i]
			for ; m != 0; m &= m - 1 {
				l := first(m) & 31
				a := addr[l]
				if a&3 != 0 || a+4 > uint64(len(data)) || a+4 < a {
					v.loadLane(w, l, a+base)
					continue
				}
				r[l] = binary.LittleEndian.Uint32(data[a:])
			}
			return
		}
		for e, ref := range v.elems {
			r := &w.r32[ref.i]
			at := uint64(4 * e)
			for m := m; m != 0; m &= m - 1 {
				l := first(m) & 31
				a := addr[l]
				if a&(n-1) != 0 || a+n > uint64(len(data)) || a+n < a {
					if e == 0 {
						v.loadLane(w, l, a+base)
					}
					continue
				}
				r[l] = binary.LittleEndian.Uint32(data[a+at:])
			}
		}
	}
}

// offsets computes the lanes' addresses relative to base, and tells whether n bytes at each in m lie in the data, at multiples of n.
func (a *address) offsets(w *warp, m uint32, base uint64, data []byte, n int, off *[warpSize]uint64) bool {
	if m != full || a.frame || a.base.i < 0 || len(data) < n {
		a.all(w, base, off)
		return within(data, m, n, off)
	}
	var all, bad uint64
	if limit := uint64(len(data) - n); a.base.bank == bank64 {
		all, bad = lanes.Offsets(off, &w.r64[a.base.i], a.off-base, limit)
	} else {
		all, bad = lanes.Offsets32(off, &w.r32[a.base.i], a.off-base, limit)
	}
	return (all|bad)>>63 == 0 && all&uint64(n-1) == 0
}

// within tells whether n bytes at each lane's offset lie in the data, at multiples of n.
func within(data []byte, m uint32, n int, off *[warpSize]uint64) bool {
	if len(data) < n {
		return false
	}
	highest, all := uint64(0), uint64(0)
	if m == full {
		m = 0
		for _, a := range off {
			highest = max(highest, a)
			all |= a
		}
	}
	for ; m != 0; m &= m - 1 {
		a := off[first(m)&31]
		highest = max(highest, a)
		all |= a
	}
	return highest <= uint64(len(data)-n) && all&uint64(n-1) == 0
}

// loadFull is the load for a full warp that fits.
func (v *moved) loadFull(w *warp, data []byte, off *[warpSize]uint64) {
	if len(v.elems) == 4 {
		r0, r1, r2, r3 := &w.r32[v.elems[0].i], &w.r32[v.elems[1].i], &w.r32[v.elems[2].i], &w.r32[v.elems[3].i]
		lanes.Load4(r0, r1, r2, r3, data, off)
		return
	}
	for e, ref := range v.elems {
		r := &w.r32[ref.i]
		data := data[4*e:]
		for l, a := range off {
			r[l] = binary.LittleEndian.Uint32(data[a:])
		}
	}
}

// storeFull is the store for a full warp that fits; where lanes store to the same place, the last one is right, as it is one
// lane after the other.
func (v *moved) storeFull(w *warp, data []byte, off *[warpSize]uint64) {
	if len(v.elems) == 4 {
		r0, r1, r2, r3 := &w.r32[v.elems[0].i], &w.r32[v.elems[1].i], &w.r32[v.elems[2].i], &w.r32[v.elems[3].i]
		for l, a := range off {
			d := data[a:][:16]
			binary.LittleEndian.PutUint32(d, r0[l])
			binary.LittleEndian.PutUint32(d[4:], r1[l])
			binary.LittleEndian.PutUint32(d[8:], r2[l])
			binary.LittleEndian.PutUint32(d[12:], r3[l])
		}
		return
	}
	for e, ref := range v.elems {
		r := &w.r32[ref.i]
		data := data[4*e:]
		for l, a := range off {
			binary.LittleEndian.PutUint32(data[a:], r[l])
		}
	}
}

//go:noinline
func (v *moved) fastStore() step {
	if !v.plain() {
		return nil
	}
	n := uint64(v.op.size)
	return func(w *warp, m uint32) {
		data, base := v.window(w, m)
		addr := &w.places[0]
		if within := v.addr.offsets(w, m, base, data, v.op.size, addr); m == full && within {
			v.storeFull(w, data, addr)
			return
		}
		for ; m != 0; m &= m - 1 {
			l := first(m) & 31
			a := addr[l]
			if a&(n-1) != 0 || a+n > uint64(len(data)) || a+n < a {
				v.storeLane(w, l, a+base)
				continue
			}
			for e := range v.elems {
				binary.LittleEndian.PutUint32(data[a+uint64(4*e):], w.r32[v.elems[e].i][l])
			}
		}
	}
}
