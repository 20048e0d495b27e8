package cuda

import (
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
)

// Collectives of a program (program.Program.Streams) are given to a stream beside the one on which programs run, so that steps go on which
// need neither their results nor the memory of their operands. A step that does waits for an event after the collective.

// transferred is a collective of an action, with its memory.
type transferred struct {
	*program.Collective
	typ           program.Type // of the operand; of Recv of the result
	from, to      device.Allocation
	read, written uint64 // bytes
}

// joins finds out which steps have to come after collectives: the number of collectives that must be done before each, and for each
// collective the step before which that is so first, the number of steps for the end of the program.
func joins(p *program.Program, l *device.Layout) (before []int, until map[int]int) {
	before, until = make([]int, len(p.Steps)), map[int]int{}
	var steps []int // that are collectives
	joined := 0
	for i := range p.Steps {
		s := &p.Steps[i]
		for n := len(steps); n > joined && !l.View(i); n-- { // the latest that the step needs
			of := &p.Steps[steps[n-1]]
			results, operands := l.StorageOf(of.Out), l.StorageOf(of.In)
			needs := slices.ContainsFunc(l.StorageOf(s.In), func(in program.Slot) bool { return slices.Contains(results, in) })
			for k := range s.Entry.Updates {
				needs = needs || slices.Contains(operands, l.Storage[s.In[k]])
			}
			if !needs {
				continue
			}
			for ; joined < n; joined++ {
				until[steps[joined]] = i
			}
		}
		before[i] = joined
		if s.Collective() != nil {
			steps = append(steps, i)
		}
	}
	for ; joined < len(steps); joined++ {
		until[steps[joined]] = len(p.Steps)
	}
	return before, until
}

// addCollective appends the action of a collective, or adds a message to the action before it if that is of messages, none of which it
// needs: then they go at the same time.
func (pl *plan) addCollective(step int) {
	p, s := pl.prog, &pl.prog.Steps[step]
	t := transferred{Collective: s.Collective(), typ: p.Values[s.Out[0]].Type, to: pl.layout.Values[s.Out[0]]}
	t.written = pl.bytes(s.Out[0])
	if t.Call != program.CallRecv {
		t.typ, t.from, t.read = p.Values[s.In[0]].Type, pl.layout.Values[s.In[0]], pl.bytes(s.In[0])
	}
	switch {
	case t.Call == program.CallBroadcast && t.Members.Rank() != t.Peer:
		t.read = 0
	case t.Call == program.CallSend || t.Call == program.CallBarrier: // which give their operand
		if t.written > 0 && t.from != t.to && p.Uses(s.Out[0]) {
			pl.actions = append(pl.actions, action{kind: copying, from: t.from, to: t.to, n: t.written})
		}
		t.written = 0
		if t.Call == program.CallBarrier {
			t.read = 0
		}
	}
	if t.read+t.written == 0 && t.Call != program.CallBarrier {
		return
	}
	if n := len(pl.actions); n > 0 && t.Message() {
		last := &pl.actions[n-1]
		needs := func(b transferred) bool { return !b.Message() || b.written > 0 && t.read > 0 && b.to == t.from }
		if last.kind == transferring && !slices.ContainsFunc(last.transfers, needs) {
			last.transfers = append(last.transfers, t)
			return
		}
	}
	pl.actions = append(pl.actions, action{kind: transferring, name: t.Name(), transfers: []transferred{t}})
}

// sideStream is the stream of collectives; the caller holds the submit lock and has entered the context.
func (d *state) sideStream() (driver.Stream, error) {
	if d.side == nil {
		s, err := d.newStream(StreamOptions{})
		if err != nil {
			return 0, err
		}
		d.side = s
	}
	return d.side.handle, nil
}

// transit is how far the collectives of a run are.
type transit struct {
	ends   []driver.Event // after each action that is one
	joined int            // of them the stream of the program waits for
}

// stamp records an event in a stream. The caller has entered the context.
func (d *state) stamp(s driver.Stream) (driver.Event, error) {
	event, err := d.events.get(false)
	if err != nil {
		return 0, err
	}
	return event, d.check("cuEventRecord", d.drv.EventRecord(event, s))
}

// join has the program's stream wait for the first n actions that are collectives.
func (t *transit) join(d *state, n int, s driver.Stream) error {
	if n <= t.joined {
		return nil
	}
	t.joined = n
	return d.check("cuStreamWaitEvent", d.drv.StreamWaitEvent(s, t.ends[n-1]))
}

// release gives the events back: waits take them as they are.
func (t *transit) release(d *state) {
	for _, event := range t.ends {
		d.events.put(event, false)
	}
}

