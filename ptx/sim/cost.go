package sim

import "github.com/wavelane/wavelane/ptx/ir"

// cost is what an instruction counts as whenever it is executed: flops and bytes of one lane, flops of the warp.
type cost struct {
	flops, warpFlops uint64
	read, written    uint64
	space            ir.Space
	atomic, branch   bool
}

// costOf is the cost of an instruction as its opcode tells it.
func costOf(in *ir.Instr) cost {
	var c cost
	c.flops, c.warpFlops = flops(in)
	bytes := uint64(in.Type(0).Size() * in.Width())
	c.space = in.Space()
	switch in.Kind() {
	case ir.Load:
		c.read = bytes
	case ir.Store:
		c.written = bytes
	case ir.Atomic:
		c.read, c.written, c.atomic = bytes, bytes, true
	case ir.Branch:
		c.branch = true
	}
	return c
}

// add counts n executions by so many lanes in all.
func (c *cost) add(to *Counts, lanes, n uint64) {
	to.Flops += lanes*c.flops + n*c.warpFlops
	switch c.space {
	case ir.GlobalSpace, ir.NoSpace: // generic addresses count as global
		to.GlobalRead += lanes * c.read
		to.GlobalWritten += lanes * c.written
	case ir.SharedSpace, ir.SharedClusterSpace:
		to.SharedRead += lanes * c.read
		to.SharedWritten += lanes * c.written
	case ir.LocalSpace:
		to.LocalBytes += lanes * (c.read + c.written)
	}
	if c.atomic {
		to.Atomics += lanes
	}
	if c.branch {
		to.Branches += n
	}
}
