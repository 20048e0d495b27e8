package dispatch

import (
	"bytes"
	"fmt"
	"go/format"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

// Move is a link of a chain that computes nothing.
type Move struct {
	Name string
	Doc  string
	Kind MoveKind
	// Group is that of the registers that it moves to, or from.
	Group int
}

// MoveKind is what a move does.
type MoveKind uint8

// Kinds of moves.
const (
	Load   MoveKind = iota // elements of an array
	Store                  // into an array
	Fill                   // one number
	Recall                 // what Keep stored
	Keep                   // into memory for as many elements as registers hold
	Copy                   // group 0
	Again                  // goes back to the first link until all elements are done
)

// Moves lists them in order.
var Moves = []Move{
	{"LoadA", "first operand: elements of an array", Load, 0},
	{"LoadB", "second operand", Load, 1},
	{"LoadC", "third operand", Load, 2},
	{"FillA", "first operand: one number", Fill, 0},
	{"FillB", "second operand", Fill, 1},
	{"FillC", "third operand", Fill, 2},
	{"RecallA", "first operand: what LinkKeep left", Recall, 0},
	{"RecallB", "second operand", Recall, 1},
	{"RecallC", "third operand", Recall, 2},
	{"CopyB", "second operand: the last result", Copy, 1},
	{"CopyC", "third operand", Copy, 2},
	{"Store", "the last result becomes elements of an array", Store, 0},
	{"Keep", "leaves the last result for later links, in memory for ChainWidth elements", Keep, 0},
	{"Again", "goes back to the first link, or ends", Again, 0},
}

// ChainFiles returns the Go files that name the links, by their path in internal/simd.
func ChainFiles(kernels []*ir.Kernel) (map[string][]byte, error) {
	var w bytes.Buffer
	w.WriteString(header + "package kernels\n\n// Links: those that move values, then those that compute kernels.\nconst (\n")
	w.WriteString("noLink LinkOp = iota\n")
	for _, m := range Moves {
		fmt.Fprintf(&w, "Link%s // %s\n", m.Name, m.Doc)
	}
	for _, k := range kernels {
		fmt.Fprintf(&w, "Link%s\n", k.Name)
	}
	w.WriteString("linkOps\n)\n")
	names := bytes.NewBufferString(header + "package kernels\n\n// linkNames are the links that compute, by kernel.\n" +
		"var linkNames = map[string]LinkOp{\n")
	for _, k := range kernels {
		fmt.Fprintf(names, "%q: Link%s,\n", k.Name, k.Name)
	}
	names.WriteString("}\n")
	files := map[string][]byte{}
	for name, source := range map[string][]byte{"chain_gen.go": w.Bytes(), "chain_gen_test.go": names.Bytes()} {
		text, err := format.Source(source)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files["kernels/"+name] = text
	}
	return files, nil
}
