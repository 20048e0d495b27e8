package batch

import "github.com/wavelane/wavelane/internal/program"

// fuse puts steps together so that values between them need not go through memory. What an entry of the catalogue does in one
// step becomes that entry, on every device; the rest becomes expressions, where the device agrees to each. Products and
// reductions take the single steps behind and before them first, since an expression of several results is none of theirs; then
// the others come together among themselves, and what they have become is offered once more.
func fuse(c *compiler, p *program.Program) (*program.Program, error) {
	if c.options.unfused || len(p.Steps) < 2 {
		return p, nil
	}
	g := newGraph(c, p)
	g.gateUp()
	g.activations()
	g.epilogues()
	g.prologues()
	g.addNorm()
	g.normProduct()
	g.groups()
	g.epilogues()
	g.prologues()
	return g.program(), nil
}
