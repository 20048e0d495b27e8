package sim

import (
	"math/bits"

	"github.com/wavelane/wavelane/ptx/internal/cost"
	"github.com/wavelane/wavelane/ptx/ir"
)

// counted wraps the step of an instruction in a program compiled with Config.Counters: what depends on addresses and
// masks is counted as it runs. The rest follows from how often an instruction ran; see [instrCost].
func (c *compiler) counted(in *ir.Instr, s step) step {
	pc := len(c.prog.code) - 1
	if in.Kind() == ir.Branch {
		return func(w *warp, m uint32) {
			if m != 0 && m != w.act {
				w.work.extra[pc].Diverged++
			}
			s(w, m)
		}
	}
	size := in.Type(0).Size() * in.Width()
	copied := false
	lanes := full
	switch in.Op {
	case "ld", "ldu", "st", "atom", "red":
	case "ldmatrix", "stmatrix":
		size, copied = 16, true
		switch in.First(ir.X1, ir.X2) {
		case ir.X1:
			lanes = 0xff
		case ir.X2:
			lanes = 0xffff
		}
	case "cp.async":
		if len(in.Args) < 3 {
			return s
		}
		size, copied = int(in.Args[2].Bits), true
	default:
		return s
	}
	var addrs []address
	var spaces []ir.Space
	var written []bool
	for i := range in.Args {
		if in.Args[i].Kind != ir.AddrOperand {
			continue
		}
		a, err := c.addr(in, &in.Args[i])
		if err != nil {
			return s
		}
		addrs = append(addrs, a)
		space := in.Space()
		if in.Op == "cp.async" {
			space = [2]ir.Space{ir.SharedSpace, ir.GlobalSpace}[min(1, len(spaces))]
		}
		spaces = append(spaces, space)
		written = append(written, in.Op == "stmatrix" || in.Op == "cp.async" && len(written) == 0)
	}
	return func(w *warp, m uint32) {
		k := &w.work.extra[pc]
		for i := range addrs {
			var at [warpSize]uint64
			var inShared, inGlobal uint32
			for l := m & lanes; l != 0; l &= l - 1 {
				lane := first(l)
				at[lane] = addrs[i].of(w, lane)
				switch space := spaces[i]; {
				case space == ir.SharedSpace || space == ir.SharedClusterSpace,
					space == ir.NoSpace && at[lane]/windowSize == sharedWindow/windowSize:
					inShared |= 1 << lane
				case space == ir.GlobalSpace, space == ir.NoSpace && at[lane] >= globalWindow:
					inGlobal |= 1 << lane
				}
			}
			k.shared(&at, inShared, size)
			k.global(&at, inGlobal, size)
			if copied {
				k.moved(inShared, inGlobal, size, written[i])
			}
		}
		s(w, m)
	}
}

// shared counts a request of lanes in shared memory.
func (c *Counts) shared(at *[warpSize]uint64, lanes uint32, size int) {
	if lanes == 0 {
		return
	}
	_, turns, ideal := cost.Banks(at, lanes, size)
	c.SharedRequests++
	c.Wavefronts += uint64(turns)
	c.Conflicts += uint64(turns - ideal)
}

// global counts a request of lanes in global memory.
func (c *Counts) global(at *[warpSize]uint64, lanes uint32, size int) {
	if lanes == 0 {
		return
	}
	touched, ideal := cost.Sectors(at, lanes, size)
	c.GlobalRequests++
	c.Sectors += uint64(touched)
	c.SectorsIdeal += uint64(ideal)
}

// moved counts the bytes of instructions whose opcode does not tell them.
func (c *Counts) moved(inShared, inGlobal uint32, size int, written bool) {
	n := func(lanes uint32) uint64 { return uint64(bits.OnesCount32(lanes) * size) }
	if written {
		c.SharedWritten += n(inShared)
		c.GlobalWritten += n(inGlobal)
		return
	}
	c.SharedRead += n(inShared)
	c.GlobalRead += n(inGlobal)
}
