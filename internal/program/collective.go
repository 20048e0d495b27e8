package program

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
)

// Collective is a step that the members of a group carry out together, in the order in which it was recorded. Package batch cuts programs at
// them, except where streams of the device carry them out: see [Program.Streams]. It is the kernel of a step with the entry [UserKernel], so
// that no rewrite merges it with another.
type Collective struct {
	Call      Call
	Members   Members
	Reduction compute.Reduction // of AllReduce and ReduceScatter
	Peer      int               // the root of Broadcast, the destination of Send, the source of Recv
	Site      string            // file:line where it was recorded

	// Batch is package batch's part, so that a program that records no collectives does not link it.
	Batch CollectiveBatch
}

// CollectiveBatch runs programs with collectives.
type CollectiveBatch interface {
	// Agree compares the collectives of a program among the members of each group, and decides whether streams of the device carry them
	// out.
	Agree(ctx context.Context, d Executor, p *Program) (streams bool, err error)
	// Device returns a device for programs with collectives.
	Device(d Executor) Executor
	// Streamed returns the program for streams: collectives in order, with what they need before them and other steps after them.
	Streamed(p *Program) *Program
}

// Transfer is a collective with the memory of its operand and result on a device.
type Transfer struct {
	*Collective
	Type     Type           // of the operand; of Recv of the result
	Dst, Src unsafe.Pointer // addresses of the device; of Send and Recv there is one
}

// Call is what a collective does.
type Call uint8

// The calls.
const (
	CallAllReduce Call = iota
	CallAllGather
	CallReduceScatter
	CallAllToAll
	CallBroadcast
	CallSend
	CallRecv
	CallBarrier
)

var callNames = [...]string{"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send", "recv", "barrier"}

func (c Call) String() string { return callNames[c] }

// Group is what collectives are recorded for. Types implement it by embedding [SealedGroup], so that users see no internal type.
type Group interface{ members() Members }

// SealedGroup is a group's part in collectives of programs.
type SealedGroup struct{ of Members }

// SealGroup returns the members as part of a group.
func SealGroup(m Members) SealedGroup { return SealedGroup{m} }

func (s SealedGroup) members() Members { return s.of }

// MembersOf returns who carries out the collectives of a group, or nil if that is nil or a nil pointer.
func MembersOf(g Group) Members {
	if v := reflect.ValueOf(g); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	return g.members()
}

// Members carries out collectives.
type Members interface {
	Rank() int
	Size() int
	String() string
	// Check says whether there is such a collective for elements of this type.
	Check(c *Collective, t compute.DType) error
	// Carry carries a collective out: it reads src and sets dst, slices of host memory, of which there are those that the collective has.
	Carry(ctx context.Context, c *Collective, dst, src any) error
	// Agree compares what all members are about to carry out, one text each, with the places in the source. It is a collective. All reports
	// whether all members gave true.
	Agree(ctx context.Context, calls, sites []string, yes bool) (all bool, err error)
	// Streams reports whether streams of a device carry a collective of elements of this type out, by Enqueue and Watch.
	Streams(d Executor, c *Collective, t compute.DType) bool
	// Enqueue gives transfers to a stream of the device whose context is current; more than one are messages, which go at the same time. It
	// may wait for other members.
	Enqueue(list []Transfer, stream uintptr) error
	// Watch is called before collectives are given to a stream, and what it returns when they are done or have failed, with the error:
	// that returns why the group is broken, if it is. Meanwhile members that do not come are noticed.
	Watch(list []*Collective) (done func(error) error)
	// All reports whether a condition holds for all members. It is a collective.
	All(yes bool) (bool, error)
	// Fail breaks the group, since this member will not carry out what others wait for.
	Fail(c *Collective, err error)
}

// Message reports whether the collective is one of two members only.
func (c *Collective) Message() bool { return c.Call == CallSend || c.Call == CallRecv }

// Name describes the collective for listings.
func (c *Collective) Name() string {
	text := c.Call.String()
	switch c.Call {
	case CallAllReduce, CallReduceScatter:
		text += "[" + c.Reduction.String() + "]"
	case CallBroadcast, CallRecv:
		text += fmt.Sprintf("[from %d]", c.Peer)
	case CallSend:
		text += fmt.Sprintf("[to %d]", c.Peer)
	}
	return text
}

// Result returns the type of the result for an operand. That of Recv is the operand's.
func (c *Collective) Result(in Type) (Type, error) {
	out, n := Type{in.DType, slices.Clone(in.Shape)}, c.Members.Size()
	if err := c.Members.Check(c, in.DType); err != nil {
		return out, fmt.Errorf("%s %v: %w", c.Name(), in, err)
	}
	switch c.Call {
	case CallAllGather, CallReduceScatter, CallAllToAll:
		if len(in.Shape) == 0 || c.Call != CallAllGather && in.Shape[0]%n != 0 {
			return out, fmt.Errorf("%s %v: the first dimension is divided among %d members: %w", c.Name(), in, n, compute.ErrShape)
		}
		switch c.Call {
		case CallAllGather:
			out.Shape[0] *= n
		case CallReduceScatter:
			out.Shape[0] /= n
		}
	}
	return out, CheckShape(out.Shape)
}

func (c *Collective) check(in []Type, out Type, _ Attr) error {
	if c.Call == CallRecv {
		if len(in) != 0 {
			return fmt.Errorf("%s: %d operands: %w", c.Name(), len(in), compute.ErrArgument)
		}
		in = []Type{out}
	}
	if len(in) != 1 {
		return fmt.Errorf("%s: %d operands: %w", c.Name(), len(in), compute.ErrArgument)
	}
	want, err := c.Result(in[0])
	if err == nil && (want.DType != out.DType || !EqualShape(want.Shape, out.Shape)) {
		err = fmt.Errorf("%s %v gives %v, not %v: %w", c.Name(), in[0], want, out, compute.ErrShape)
	}
	return err
}

// Collective returns the collective that a step is, or nil.
func (s *Step) Collective() *Collective {
	c, _ := s.Kernel.(*Collective)
	return c
}

// Collective returns one of the collectives of a program, or nil if there are none.
func (p *Program) Collective() *Collective {
	for i := range p.Steps {
		if c := p.Steps[i].Collective(); c != nil {
			return c
		}
	}
	return nil
}

// Collectives returns the indices of the steps that are collectives, in the order in which they were recorded.
func (p *Program) Collectives() []int {
	var list []int
	for i := range p.Steps {
		if p.Steps[i].Collective() != nil {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(i, j int) int { return int(p.Steps[i].Out[0] - p.Steps[j].Out[0]) })
	return list
}
