package sim

import (
	"github.com/wavelane/wavelane/ptx/internal/cost"
	"github.com/wavelane/wavelane/ptx/ir"
)

// instrCost is what an instruction counts as whenever it is executed: operations, and bytes of one lane.
type instrCost struct {
	ops            cost.Ops
	read, written  uint64
	space          ir.Space
	atomic, branch bool
}

// costOf is the cost of an instruction as its opcode tells it.
func costOf(in *ir.Instr) instrCost {
	c := instrCost{ops: cost.OpsOf(in)}
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
func (c *instrCost) add(to *Counts, lanes, n uint64) {
	if ops := lanes*c.ops.Lane + n*c.ops.Warp; c.ops.Integer {
		to.IntegerMatrixOps += ops
	} else {
		to.Flops += ops
	}
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
