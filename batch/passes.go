package batch

import "github.com/wavelane/wavelane/internal/op"

// compiler is what rewrites of a program may know.
type compiler struct {
	device  Device
	options options
}

// passes rewrite a program before a device compiles it, in this order. None changes the program that it is given, and none
// renumbers values: a slot means what it meant when the batch was recorded.
var passes = []struct {
	name string
	run  func(*compiler, *op.Program) (*op.Program, error)
}{
	{"remove dead steps", removeDead},
}

// rewrite passes a program through all of them.
func (c *compiler) rewrite(p *op.Program) (*op.Program, error) {
	for _, pass := range passes {
		var err error
		if p, err = pass.run(c, p); err != nil {
			return nil, err
		}
	}
	return p, nil
}
