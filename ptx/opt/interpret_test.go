package opt_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/wavelane/wavelane/ptx/eval"
	"github.com/wavelane/wavelane/ptx/ir"
)

// thread runs a kernel as one thread: enough to compare passes, and independent of the software GPU.
type thread struct {
	f      *ir.Func
	regs   []uint64
	carry  bool
	global []byte // at address 0x1000
	local  []byte // the variable own, at address 0x40
	n      uint64
	tid    uint64
}

const (
	globalAt = 0x1000
	localAt  = 0x40
)

func (t *thread) memory(in *ir.Instr, o *ir.Operand) ([]byte, error) {
	at := uint64(o.Off)
	switch {
	case o.Reg != 0:
		at += t.regs[o.Reg]
	case o.Sym == "own":
		at += localAt
	}
	mem, base := t.global, uint64(globalAt)
	if in.Space() == ir.LocalSpace {
		mem, base = t.local, localAt
	}
	size := uint64(in.Type(0).Size())
	if at < base || at+size > base+uint64(len(mem)) || at%size != 0 {
		return nil, fmt.Errorf("%s at %#x", t.f.InstrString(in), at)
	}
	return mem[at-base:][:size], nil
}

func (t *thread) value(o *ir.Operand, typ ir.Type) uint64 {
	switch o.Kind {
	case ir.RegOperand:
		if o.Not {
			return t.regs[o.Reg] ^ 1
		}
		return t.regs[o.Reg]
	case ir.SpecialOperand:
		return t.tid
	case ir.SymOperand:
		return localAt + uint64(o.Off)
	}
	return eval.Immediate(*o, typ)
}

// literalType is the type of the i-th operand if it is a literal: enough for what programs here use.
func literalType(in *ir.Instr, i int) ir.Type {
	switch {
	case i >= 2 && (in.Op == "shl" || in.Op == "shr" || in.Op == "bfe") || i >= 3 && (in.Op == "bfi" || in.Op == "shf"):
		return ir.U32
	case in.Op == "set":
		return in.Type(1)
	case in.Op == "slct" && i == 3:
		return in.Type(1)
	case in.Op == "cvt":
		return in.Type(1)
	case in.Op == "mad" && in.Has(ir.Wide) && i == 3:
		return ir.U64
	}
	return in.Type(0)
}

// run executes until the end and returns the number of instructions.
func (t *thread) run() (steps int, err error) {
	t.regs = make([]uint64, len(t.f.Regs))
	labels := map[string]int{}
	for i := range t.f.Body {
		if in := &t.f.Body[i]; in.Op == ir.OpLabel {
			labels[in.Args[0].Sym] = i
		}
	}
	for pc := 0; pc < len(t.f.Body); pc++ {
		in := &t.f.Body[pc]
		if in.Kind() == ir.Directive {
			continue
		}
		if steps++; steps > 1e6 {
			return steps, fmt.Errorf("no end")
		}
		if g := in.Guard; g.Reg != 0 && t.regs[g.Reg]&1 != 0 == g.Not {
			continue
		}
		switch in.Op {
		case "ret", "exit":
			return steps, nil
		case "bra":
			to, ok := labels[in.Args[0].Sym]
			if !ok {
				return steps, fmt.Errorf("no label %s", in.Args[0].Sym)
			}
			pc = to
			continue
		case "st":
			mem, err := t.memory(in, &in.Args[0])
			if err != nil {
				return steps, err
			}
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], t.value(&in.Args[1], in.Type(0)))
			copy(mem, b[:])
			continue
		}
		if err := t.write(in); err != nil {
			return steps, err
		}
	}
	return steps, nil
}

// write executes an instruction that writes a register.
func (t *thread) write(in *ir.Instr) error {
	d := in.Args[0].Reg
	var v uint64
	var args [4]uint64
	if in.Op != "ld" {
		for i := range in.Args[1:] {
			args[i] = t.value(&in.Args[i+1], literalType(in, i+1))
		}
	}
	switch {
	case in.Op == "ld" && in.Space() == ir.ParamSpace:
		v = map[string]uint64{"data": globalAt, "n": t.n}[in.Args[1].Sym]
	case in.Op == "ld":
		mem, err := t.memory(in, &in.Args[1])
		if err != nil {
			return err
		}
		var b [8]byte
		copy(b[:], mem)
		v = binary.LittleEndian.Uint64(b[:])
	case in.Kind() == ir.Carry:
		f, err := eval.Carry(in)
		if err != nil {
			return err
		}
		v, t.carry = f(args[0], args[1], args[2], t.carry)
	case in.Op == "mov":
		v = args[0]
	default:
		f, err := eval.Of(in)
		if err != nil {
			return err
		}
		v = f(args[0], args[1], args[2], args[3])
	}
	t.regs[d] = v & (^uint64(0) >> (64 - t.f.Regs[d].Type.Bits()))
	return nil
}

// interpret runs the kernel of a random module on data and returns what is in memory then.
func interpret(m *ir.Module, data []byte) (out []byte, steps int, err error) {
	t := &thread{f: m.Funcs[0], global: append([]byte(nil), data...), local: make([]byte, slots*8), n: 12345}
	steps, err = t.run()
	return t.global, steps, err
}

// randomData is a thread's words, among them such as compilers are caught with.
func randomData(rng *rand.Rand) []byte {
	data := make([]byte, stride)
	special := []uint64{0, 1, ^uint64(0), 0x7f800000, 0x80000000, 0xffc00000, 0x3f800000, 1 << 63, 0x7ff0000000000000, 0x00000001}
	for i := range slots {
		v := rng.Uint64()
		switch rng.IntN(4) {
		case 0:
			v = special[rng.IntN(len(special))]
		case 1:
			v = rng.Uint64N(20)
		}
		binary.LittleEndian.PutUint64(data[i*8:], v)
	}
	return data
}
