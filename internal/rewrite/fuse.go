package rewrite

import "github.com/wavelane/wavelane/internal/program"

// Fuse joins steps so that the values between them need not go through memory. What one entry of the catalogue computes becomes that
// entry, on every device. Other steps become expressions, where the device agrees; without a device there are none.
//
// Products and reductions take the single steps around them first, since their epilogues and prologues have one result only. Then
// elementwise steps join each other, and the resulting expressions are offered to products and reductions again.
func Fuse(p *program.Program, device program.Executor) *program.Program {
	if len(p.Steps) < 2 {
		return p
	}
	g := newGraph(p, device)
	g.gateUp()
	g.activations()
	g.epilogues()
	g.prologues()
	g.addNorm()
	g.normProduct()
	g.groups()
	g.epilogues()
	g.prologues()
	return g.program()
}
