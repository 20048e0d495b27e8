package cpu

import (
	"slices"

	"github.com/wavelane/wavelane/internal/memplan"
	"github.com/wavelane/wavelane/internal/program"
)

// layOut gives temporaries offsets in the arena.
func (x *executable) layOut(settled []bool) {
	x.fullest = -1
	temporary := func(s program.Slot) bool { return !settled[s] }
	if slices.ContainsFunc(x.steps, func(c step) bool { return c.scratch > 0 || slices.ContainsFunc(c.results, temporary) }) {
		x.layOutArena(temporary)
	}
	for i := range x.steps {
		c := &x.steps[i]
		if len(c.results) > 0 {
			c.to = make([]allocation, len(c.results))
		}
		for k, s := range c.results {
			c.to[k] = x.allocations[s]
		}
	}
}

func (x *executable) layOutArena(temporary func(program.Slot) bool) {
	const line = 64 // a cache line
	d := memplan.Demand{Bytes: make([]int, len(x.p.Values)), Align: line, NoReuse: x.p.NoReuse, Steps: make([]memplan.Use, len(x.steps))}
	for i := range x.steps {
		c := &x.steps[i]
		u := &d.Steps[i]
		u.In, u.Scratch = c.in, []int{c.scratch}
		if c.skipped {
			continue
		}
		u.Out = c.results
		for k, s := range c.results {
			if temporary(s) {
				d.Bytes[s] = c.outs[k].Bytes()
			}
		}
		if over := c.overwrites(); over != nil {
			u.Over = [][]program.Slot{over}
		}
	}
	for _, i := range x.copies { // read after all steps
		d.After = append(d.After, x.p.Read[i])
	}
	a := d.Arena()
	x.arena = a.Peak
	if a.Step >= 0 {
		x.fullest = x.steps[a.Step].from
	}
	for s, at := range a.Values {
		x.allocations[s].offset = max(at, 0)
	}
	for i := range x.steps {
		c := &x.steps[i]
		c.at = max(a.Scratch[i][0], 0)
		if c.moves && a.Values[c.in[0]] >= 0 && a.Values[c.in[0]] == a.Values[c.results[0]] {
			c.phases = nil // it is there already
		}
	}
}

// overwrites lists operands whose memory the result may have.
func (c *step) overwrites() (over []program.Slot) {
	if len(c.outs) != 1 {
		return nil
	}
	for k, s := range c.in {
		if c.types[k].DType == c.outs[0].DType && c.over(s, c.types[k].Shape) {
			over = append(over, s)
		}
	}
	return over
}

// Memory implements program.Sized. Inputs that Start copies count among the memory of the device.
func (x *executable) Memory() program.Memory {
	m := program.Memory{Peak: x.arena, Step: x.fullest}
	m.Inputs, m.Results = x.p.Traffic()
	if x.detached() {
		m.Peak += m.Inputs
	}
	return m
}
