package x86

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	avo "github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
	"github.com/mmcloughlin/avo/reg"

	"github.com/wavelane/wavelane/internal/simd/asmgen/dispatch"
	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
	"github.com/wavelane/wavelane/internal/simd/asmgen/kernels"
)

// A chain is direct-threaded code (Bell, "Threaded code", 1973): each link is a piece of code that ends by jumping to the next
// one. Between links values are in three groups of vector registers, the last of the set's: group 0 is the result of a link and
// its first operand, groups 1 and 2 are its second and third.
//
// Registers: the list of links, the link at hand, where it loads or stores, and the address of the next.
var (
	gpFirst = gpY
	gpLink  = reg.RSI
	gpAt    = reg.RDX
	gpNext  = reg.RBX
)

// Offsets in a Link of package kernels.
const (
	linkSize    = 24
	linkAt      = 8
	linkNumbers = 16
)

// chainVectors is the number of registers in a group.
func (s *set) chainVectors() int { return s.regs / 4 }

// chainFiles write the links for the sets whose instructions have a register for the result.
func chainFiles() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, s := range sets {
		if !s.vex {
			continue
		}
		text, err := chainFile(s)
		if err != nil {
			return nil, fmt.Errorf("x86 %s: %w", s.name, err)
		}
		files["kernels/chain_"+strings.ToLower(s.name)+"_gen_amd64.s"] = text
	}
	return files, nil
}

func chainFile(s *set) ([]byte, error) {
	c := build.NewContext()
	w := &linkWriter{&writer{c: c, set: s, table: &table{set: s, index: map[uint32]int{}}}}
	var names []string
	for _, m := range dispatch.Moves {
		names = append(names, w.begin(m.Name))
		w.move(m)
	}
	for _, k := range kernels.Links {
		names = append(names, w.begin(k.Name))
		if err := w.kernel(k); err != nil {
			return nil, err
		}
	}
	w.table.write(c)
	file, err := c.Result()
	if err == nil {
		err = pass.Compile.Execute(file)
	}
	if err != nil {
		return nil, err
	}
	text, err := printer.NewGoAsm(printer.Config{Name: "internal/simd/asmgen", Pkg: "kernels"}).Print(file)
	if err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(text)
	fmt.Fprintln(b)
	for i, name := range names {
		fmt.Fprintf(b, "DATA ·links%s+%d(SB)/8, $·%s(SB)\n", s.name, 8*(i+1), name) // 0 is no link
	}
	fmt.Fprintf(b, "GLOBL ·links%s(SB), RODATA, $%d\n", s.name, 8*(len(names)+1))
	return b.Bytes(), nil
}

type linkWriter struct{ *writer }

// begin begins a link's code, a function that only other links jump to.
func (w *linkWriter) begin(name string) string {
	name = "link" + name + w.name + "<>"
	w.c.Function(name)
	w.c.Attributes(attr.NOSPLIT | attr.NOFRAME)
	w.c.SignatureExpr("func()")
	w.labels = 0
	return name
}

// next goes to the next link.
func (w *linkWriter) next() {
	w.c.MOVQ(operand.Mem{Base: gpLink, Disp: linkSize}, gpNext)
	w.c.ADDQ(operand.Imm(linkSize), gpLink)
	w.jump()
}

func (w *linkWriter) jump() {
	w.c.Instruction(&avo.Instruction{Opcode: "JMP", Operands: []operand.Op{gpNext}, Inputs: []operand.Op{gpNext}, IsTerminal: true})
}

// chained is a register of a group, as [newFunction] deals them out.
func (s *set) chained(group, copy int) int { return s.regs - 1 - group*s.chainVectors() - copy }

// move writes a link that computes nothing.
func (w *linkWriter) move(m dispatch.Move) {
	if m.Kind == dispatch.Again {
		done := w.label("done")
		w.c.ADDQ(operand.U32(w.chainVectors()*w.lanes), gpIndex)
		w.c.CMPQ(gpIndex, gpN)
		w.c.JGE(operand.LabelRef(done))
		w.c.MOVQ(gpFirst, gpLink)
		w.c.MOVQ(operand.Mem{Base: gpLink}, gpNext)
		w.jump()
		w.c.Label(done)
		w.c.VZEROUPPER()
		w.c.RET()
		return
	}
	if m.Kind != dispatch.Copy {
		w.c.MOVQ(operand.Mem{Base: gpLink, Disp: linkAt}, gpAt)
	}
	for i := range w.chainVectors() {
		v := w.vec(w.chained(m.Group, i))
		element := operand.Mem{Base: gpAt, Index: gpIndex, Scale: 4, Disp: i * w.bytes()}
		slot := operand.Mem{Base: gpAt, Disp: i * w.bytes()}
		switch m.Kind {
		case dispatch.Load:
			const ahead = 2048 // bytes, beyond what the processor asks for by itself
			if i*w.bytes()%64 == 0 {
				w.c.PREFETCHT0(element.Offset(ahead))
			}
			w.c.VMOVUPS(element, v)
		case dispatch.Store:
			w.c.VMOVUPS(v, element)
		case dispatch.Recall:
			w.c.VMOVUPS(slot, v)
		case dispatch.Keep:
			w.c.VMOVUPS(v, slot)
		case dispatch.Fill:
			if i == 0 {
				w.c.VBROADCASTSS(operand.Mem{Base: gpAt}, v)
			} else {
				w.c.VMOVAPS(w.vec(w.chained(m.Group, 0)), v)
			}
		case dispatch.Copy:
			w.c.VMOVAPS(w.vec(w.chained(0, i)), v)
		}
	}
	w.next()
}

// kernel writes a link that computes the kernel's result.
func (w *linkWriter) kernel(k *ir.Kernel) error {
	f := w.set.link(k)
	if f == nil {
		return fmt.Errorf("%s leaves a link too few registers", k.Name)
	}
	w.params = nil
	for i := range k.Params {
		w.params = append(w.params, operand.Mem{Base: gpLink, Disp: linkNumbers + 4*i})
	}
	sections := f.sections()
	main, prologue := sections[0], sections[3]
	for _, v := range f.values {
		if r, ok := f.pins[v]; ok && v.kind == parameter {
			w.broadcast(w.params[v.index], r)
		}
	}
	f.allocate(w.writer, prologue)
	for _, v := range f.hoist {
		w.constant(v.bits, main.pins[v])
	}
	f.allocate(w.writer, main)
	w.next()
	return nil
}

// link plans a kernel whose first operand, and result, is an accumulator; nil if temporary values need memory.
func (s *set) link(k *ir.Kernel) *function {
	body := k.Build(s.Features)
	var held []int
	for _, n := range body.Nodes {
		switch {
		case n.Op == ir.OpInput && n.Imm == 0:
			n.Op = ir.OpAcc
		case n.Op == ir.OpInput:
			held = append(held, int(n.Imm))
		}
	}
	slices.Sort(held)
	body.Accumulators = []ir.Accumulator{{Merge: ir.MergeNone, Next: body.Store}}
	body.Store = nil
	for group := s.chainVectors(); group >= 1; group /= 2 {
		f := newFunction(s, k, body, s.chainVectors(), group, true, held)
		f.link = true
		if a := f.try(f.pins); a != nil && a.spills == 0 {
			f.hoistConstants()
			return f
		}
	}
	return nil
}
