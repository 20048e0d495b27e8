package batch

import (
	"context"
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Group is the members of a collective: a [github.com/wavelane/wavelane/dist.Group] or World. Other packages cannot implement it.
//
// Collectives are steps of the batch. All members of a group record the same ones, with operands of the same types, in the same order; what
// they record besides may differ. [Batch.Compile] and [Batch.Run] compare them among the members, who all call it, and name the first
// difference. A run carries them out in the order of recording, while steps that do not depend on them go on: on the host, where operands are
// read back and results are uploaded, or on streams of a CUDA device, without leaving its memory, if the group is one of NCCL and was
// given that device, all collectives of the batch are for this group, NCCL has all of them (not reductions of Float16, BFloat16 and Uint32,
// maxima and minima of Float32, sums in the order of ranks), and the same holds for all members. From the third run on they are in
// the graph that a program becomes, if all members can make one.
//
//   - Runs of a plan with collectives, and of its forks, come one after the other. On streams, Start may wait for the one before and for other
//     members.
//   - On streams, messages that are recorded one after the other, and of which none needs another's result, go at the same time; others in
//     their order with all collectives.
//   - Imported tensors must stay open until a run is done. A run that retains values which depend on collectives has begun when those are done:
//     Start waits for them.
//   - A collective is carried out even if nobody uses its result. Abandoning a run does not end it, as other members take part.
//   - When a step fails, or a member, groups whose collectives are outstanding are broken, with the errors of package dist.
type Group interface{ sealedGroup }

type sealedGroup = program.Group

// AllReduce gives the reduction of all members' values.
func (rec *Batch) AllReduce(v Value, g Group, r compute.Reduction) Value {
	return rec.collective(g, program.Collective{Call: program.CallAllReduce, Reduction: r}, v)
}

// AllGather gives all members' values along the first dimension, in the order of ranks.
func (rec *Batch) AllGather(v Value, g Group) Value {
	return rec.collective(g, program.Collective{Call: program.CallAllGather}, v)
}

// ReduceScatter cuts all members' values along the first dimension and gives the reduction of this member's parts.
func (rec *Batch) ReduceScatter(v Value, g Group, r compute.Reduction) Value {
	return rec.collective(g, program.Collective{Call: program.CallReduceScatter, Reduction: r}, v)
}

// AllToAll cuts all members' values along the first dimension: part j of the result is this member's part of the value of member j.
func (rec *Batch) AllToAll(v Value, g Group) Value {
	return rec.collective(g, program.Collective{Call: program.CallAllToAll}, v)
}

// Broadcast gives the value of the member root to all. Those of others say its type only.
func (rec *Batch) Broadcast(v Value, g Group, root int) Value {
	return rec.collective(g, program.Collective{Call: program.CallBroadcast, Peer: root}, v)
}

// Barrier gives the value when all members have computed theirs: steps that need the result begin after all steps that the others' values
// need.
func (rec *Batch) Barrier(v Value, g Group) Value {
	return rec.collective(g, program.Collective{Call: program.CallBarrier}, v)
}

// Send sends a value to another member, who records [Batch.Recv]. It gives the value.
func (rec *Batch) Send(v Value, g Group, to int) Value {
	return rec.collective(g, program.Collective{Call: program.CallSend, Peer: to}, v)
}

// Recv gives a value that another member sends.
func (rec *Batch) Recv(g Group, from int, dtype compute.DType, shape ...int) Value {
	if rec.err != nil {
		return Value{}
	}
	members := program.MembersOf(g)
	if members == nil {
		return rec.fail(fmt.Errorf("recv: nil group: %w", compute.ErrArgument))
	}
	t := program.Type{DType: dtype, Shape: slices.Clone(shape)}
	if err := t.Check(); err != nil {
		return rec.fail(fmt.Errorf("recv: %w", err))
	}
	return rec.record(program.Collective{Call: program.CallRecv, Peer: from, Members: members}, t, nil)
}

func (rec *Batch) collective(g Group, c program.Collective, v Value) Value {
	slots, ok := rec.slots([]Value{v})
	if !ok {
		return Value{}
	}
	if c.Members = program.MembersOf(g); c.Members == nil {
		return rec.fail(fmt.Errorf("%v: nil group: %w", c.Call, compute.ErrArgument))
	}
	out, err := c.Result(rec.program.Values[slots[0]].Type)
	if err != nil {
		return rec.fail(err)
	}
	return rec.record(c, out, slots)
}

func (rec *Batch) record(c program.Collective, out program.Type, in []program.Slot) Value {
	c.Site, c.Batch = caller(), collectiveBatch{}
	s, err := rec.program.ApplyKernel(&c, program.Attr{}, out, in...)
	if err != nil {
		return rec.fail(err)
	}
	rec.note()
	return Value{rec, s}
}

// agree compares the collectives of a program among the members of each group. Streams is whether streams of the device carry them out.
func (rec *Batch) agree(ctx context.Context, p *program.Program) (streams bool, err error) {
	c := p.Collective()
	if c == nil {
		return false, nil
	}
	if rec.options.guarded != nil {
		return false, fmt.Errorf("a guarded batch with collectives: guards run a program again on a member that finds something: %w", compute.ErrUnsupported)
	}
	d, err := placed(ctx, rec.device, p)
	if err != nil {
		return false, err
	}
	return c.Batch.Agree(ctx, d, p)
}

type collectiveBatch struct{}

func (collectiveBatch) Device(d program.Executor) program.Executor { return collectives{d} }

// Agree leaves out messages, which are of two members only. Streams are for collectives of one group, so that whether a member can is
// known to all that it affects.
func (collectiveBatch) Agree(ctx context.Context, d program.Executor, p *program.Program) (streams bool, err error) {
	var groups []program.Members
	calls, sites := map[program.Members][]string{}, map[program.Members][]string{}
	one := p.Collective().Members
	streams = true
	for _, i := range p.Collectives() {
		s := &p.Steps[i]
		c := s.Collective()
		m := c.Members
		streams = streams && m == one && m.Streams(d, c, p.Values[s.Out[0]].DType)
		if c.Message() {
			continue
		}
		if !slices.Contains(groups, m) {
			groups = append(groups, m)
		}
		calls[m] = append(calls[m], fmt.Sprintf("%s %v", c.Name(), p.Types(s.In)))
		sites[m] = append(sites[m], c.Site)
	}
	for _, m := range groups {
		all, err := m.Agree(ctx, calls[m], sites[m], streams)
		if err != nil {
			return false, err
		}
		streams = streams && all
	}
	return streams, nil
}
