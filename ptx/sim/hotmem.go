package sim

import (
	"encoding/binary"

	"github.com/wavelane/wavelane/ptx/ir"
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

//go:noinline
func (v *moved) fastLoad() step {
	if !v.plain() {
		return nil
	}
	n := uint64(v.op.size)
	return func(w *warp, m uint32) {
		data, base := v.window(w, m)
		var addr [warpSize]uint64
		v.addr.all(w, base, &addr)
		if m == full && within(data, m, v.op.size, &addr) {
			v.loadFull(w, data, &addr)
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
		for l, a := range off {
			d := data[a:][:16]
			r0[l], r1[l] = binary.LittleEndian.Uint32(d), binary.LittleEndian.Uint32(d[4:])
			r2[l], r3[l] = binary.LittleEndian.Uint32(d[8:]), binary.LittleEndian.Uint32(d[12:])
		}
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

//go:noinline
func (v *moved) fastStore() step {
	if !v.plain() {
		return nil
	}
	n := uint64(v.op.size)
	return func(w *warp, m uint32) {
		data, base := v.window(w, m)
		var addr [warpSize]uint64
		v.addr.all(w, base, &addr)
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
