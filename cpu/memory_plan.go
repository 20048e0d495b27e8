package cpu

import (
	"slices"

	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
)

// allocate gives every value its memory and adds the copies that results need. A retained output is computed in its tensor, a
// value that is read in its destination; further destinations are copies.
func (x *executable) allocate() error {
	const line = 64 // a cache line
	p, l := x.p, x.layout
	main := func(i int) *step { return &x.steps[x.ends[i]-1] } // after the copies of what it updates
	err := l.Allocate(&device.Allocator{Align: line, InHost: true, InResults: !x.detached(),
		Room: func(bytes int) (int, error) { return bytes, nil },
		Scratch: func(i int) []int {
			if n := main(i).scratch; n > 0 {
				return []int{n}
			}
			return nil
		},
		Over: func(i int, _ []program.Slot) [][]program.Slot { return main(i).overwrites() },
	})
	if err != nil {
		return err
	}
	for i, at := range l.Scratch {
		if len(at) > 0 {
			main(i).at = at[0]
		}
	}
	for i := range x.steps {
		c := &x.steps[i]
		if c.moves && l.Values[c.in[0]] == l.Values[c.results[0]] {
			c.phases = nil // it is there already
		}
		c.to = make([]device.Allocation, len(c.results))
		for k, s := range c.results {
			c.to[k] = l.Values[s]
		}
	}
	for i, s := range p.Keep {
		if l.Values[s].Kind == device.InHost {
			x.copyTo(l.Storage[s], device.Allocation{Kind: device.InRetained, Index: i})
		}
	}
	for i, s := range p.Read {
		to := device.Allocation{Kind: device.InResult, Index: i}
		switch {
		case x.detached():
			x.copies = append(x.copies, i)
		case l.Values[s] != to:
			x.copyTo(l.Storage[s], to)
		}
	}
	x.last = slices.Repeat([]int{-1}, len(p.Values))
	for i := range x.steps {
		for _, s := range x.steps[i].in {
			x.last[s] = i
		}
	}
	for _, i := range x.copies { // read after all steps
		x.last[l.Storage[p.Read[i]]] = len(x.steps)
	}
	return nil
}

// overwrites lists operands whose memory the result may have.
func (c *step) overwrites() [][]program.Slot {
	var over []program.Slot
	for k, s := range c.in {
		if len(c.outs) == 1 && c.types[k].DType == c.outs[0].DType && c.over(s, c.types[k].Shape) {
			over = append(over, s)
		}
	}
	return [][]program.Slot{over}
}

// Memory implements program.Executable. Inputs that Start copies count as memory of the device.
func (x *executable) Memory() program.Memory {
	m := x.layout.Memory()
	if x.detached() {
		m.Peak += m.Inputs
	}
	return m
}

// Launches implements program.Executable.
func (x *executable) Launches() [][]program.Launch { return nil }
