package sim

import (
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

// FaultKind says what went wrong in a kernel.
type FaultKind uint8

// The kinds of faults.
const (
	OutOfBounds        FaultKind = iota + 1 // an access outside every allocation, into a guard zone or into freed memory
	Misaligned                              // an address that is no multiple of the access's size
	Uninitialized                           // an address, a branch or a host read met bytes or registers that nobody has written
	Race                                    // two accesses, one a write, with no order between them
	BarrierDivergence                       // part of a warp at an aligned barrier, or a wait for threads that have exited
	Deadlock                                // no warp can run
	AsyncHazard                             // data of an asynchronous copy or product touched before its wait
	ProxyFence                              // generic writes read by the async proxy without a proxy fence, or the reverse
	WarpSync                                // a lane named by a member mask cannot arrive
	BadOperand                              // a descriptor, tensor map, barrier id or the like that no hardware would take
	IllegalInstruction                      // an instruction that the hardware would refuse where it stands
	Trap                                    // trap, brkpt
	Timeout                                 // more warp instructions than Config.MaxSteps
	Assertion                               // assert of CUDA C has failed
	InvalidFree                             // free of an address that malloc has not given, or a second time
)

var faultKinds = [...]string{"", "access out of bounds", "misaligned access", "uninitialized value", "race",
	"barrier divergence", "deadlock", "asynchronous hazard", "missing proxy fence", "warp synchronization", "bad operand",
	"illegal instruction", "trap", "timeout", "failed assertion", "invalid free"}

// String is a short phrase, such as "access out of bounds".
func (k FaultKind) String() string {
	if int(k) < len(faultKinds) {
		return faultKinds[k]
	}
	return fmt.Sprintf("fault %d", k)
}

// Access is one thread's access to memory, or the instruction that left a value undefined.
type Access struct {
	Kernel        string
	Instr         string
	Pos           ir.Pos
	Source        []ir.Pos // what a compiler says of the source (ir.Module.Source), innermost call first
	Block, Thread Dim3
	Write, Atomic bool
	Addr          uint64 // of the origin of a missing value: what was read, with Space and Size
	Space         ir.Space
	Size          int
	Host          bool // by Write, Fill, Alloc or Free of the GPU; then there is no instruction
}

// String names instruction, thread and position.
func (a *Access) String() string {
	if a.Host {
		return a.Instr + " by the host"
	}
	return fmt.Sprintf("%s of thread %s of block %s at %s", a.Instr, a.Thread, a.Block, where(a.Pos, a.Source))
}

// where is a position with those in the source that it comes from.
func where(p ir.Pos, source []ir.Pos) string {
	if len(source) == 0 {
		return p.String()
	}
	s := p.String() + " (" + source[0].String()
	for _, call := range source[1:] {
		s += ", inlined at " + call.String()
	}
	return s + ")"
}

// Fault is a kernel's error as the software GPU found it. errors.Is(f, compute.ErrArgument) holds: the kernel or its
// arguments are wrong, not the machine.
type Fault struct {
	Kind          FaultKind
	Kernel        string
	Instr         string // as PTX text; empty when the host's call is at fault
	Pos           ir.Pos
	Source        []ir.Pos // what a compiler says of the source (ir.Module.Source), innermost call first
	Block, Thread Dim3
	Size          int    // bytes of the access, where Kind is about memory
	Write         bool   // the access is a store, or an atomic operation
	Addr          uint64 // where Kind is about memory
	Space         ir.Space
	Detail        string
	Other         *Access // the earlier access of a race, the origin of a poison
}

// Error says everything that the fault knows, on one line but for lists of waiters.
func (f *Fault) Error() string {
	var b strings.Builder
	b.WriteString("sim: " + f.Kind.String())
	if f.Kernel != "" {
		b.WriteString(" in " + f.Kernel)
	}
	if f.Instr != "" {
		fmt.Fprintf(&b, ", block %s, thread %s, at %s: %s", f.Block, f.Thread, where(f.Pos, f.Source), f.Instr)
	}
	switch f.Kind {
	case OutOfBounds, Misaligned, Uninitialized, Race, AsyncHazard, ProxyFence:
		if f.Addr != 0 || f.Space != ir.NoSpace {
			fmt.Fprintf(&b, ": %s address %#x", f.Space, f.Addr)
		}
	}
	if f.Detail != "" {
		b.WriteString(": " + f.Detail)
	}
	if f.Other != nil {
		b.WriteString("; see " + f.Other.String())
	}
	return b.String()
}

// Unwrap makes every fault a [compute.ErrArgument].
func (f *Fault) Unwrap() error { return compute.ErrArgument }

// fault ends the launch with a fault of the current instruction, for the lane. It panics with the *Fault; the launch recovers
// it. addr and space are 0 where they mean nothing.
func (w *warp) fault(kind FaultKind, lane int, space ir.Space, addr uint64, format string, args ...any) {
	panic(w.faultOf(kind, lane, space, addr, fmt.Sprintf(format, args...)))
}

// report ends the launch with a fault unless Config.Report wants it to go on.
func (w *warp) report(f *Fault) {
	if !w.block.grid.gpu.goesOn(f) {
		panic(f)
	}
}

// faultOf is the fault that [warp.fault] panics with.
func (w *warp) faultOf(kind FaultKind, lane int, space ir.Space, addr uint64, detail string) *Fault {
	a := w.access(lane)
	return &Fault{Kind: kind, Kernel: w.prog.name, Instr: a.Instr, Pos: a.Pos, Source: a.Source, Block: a.Block, Thread: a.Thread,
		Addr: addr, Space: space, Detail: detail}
}

// access describes the current instruction as executed by the lane.
func (w *warp) access(lane int) *Access { return w.accessAt(w.at, lane) }

// accessAt describes the instruction at pc as executed by the lane.
func (w *warp) accessAt(pc int32, lane int) *Access {
	in := &w.prog.code[pc]
	return &Access{Kernel: w.prog.name, Instr: in.text(), Pos: in.in.Pos, Source: w.prog.module.ir.Source(in.in.Pos), Block: w.block.id, Thread: w.thread(lane)}
}
