package dist

import (
	"context"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/dist/internal/nccl"
	"github.com/wavelane/wavelane/internal/program"
)

// Collectives of batches on streams of a CUDA device: NCCL reads and writes the device's memory.

func (t ncclTransport) streams() *ncclTransport { return &t }

// operation is what NCCL calls a reduction; of types and reductions that it has.
func operation(e element, r Reduction) (nccl.Type, nccl.Op) {
	typ := nccl.Float32
	if e == int32s {
		typ = nccl.Int32
	}
	return typ, map[Reduction]nccl.Op{Sum: nccl.Sum, Mean: nccl.Avg, Max: nccl.Max, Min: nccl.Min}[r]
}

// Streams reports whether streams of a device carry a collective out: not those whose results would not be what the host makes of them.
func (m members) Streams(d program.Executor, c *program.Collective, t compute.DType) bool {
	own := m.transport.streams()
	if own == nil || program.ExecutorOf(own.e.device) != d {
		return false
	}
	if c.Call != program.CallAllReduce && c.Call != program.CallReduceScatter {
		return true
	}
	switch t {
	case compute.Float32:
		return (c.Reduction == Sum || c.Reduction == Mean) && !m.job.rankOrder
	case compute.Int32:
		return c.Reduction != Mean
	}
	return false
}

// Enqueue gives transfers to a stream. What fails breaks the group.
func (m members) Enqueue(list []program.Transfer, stream uintptr) error {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-m.job.done.Done():
		return context.Cause(m.job.done)
	}
	if err := m.transport.streams().enqueue(m.job.done, list, stream); err != nil {
		c := list[0].Collective
		return m.fail(&BrokenError{m.name, m.Rank(), c.Name(), m.sequence.Load(), c.Site, err})
	}
	return nil
}

// enqueue makes the calls, and waits until the stream has what they do: for that the first calls need the other members.
func (t ncclTransport) enqueue(ctx context.Context, list []program.Transfer, stream uintptr) error {
	runtime.LockOSThread() // on which the group of calls is
	defer runtime.UnlockOSThread()
	call := func() error {
		for i := range list {
			if err := t.transfer(&list[i], stream); err != nil {
				return err
			}
		}
		return nil
	}
	var err error
	if list[0].Message() {
		err = t.e.library.Group(call)
	} else {
		err = call()
	}
	if err == nil {
		err = t.c.Settle(ctx)
	}
	if err != nil {
		t.e.abort()
	}
	return err
}

// transfer makes the calls of one collective. Messages are cut as those of slices are, so that it does not matter which of the two their other
// end is.
func (t ncclTransport) transfer(x *program.Transfer, stream uintptr) error {
	bytes := x.Type.Bytes()
	part := func(p unsafe.Pointer, i, n int) unsafe.Pointer { return unsafe.Add(p, i*n) }
	typ, op := operation(float32s, x.Reduction)
	if x.Type.DType == compute.Int32 {
		typ = nccl.Int32
	}
	switch x.Call {
	case program.CallAllReduce:
		return t.c.AllReduce(x.Dst, x.Src, x.Type.Len(), typ, op, stream)
	case program.CallReduceScatter:
		return t.c.ReduceScatter(x.Dst, x.Src, x.Type.Len()/t.size(), typ, op, stream)
	case program.CallAllGather:
		return t.c.AllGather(x.Dst, x.Src, bytes, stream)
	case program.CallAllToAll:
		n := bytes / t.size()
		return t.e.library.Group(func() error {
			for peer := range t.size() {
				if err := t.c.Send(part(x.Src, peer, n), n, peer, stream); err != nil {
					return err
				}
				if err := t.c.Recv(part(x.Dst, peer, n), n, peer, stream); err != nil {
					return err
				}
			}
			return nil
		})
	case program.CallBroadcast:
		src := x.Src
		if t.rank() != x.Peer {
			src = x.Dst
		}
		return t.c.Broadcast(x.Dst, src, bytes, x.Peer, stream)
	case program.CallBarrier:
		token := at(t.token.Slice())
		return t.c.AllReduce(token, token, 1, nccl.Int32, nccl.Max, stream)
	}
	for from := 0; from < bytes; from += bufferSize {
		n := min(bufferSize, bytes-from)
		var err error
		if x.Call == program.CallSend {
			err = t.c.Send(unsafe.Add(x.Src, from), n, x.Peer, stream)
		} else {
			err = t.c.Recv(unsafe.Add(x.Dst, from), n, x.Peer, stream)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Watch breaks the group when a run takes longer than the timeout or the network fails, and ends what the GPU waits for when the group is
// broken.
func (m members) Watch(list []*program.Collective) func(error) error {
	n := uint64(len(list))
	first := m.sequence.Add(n) - n + 1
	t := m.transport.streams()
	broken := func(err error) *BrokenError {
		name := list[0].Name()
		if n > 1 {
			name += fmt.Sprintf(" or one of the %d collectives after it in a batch", n-1)
		}
		return &BrokenError{m.name, m.Rank(), name, first, list[0].Site, err}
	}
	finished := make(chan struct{})
	go func() {
		var late <-chan time.Time
		if m.job.timeout > 0 {
			timer := time.NewTimer(m.job.timeout)
			defer timer.Stop()
			late = timer.C
		}
		tick := time.NewTicker(checkInterval)
		defer tick.Stop()
		for {
			select {
			case <-finished:
				return
			case <-late:
				m.fail(broken(timedOut{m.job.timeout}))
			case <-tick.C:
				if err := t.c.Check(); err != nil {
					m.fail(broken(err))
				}
			case <-m.job.done.Done():
				if m.isBroken() {
					t.e.abort()
				}
				return
			}
		}
	}()
	return func(err error) error {
		close(finished)
		if err != nil {
			t.e.abort()
			return m.fail(broken(err))
		}
		if m.isBroken() {
			return context.Cause(m.job.done)
		}
		return nil
	}
}

// isBroken reports whether the group is broken; it may also be closed.
func (g *Group) isBroken() bool {
	_, broken := context.Cause(g.job.done).(*BrokenError)
	return broken
}

// All reports whether a condition holds for all members.
func (m members) All(yes bool) (bool, error) {
	x := []int32{0}
	if yes {
		x[0] = 1
	}
	err := m.AllReduce(context.Background(), x, x, Min)
	return x[0] == 1, err
}
