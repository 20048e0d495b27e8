package batch

import "github.com/wavelane/wavelane/internal/program"

// compiler is what rewrites of a program may know.
type compiler struct {
	device  Device
	options options
	// pinned are values that are looked at when the program runs, though it gives them to nobody: they are computed and lie in
	// memory under their own slots, as those that are read and kept do. Nil pins none.
	pinned map[program.Slot]bool
}

// passes rewrite a program before a device compiles it, in this order. None changes the program that it is given, and none
// renumbers values: a slot means what it meant when the batch was recorded, if a step still computes it.
var passes = []struct {
	name string
	run  func(*compiler, *program.Program) (*program.Program, error)
}{
	{"simplify", simplify},
	{"remove dead steps", removeDead},
	{"fuse", fuse},
}

// rewrite passes a program through all of them.
func (c *compiler) rewrite(p *program.Program) (*program.Program, error) {
	for _, pass := range passes {
		var err error
		if p, err = pass.run(c, p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// asked tells for every slot whether its value is wanted for itself: to be read, kept or looked at, or since it is the state of a
// tensor that the program changes.
func (c *compiler) asked(p *program.Program) []bool {
	asked := make([]bool, len(p.Values))
	for _, slots := range [][]program.Slot{p.Read, p.Keep} {
		for _, s := range slots {
			asked[s] = true
		}
	}
	for s := range c.pinned {
		asked[s] = true
	}
	for s, home := range p.Homes() {
		asked[s] = asked[s] || home != program.Slot(s)
	}
	return asked
}

// updated tells for every slot which step updates it in place, −1 for none.
func updated(p *program.Program) []int32 {
	by := make([]int32, len(p.Values))
	for i := range by {
		by[i] = -1
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		for k := range s.Entry.Updates {
			by[s.In[k]] = int32(i)
		}
	}
	return by
}
