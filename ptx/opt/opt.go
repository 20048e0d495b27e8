// Package opt rewrites PTX into shorter PTX that computes the same, bit for bit.
//
// What it may rely on is what PTX says: a register keeps its value until it is written, a guarded write leaves it where the
// guard is false, memory that others may write is read where the program reads it. No pass moves an instruction: they
// replace, copy (when loops are unrolled) and delete. Volatile, atomic and ordered accesses, barriers and all that lanes do
// together stay as they are, and registers that wgmma uses while it runs are left alone.
//
// Two liberties are taken, the ones that ptxas takes too: a weak load whose result nobody reads may go, and with it the fault
// that it might have caused; and with [Options.Contract] mul and add without rounding modifiers become fma.
package opt

import (
	"fmt"
	"math/bits"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/flow"
	"github.com/wavelane/wavelane/ptx/ir"
)

// Pass is a set of passes.
type Pass uint

// The passes.
const (
	// Fold computes what is constant, and puts constants in the places of registers. It computes nothing that is approximate.
	Fold Pass = 1 << iota
	// Copies lets readers of a copy read the original.
	Copies
	// Common computes once what is computed twice, and loads once what cannot have changed.
	Common
	// Strength replaces instructions by cheaper ones: shifts for multiplications, multiplications for divisions.
	Strength
	// Contraction makes fma of mul and add where both leave their rounding open. It takes Options.Contract besides.
	Contraction
	// Addresses adds constants in the addresses of loads and stores instead of before them.
	Addresses
	// Branches decides branches whose guards are constant, and shortens ways.
	Branches
	// Unroll copies the bodies of loops for which a .pragma "unroll" or Options.Unroll asks.
	Unroll
	// Dead deletes what nobody reads and what control cannot come to.
	Dead

	// All is every pass.
	All = Dead<<1 - 1
)

var passNames = [...]string{"fold", "copies", "common", "strength", "contraction", "addresses", "branches", "unroll", "dead"}

// String is the names of the passes in the set, joined by +.
func (p Pass) String() string {
	s := ""
	for ; p&All != 0; p &= p - 1 {
		if s != "" {
			s += "+"
		}
		s += passNames[bits.TrailingZeros(uint(p))]
	}
	return s
}

// Options say what to do.
type Options struct {
	Passes Pass
	// Contract allows mul and add without a rounding modifier to become one fma, which rounds once: results change within what PTX
	// allows. An explicit .rn forbids it.
	Contract bool
	// Unroll is the number of iterations that each innermost loop makes before it comes back, where no pragma says otherwise;
	// loops with a constant number of iterations up to it vanish. 0 or 1: only where a pragma asks.
	//
	// A .pragma "unroll N" or "unroll" (until the loop vanishes) after the loop's first label asks for one loop, "nounroll"
	// forbids it. Requests are taken out, since they mean nothing to ptxas; what was unrolled in part gets a "nounroll".
	Unroll int
	// MaxUnrolled is the largest number of instructions that unrolling a loop may make; 0 means 8192.
	MaxUnrolled int
}

// PassStats is what one pass did.
type PassStats struct {
	Pass    string `json:"pass"`
	Changed int    `json:"changed"` // instructions rewritten
	Removed int    `json:"removed"` // instructions deleted
	Added   int    `json:"added"`   // instructions made
}

// Unrolled is what became of a request to unroll a loop.
type Unrolled struct {
	Function string `json:"function"`
	Loop     string `json:"loop"` // its label
	Pos      string `json:"pos,omitempty"`
	Copies   int    `json:"copies"`           // of the body; 0 if it was left as it was
	Full     bool   `json:"full"`             // no loop is left
	Reason   string `json:"reason,omitempty"` // why it was left as it was
}

// Stats is what Run did.
type Stats struct {
	Before int         `json:"before"` // instructions, without labels and directives
	After  int         `json:"after"`
	Passes []PassStats `json:"passes"` // in the order of the constants; only those that were chosen
	Loops  []Unrolled  `json:"loops,omitempty"`
}

// maxRounds bounds the rounds in which passes make work for each other. Each round shortens something, so that it is not
// reached.
const maxRounds = 100

// Run returns a module with its functions rewritten; m is left as it is. Running it again changes nothing. The registers of
// the result are in the order in which its body mentions them. The error, for an unknown pass or a negative count, wraps
// compute.ErrArgument.
func Run(m *ir.Module, o Options) (*ir.Module, Stats, error) {
	if o.Passes&^All != 0 || o.Unroll < 0 || o.MaxUnrolled < 0 {
		return nil, Stats{}, fmt.Errorf("ptx/opt: options %+v: %w", o, compute.ErrArgument)
	}
	if m == nil {
		return nil, Stats{}, fmt.Errorf("ptx/opt: no module: %w", compute.ErrArgument)
	}
	if o.MaxUnrolled == 0 {
		o.MaxUnrolled = 8192
	}
	var s Stats
	for i, name := range passNames {
		if o.Passes>>i&1 != 0 {
			s.Passes = append(s.Passes, PassStats{Pass: name})
		}
	}
	m = m.Clone()
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		u := &unit{f: f, o: o, stats: &s}
		s.Before += instructions(f)
		u.run()
		s.After += instructions(f)
		flow.Renumber(f)
	}
	return m, s, nil
}

// unit is one function on its way through the passes.
type unit struct {
	f     *ir.Func
	o     Options
	stats *Stats
	names map[string]bool // of registers and labels, once needed
	next  map[string]int  // number of the next register with a stem
}

func (u *unit) run() {
	u.splitWebs()
	u.pass(Branches, (*unit).branches)
	if u.o.Passes&Unroll != 0 {
		// Bounds and starts must be constants for the number of iterations to be one.
		u.round()
		u.pass(Unroll, (*unit).unroll)
	}
	for range maxRounds {
		if u.round() == 0 {
			break
		}
	}
	if u.o.Contract && u.pass(Contraction, (*unit).contract) > 0 {
		u.round()
	}
}

// round runs the passes that make work for each other once and returns the number of changes.
func (u *unit) round() int {
	u.splitWebs()
	n := u.pass(Fold, (*unit).fold)
	n += u.pass(Strength, (*unit).strength)
	n += u.pass(Copies, (*unit).copies)
	n += u.pass(Common, (*unit).common)
	n += u.pass(Addresses, (*unit).addresses)
	n += u.pass(Branches, (*unit).branches)
	n += u.pass(Dead, (*unit).dead)
	return n
}

// pass runs one pass, if it is chosen, and counts. f returns the number of changes.
func (u *unit) pass(p Pass, f func(*unit) int) int {
	if u.o.Passes&p == 0 {
		return 0
	}
	before := instructions(u.f)
	n := f(u)
	s := &u.stats.Passes[bits.OnesCount(uint(u.o.Passes&(p-1)))]
	switch gone := before - instructions(u.f); {
	case gone > 0:
		s.Removed += gone
		s.Changed += max(0, n-gone)
	default:
		s.Added -= gone
		s.Changed += n
	}
	return n
}

// instructions counts them, without labels and directives.
func instructions(f *ir.Func) int {
	n := 0
	for i := range f.Body {
		if f.Body[i].Kind() != ir.Directive {
			n++
		}
	}
	return n
}
