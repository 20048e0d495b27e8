// Package rewrite has the passes that make a shorter program of a recorded one before a device compiles it.
//
// A pass takes a program and returns one that computes the same results. It does not change its argument, and it does not renumber
// values: a slot means the same before and after, as long as a step still computes it.
package rewrite

import "github.com/wavelane/wavelane/internal/program"

// Options are what the passes depend on besides the program.
type Options struct {
	Device  program.Executor // that will run the program; nil if none will
	Unfused bool             // leaves out [Fuse]
}

// Program runs all passes: [Simplify], [RemoveDead], [Fuse].
func Program(p *program.Program, o Options) *program.Program {
	p = RemoveDead(Simplify(p))
	if !o.Unfused {
		p = Fuse(p, o.Device)
	}
	return p
}

// liveOut reports for every slot whether its value outlives the steps: because it is read or retained, or because it is the state of
// a tensor that the program updates.
func liveOut(p *program.Program) []bool {
	live := make([]bool, len(p.Values))
	for _, slots := range [][]program.Slot{p.Read, p.Keep} {
		for _, s := range slots {
			live[s] = true
		}
	}
	for s, at := range p.Storage() {
		live[s] = live[s] || at != program.Slot(s)
	}
	return live
}

// updated returns for every slot the step that updates it in place, or none.
func updated(p *program.Program) []int32 {
	by := make([]int32, len(p.Values))
	for i := range by {
		by[i] = none
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		for k := range s.Entry.Updates {
			by[s.In[k]] = int32(i)
		}
	}
	return by
}
