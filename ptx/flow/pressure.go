package flow

import (
	"strings"

	"github.com/wavelane/wavelane/ptx/ir"
)

// Peak is the most registers of a kind that are live at once, and where: before or after an instruction, with its results.
type Peak struct {
	Live int `json:"live"`
	// Instr is the first such instruction, an index into the body; -1 if Live is 0.
	Instr int    `json:"instr"`
	Pos   string `json:"pos,omitempty"`  // of that instruction, as far as known
	Text  string `json:"text,omitempty"` // that instruction
}

// Pressure is the most registers live at once, for each width and together. The register file has registers of 32 bits: wider
// values take several, narrower ones take one each; predicates have a file of their own.
type Pressure struct {
	Pred  Peak `json:"pred"`
	B16   Peak `json:"b16"` // and narrower
	B32   Peak `json:"b32"`
	B64   Peak `json:"b64"`
	B128  Peak `json:"b128"`
	Units Peak `json:"units"` // of 32 bits, all but predicates
}

// Units is the number of 32-bit registers that a value of the type takes: 0 for a predicate.
func Units(t ir.Type) int {
	switch w := width(t); w {
	case 0, 1:
		return 0
	default:
		return (w + 31) / 32
	}
}

// width is the number of bits in the type, 0 if it is none.
func width(t ir.Type) int {
	if t.String() == "none" {
		return 0
	}
	return t.Bits()
}

// Pressure is the register pressure. ptxas takes at least about that many registers (this package's test allows it 4 less),
// but often more: it moves loads up to hide their latency and unrolls loops where that costs no occupancy. It may also take
// less, where it computes addresses anew or shares and shortens them.
func (l *Liveness) Pressure() Pressure {
	g := l.g
	var p Pressure
	peaks := []*Peak{&p.Pred, &p.B16, &p.B32, &p.B64, &p.B128, &p.Units}
	for _, k := range peaks {
		k.Instr = -1
	}
	classes := make([]int, g.regs)
	for r := 1; r < len(g.Func.Regs); r++ {
		switch w := width(g.Func.Regs[r].Type); {
		case w == 0:
			classes[r] = -1
		case w > 64:
			classes[r] = 4
		case w > 32:
			classes[r] = 3
		case w > 16:
			classes[r] = 2
		case w > 1:
			classes[r] = 1
		}
	}
	count := func(s Set) (n [6]int) {
		s.Each(func(r ir.Reg) {
			if int(r) < len(g.Func.Regs) && classes[r] >= 0 {
				n[classes[r]]++
				n[5] += Units(g.Func.Regs[r].Type)
			}
		})
		return n
	}
	for b := range g.Blocks {
		l.Walk(b, func(i int, before, after Set) {
			if g.order[b] < 0 || g.Func.Body[i].Kind() == ir.Directive {
				return
			}
			pre := count(before)
			g.Writes(i, after.Add)
			post := count(after)
			for c, k := range peaks {
				// The first instruction wins although the walk goes backwards through a block.
				if n := max(pre[c], post[c]); n > k.Live || n > 0 && n == k.Live && g.blockOf[k.Instr] == b {
					k.Live, k.Instr = n, i
				}
			}
		})
	}
	for _, k := range peaks {
		if k.Instr >= 0 {
			k.Pos = g.Func.Body[k.Instr].Pos.String()
			k.Text = strings.TrimSuffix(g.Func.InstrString(&g.Func.Body[k.Instr]), ";")
		}
	}
	return p
}

// Report is what a reader wants to know about a function's flow.
type Report struct {
	Function     string   `json:"function"`
	Instructions int      `json:"instructions"` // without labels and directives
	Blocks       int      `json:"blocks"`
	Unreachable  int      `json:"unreachable_instructions"`
	Loops        int      `json:"loops"`
	LoopDepth    int      `json:"loop_depth"` // of the innermost one
	Irreducible  bool     `json:"irreducible"`
	Endless      bool     `json:"endless"` // there are places from which no way leads out
	Pressure     Pressure `json:"pressure"`
}

// Report describes the function.
func (g *Graph) Report() Report {
	r := Report{Function: g.Func.Name, Blocks: len(g.Blocks), Loops: len(g.Loops), Irreducible: len(g.Irreducible) > 0,
		Endless: len(g.Endless) > 0, Pressure: g.Liveness().Pressure()}
	for i := range g.Func.Body {
		if g.Func.Body[i].Kind() == ir.Directive {
			continue
		}
		r.Instructions++
		if !g.Reachable(g.blockOf[i]) {
			r.Unreachable++
		}
	}
	for i := range g.Loops {
		r.LoopDepth = max(r.LoopDepth, g.Loops[i].Depth)
	}
	return r
}
