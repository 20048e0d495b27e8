package sim

import (
	"slices"
	"strconv"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

// tensorMove is a compiled tcgen05.ld or tcgen05.st.
type tensorMove struct {
	addr   address
	refs   []ref
	cells  [][warpSize]tensorCell // by register
	packed bool                   // two halves of neighbouring columns in a register
	lanes  int                    // that a warp touches
	first  int                    // and columns, from its address on
	most   int
}

// tensorCell is a place in tensor memory relative to an address.
type tensorCell struct{ lane, column int }

// compileTensorMove compiles both: {registers}, [address] and the other way round, with the distance of the second half of 16x32bx2
// after the address.
func compileTensorMove(c *compiler, in *ir.Instr) (*tensorMove, error) {
	at, regs := 1, 0
	if in.Op == "tcgen05.st" {
		at, regs = 0, len(in.Args)-1
	}
	shape, count := "", 0
	for _, m := range in.Mods {
		switch {
		case strings.HasPrefix(string(m), "x"):
			count, _ = strconv.Atoi(string(m[1:]))
		case m[0] == '1' || m[0] == '3':
			shape = string(m)
		}
	}
	v := &tensorMove{packed: in.Has("pack::16b") || in.Has("unpack::16b"), lanes: warpSize / 2}
	var err error
	if v.addr, err = c.addr(in, &in.Args[at]); err != nil {
		return nil, err
	}
	if v.refs, err = c.list(in, &in.Args[regs], ir.B32); err != nil {
		return nil, err
	}
	half := 0
	if shape == "16x32bx2" {
		half = int(int64(in.Args[at+1].Bits))
	}
	place := map[string]func(reg, t int) tensorCell{
		"32x32b":  func(reg, t int) tensorCell { return tensorCell{t, reg} },
		"16x64b":  func(reg, t int) tensorCell { return tensorCell{t/4 + t%4/2*8, 2*reg + t%2} },
		"16x128b": func(reg, t int) tensorCell { return tensorCell{t/4 + reg%2*8, reg/2*4 + t%4} },
		"16x256b": func(reg, t int) tensorCell { return tensorCell{t/4 + reg%4/2*8, reg/4*8 + t%4*2 + reg%2} },
		"16x32bx2": func(reg, t int) tensorCell {
			return tensorCell{t % 16, reg + t/16*half}
		},
	}[shape]
	if place == nil || count == 0 || v.packed && shape != "32x32b" && shape != "16x64b" && shape != "16x32bx2" {
		return nil, c.unsupported(in)
	}
	if shape == "32x32b" {
		v.lanes = warpSize
	}
	v.cells = make([][warpSize]tensorCell, len(v.refs))
	for reg := range v.refs {
		for t := range warpSize {
			cell := place(reg, t)
			if v.packed {
				if shape == "16x64b" { // columns go by pairs
					cell.column = 4*reg + t%2*2
				} else {
					cell.column += reg
				}
			}
			v.cells[reg][t] = cell
			last := cell.column
			if v.packed {
				last++
			}
			v.first, v.most = min(v.first, cell.column), max(v.most, last)
		}
	}
	if len(v.refs) == 0 {
		return nil, c.errorf(in, compute.ErrArgument, "registers are missing")
	}
	return v, nil
}

// area is what the warp touches: lanes of its quarter of tensor memory.
func (v *tensorMove) area(w *warp) (a tensorArea, lane, column int) {
	addr, same := uint64(0), true
	for l := range warpSize {
		at := v.addr.of(w, l)
		same = same && (l == 0 || at == addr)
		addr = at
	}
	lane, column = int(addr>>16&0xffff), int(addr&0xffff)
	quarter := w.index % warpgroup * warpSize
	if !same {
		w.fault(BadOperand, 0, 0, addr, "the address in tensor memory differs between lanes")
	}
	if lane < quarter || lane+v.lanes > quarter+warpSize || (lane-quarter)%16 != 0 {
		w.fault(BadOperand, 0, 0, addr, "warp %d accesses lanes from %d on, it has those from %d to %d", w.index, lane, quarter, quarter+warpSize-1)
	}
	return w.area(0, w.block, addr+uint64(v.first), lanesFrom(lane, v.lanes), v.most-v.first+1), lane, column
}

func compileTensorLoad(c *compiler, in *ir.Instr) (step, error) {
	v, err := compileTensorMove(c, in)
	if err != nil {
		return nil, err
	}
	return c.warpwide(func(w *warp, _ uint32) {
		a, lane, column := v.area(w)
		w.settleTensor(0, &a, false, false)
		t := &w.block.tensor
		for reg, r := range v.refs {
			lost := uint32(0)
			for l := range warpSize {
				cell := v.cells[reg][l]
				at, col := lane+cell.lane, column+cell.column
				x := t.get(at, col)
				undefined := !t.has(at, col)
				if v.packed {
					x = x&0xffff | t.get(at, col+1)<<16
					undefined = undefined || !t.has(at, col+1)
				}
				w.set(r, l, uint64(x))
				if undefined {
					lost |= 1 << l
				}
			}
			if w.def != nil {
				w.def[r.bank][r.i] = ^lost
				for m := lost; m != 0; m &= m - 1 {
					w.setOrigin([]ref{r}, first(m), &origin{what: "tensor memory that nobody has written", by: w.access(first(m))})
				}
			}
		}
	}), nil
}

func (t *tensorMemory) has(lane, column int) bool {
	i := column*tensorLanes + lane
	return t.written[i/32]>>(i%32)&1 == 1
}

func compileTensorStore(c *compiler, in *ir.Instr) (step, error) {
	v, err := compileTensorMove(c, in)
	if err != nil {
		return nil, err
	}
	return c.warpwide(func(w *warp, _ uint32) {
		a, lane, column := v.area(w)
		w.settleTensor(0, &a, true, false)
		t := &w.block.tensor
		for reg, r := range v.refs {
			for l := range warpSize {
				cell := v.cells[reg][l]
				at, col := lane+cell.lane, column+cell.column
				x := uint32(w.get(r, l))
				if v.packed {
					t.set(at, col+1, x>>16)
					x &= 0xffff
				}
				t.set(at, col, x)
				if w.def != nil && w.def[r.bank][r.i]>>l&1 == 0 {
					t.unset(at, col)
				}
			}
		}
		if w.checksAsync() {
			t.stores = append(t.stores, &tensorStore{w, w.at, a})
		}
	}), nil
}

func (t *tensorMemory) unset(lane, column int) {
	i := column*tensorLanes + lane
	t.written[i/32] &^= 1 << (i % 32)
}

// compileTensorWait compiles tcgen05.wait::ld and tcgen05.wait::st. Registers that are loaded may be read before the former: the machine waits
// for them by itself, ptxas makes no instruction of it, and what Triton makes does so.
func compileTensorWait(c *compiler, in *ir.Instr) (step, error) {
	if in.Op == "tcgen05.wait::ld" {
		return c.warpwide(func(*warp, uint32) {}), nil
	}
	return c.warpwide(func(w *warp, _ uint32) {
		t := &w.block.tensor
		t.stores = slices.DeleteFunc(t.stores, func(s *tensorStore) bool { return s.w == w })
	}), nil
}