// give gives an action's collectives to the stream beside s, after what s has been given.
func (t *transit) give(e *compiled, m *memory, a *action, s driver.Stream) error {
	d := e.d
	side, err := d.sideStream()
	if err != nil {
		return err
	}
	begin, err := d.stamp(s)
	if err == nil {
		err = d.check("cuStreamWaitEvent", d.drv.StreamWaitEvent(side, begin))
	}
	if begin != 0 {
		d.events.put(begin, false)
	}
	if err != nil {
		return err
	}
	var pieces []driver.Memory
	list := make([]program.Transfer, len(a.transfers))
	for i, x := range a.transfers {
		list[i] = program.Transfer{Collective: x.Collective, Type: x.typ}
		if x.read > 0 {
			pieces = append(pieces, driver.Memory{At: m.address(x.from), Bytes: x.read})
		}
		if x.written > 0 {
			pieces = append(pieces, driver.Memory{At: m.address(x.to), Bytes: x.written, Written: true})
		}
	}
	r := d.drv.LaunchForeign(side, pieces, func(at []unsafe.Pointer, s driver.Stream) {
		list := slices.Clone(list)
		for i, x := range a.transfers {
			if x.read > 0 {
				list[i].Src, at = at[0], at[1:]
			}
			if x.written > 0 {
				list[i].Dst, at = at[0], at[1:]
			}
		}
		_ = list[0].Members.Enqueue(list, uintptr(s)) // it breaks the group, which the end of the run finds out
	})
	if err := d.check("launch of "+a.name, r); err != nil {
		return err
	}
	end, err := d.stamp(side)
	if err == nil {
		t.ends = append(t.ends, end)
	}
	return err
}

// together is what runs of a program with collectives have in common. They come one after the other, and become launches of a graph in the
// same run of all members, as NCCL wants it: then there is one graph for all runs, in which tensors are replaced.
type together struct {
	calls []*program.Collective
	whole bool // one of them is of the whole group

	mu     sync.Mutex // of those who begin
	last   chan struct{}
	runs   int
	graphs bool
}

func newTogether(p *program.Program) *together {
	if !p.Streams {
		return nil
	}
	t := &together{last: make(chan struct{})}
	close(t.last)
	for _, i := range p.Collectives() {
		c := p.Steps[i].Collective()
		t.calls, t.whole = append(t.calls, c), t.whole || !c.Message()
	}
	return t
}

// begin waits for the run before, and decides with the other members whether this run is a launch of a graph. End is for the run's error; it
// returns why the group is broken, if it is.
func (t *together) begin(e *compiled, io *program.IO) (graph bool, end func(error) error, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	<-t.last
	if t.runs++; t.runs == warmUp+1 && t.whole {
		if t.graphs, err = t.calls[0].Members.All(e.replayable() && e.movable() && io.Times == nil); err != nil {
			return false, nil, err
		}
	}
	t.last = make(chan struct{})
	return t.graphs, t.calls[0].Members.Watch(t.calls), nil
}

// over lets the next run begin.
func (t *together) over() {
	if t != nil {
		close(t.last)
	}
}

// movable reports whether a graph of the program can be given other tensors: nothing but kernels has their addresses.
func (e *compiled) movable() bool {
	tensor := func(a device.Allocation) bool { return a.Kind == device.InTensor }
	for i := range e.actions {
		a := &e.actions[i]
		switch a.kind {
		case launching:
			continue
		case transferring:
			if slices.ContainsFunc(a.transfers, func(x transferred) bool { return x.read > 0 && tensor(x.from) || x.written > 0 && tensor(x.to) }) {
				return false
			}
		default:
			if tensor(a.to) || a.kind == copying && tensor(a.from) {
				return false
			}
		}
	}
	return !slices.ContainsFunc(e.prog.Read, func(s program.Slot) bool { return tensor(e.layout.Values[s]) })
}

// onTensors reports whether a launch has the address of a tensor.
func (a *action) onTensors() bool {
	return slices.ContainsFunc(a.patches, func(q patch) bool { return q.to.Kind == device.InTensor }) ||
		slices.ContainsFunc(a.maps, func(q mapPatch) bool { return q.to.Kind == device.InTensor })
}

// onlyGraph returns the graph of a program with collectives, which it makes for the first run that wants it.
func (e *compiled) onlyGraph(bound *memory) (*replay, error) {
	e.mu.Lock()
	if n := len(e.graphs); n > 0 {
		g := e.graphs[n-1]
		e.graphs = e.graphs[:n-1]
		e.mu.Unlock()
		return g, nil
	}
	e.made++
	e.mu.Unlock()
	g, err := e.record(bound)
	if err != nil {
		e.mu.Lock()
		e.made--
		e.mu.Unlock()
		return nil, fmt.Errorf("graph of a program with collectives, which other members replay: %w", err)
	}
	return g, nil
}

// errStreams is for collectives that are no steps of a device.
func errStreams(s *program.Step) error {
	return fmt.Errorf("%s: a collective on streams that nobody has agreed on: %w", s.Name(), compute.ErrUnsupported)
}
