package dist

import (
	"context"
	"fmt"
	"strings"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/dist/internal/mpi"
)

// within reports whether a function is one of this package, whose tests are another.
func within(function string) bool {
	return strings.HasPrefix(function, "github.com/wavelane/wavelane/dist.") || strings.HasPrefix(function, "runtime.")
}

// AllReduce sets dst of every member to the reduction of all members' src. The two have the same length, and may be the same slice.
func (g *Group) AllReduce(ctx context.Context, dst, src any, r Reduction) error {
	to, from, err := g.operands(dst, src, 1, 1)
	if err == nil {
		err = checkReduction(r, from.element)
	}
	if err != nil {
		return fmt.Errorf("AllReduce: %w", err)
	}
	return g.carryOut(ctx, func() string { return fmt.Sprintf("AllReduce (%v) of %v", r, from) }, true, func(stop <-chan struct{}) error {
		native := g.transport.reduces(from.element, r)
		if r == Mean && from.element == float32s {
			native = g.transport.reduces(from.element, Sum)
		}
		if native && !(g.job.rankOrder && from.element == float32s) {
			return g.reduceNative(stop, to, from, r)
		}
		return g.reduceInOrder(stop, to, from, r)
	})
}

// What is sent from the caller's memory, in bytes: smaller data are copied to a buffer, larger ones cut, as counts are 32 bits wide.
const (
	leastDirect = mpi.LeastBlocking
	mostDirect  = 1 << 30
)

// reduceNative leaves the reduction to the library, in parts of a buffer if it cannot take the caller's memory.
func (g *Group) reduceNative(stop <-chan struct{}, to, from view, r Reduction) error {
	op := r
	if r == Mean {
		op = Sum
	}
	mean := func(part []byte) {
		if r == Mean {
			for i, x := range fromBytes[float32](part) {
				fromBytes[float32](part)[i] = x / float32(g.Size())
			}
		}
	}
	if g.transport.direct() && len(from.data) >= leastDirect && apart(to.data, from.data) {
		for at := 0; at < len(from.data); at += mostDirect {
			end := min(at+mostDirect, len(from.data))
			if err := g.transport.allReduce(stop, to.data[at:end], from.data[at:end], from.element, op); err != nil {
				return err
			}
		}
		mean(to.data)
		return nil
	}
	return g.with(stop, 1, func(b []*buffer) error {
		for at := 0; at < len(from.data); at += bufferSize {
			part := b[0].data[:copy(b[0].data, from.data[at:])]
			if err := g.transport.allReduce(stop, part, part, from.element, op); err != nil {
				return err
			}
			mean(part)
			copy(to.data[at:], part)
		}
		return nil
	})
}

// apart reports memory that does not overlap, or is the same.
func apart(a, b []byte) bool {
	x, y := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return x == y || x+uintptr(len(a)) <= y || y+uintptr(len(b)) <= x
}

// reduceInOrder has each member reduce a share of each part.
func (g *Group) reduceInOrder(stop <-chan struct{}, to, from view, r Reduction) error {
	n := g.Size()
	whole := bufferSize / n / 8 * 8 * n // bytes of a part
	return g.with(stop, 2, func(b []*buffer) error {
		for at := 0; at < len(from.data); at += whole {
			length := min(whole, len(from.data)-at)
			if length*n <= 4096 { // one round of messages instead of two
				copy(b[0].data, from.data[at:at+length])
				if err := g.transport.allGather(stop, b[1], b[0], length); err != nil {
					return err
				}
				reduce(r, from.element, b[0].data[:length], blocks(b[1].data, length, n))
				copy(to.data[at:], b[0].data[:length])
				continue
			}
			share := (length/from.size() + n - 1) / n * from.size()
			clear(b[0].data[copy(b[0].data, from.data[at:at+length]) : share*n])
			if err := g.transport.allToAll(stop, b[1], b[0], share); err != nil {
				return err
			}
			reduce(r, from.element, b[0].data[:share], blocks(b[1].data, share, n))
			if err := g.transport.allGather(stop, b[1], b[0], share); err != nil {
				return err
			}
			copy(to.data[at:], b[1].data[:length])
		}
		return nil
	})
}

// blocks cuts memory into n blocks of so many bytes.
func blocks(data []byte, length, n int) [][]byte {
	b := make([][]byte, n)
	for i := range b {
		b[i] = data[i*length : (i+1)*length]
	}
	return b
}

// AllGather sets dst of every member to all members' src, one after the other. Those are equally long.
func (g *Group) AllGather(ctx context.Context, dst, src any) error {
	to, from, err := g.operands(dst, src, 1, g.Size())
	if err != nil {
		return fmt.Errorf("AllGather: %w", err)
	}
	return g.carryOut(ctx, func() string { return fmt.Sprintf("AllGather of %v", from) }, true, func(stop <-chan struct{}) error {
		return g.parts(stop, len(from.data), func(b []*buffer, at, length int) error {
			copy(b[0].data, from.data[at:at+length])
			if err := g.transport.allGather(stop, b[1], b[0], length); err != nil {
				return err
			}
			for i, part := range blocks(b[1].data, length, g.Size()) {
				copy(to.data[i*len(from.data)+at:], part)
			}
			return nil
		})
	})
}

// ReduceScatter cuts all members' src into as many parts as there are members, and sets dst of member i to the reduction of all parts i, in
// the order of ranks.
func (g *Group) ReduceScatter(ctx context.Context, dst, src any, r Reduction) error {
	to, from, err := g.operands(dst, src, g.Size(), 1)
	if err == nil {
		err = checkReduction(r, from.element)
	}
	if err != nil {
		return fmt.Errorf("ReduceScatter: %w", err)
	}
	return g.carryOut(ctx, func() string { return fmt.Sprintf("ReduceScatter (%v) of %v", r, from) }, true, func(stop <-chan struct{}) error {
		return g.parts(stop, len(to.data), func(b []*buffer, at, length int) error {
			for i, part := range blocks(b[0].data, length, g.Size()) {
				copy(part, from.data[i*len(to.data)+at:])
			}
			if err := g.transport.allToAll(stop, b[1], b[0], length); err != nil {
				return err
			}
			reduce(r, from.element, b[0].data[:length], blocks(b[1].data, length, g.Size()))
			copy(to.data[at:], b[0].data[:length])
			return nil
		})
	})
}

// AllToAll cuts all members' src into as many parts as there are members, and sets part j of dst of member i to part i of src of member j.
func (g *Group) AllToAll(ctx context.Context, dst, src any) error {
	to, from, err := g.operands(dst, src, 1, 1)
	if err == nil && from.len()%g.Size() != 0 {
		err = fmt.Errorf("%v for %d members: %w", from, g.Size(), compute.ErrShape)
	}
	if err != nil {
		return fmt.Errorf("AllToAll: %w", err)
	}
	return g.carryOut(ctx, func() string { return fmt.Sprintf("AllToAll of %v", from) }, true, func(stop <-chan struct{}) error {
		each := len(from.data) / g.Size()
		// Where dst is src, what is received is put where it was sent from.
		return g.parts(stop, each, func(b []*buffer, at, length int) error {
			for i, part := range blocks(b[0].data, length, g.Size()) {
				copy(part, from.data[i*each+at:])
			}
			if err := g.transport.allToAll(stop, b[1], b[0], length); err != nil {
				return err
			}
			for i, part := range blocks(b[1].data, length, g.Size()) {
				copy(to.data[i*each+at:], part)
			}
			return nil
		})
	})
}

// Broadcast sets data of every member to those of root.
func (g *Group) Broadcast(ctx context.Context, data any, root int) error {
	v, err := g.peer(data, root)
	if err != nil {
		return fmt.Errorf("Broadcast: %w", err)
	}
	return g.carryOut(ctx, func() string { return fmt.Sprintf("Broadcast of %v by %d", v, root) }, true, func(stop <-chan struct{}) error {
		return g.with(stop, 1, func(b []*buffer) error {
			for at := 0; at < len(v.data); at += bufferSize {
				part := b[0].data[:min(bufferSize, len(v.data)-at)]
				if g.Rank() == root {
					copy(part, v.data[at:])
				}
				if err := g.transport.broadcast(stop, b[0], len(part), root); err != nil {
					return err
				}
				copy(v.data[at:], part)
			}
			return nil
		})
	})
}

// Send sends data to another member, who receives as many. It may return before they have arrived. With NCCL messages take turns with collectives
// and with each other, and are done when the other member has taken part: of two that send to each other, one receives first.
func (g *Group) Send(ctx context.Context, data any, to int) error {
	v, err := g.peer(data, to)
	if err == nil {
		err = g.checkMessage(to)
	}
	if err != nil {
		return fmt.Errorf("Send: %w", err)
	}
	return g.carryOut(ctx, func() string { return fmt.Sprintf("Send of %v to %d", v, to) }, g.transport.ordered(), func(stop <-chan struct{}) error {
		return g.with(stop, 1, func(b []*buffer) error {
			for at := 0; at == 0 || at < len(v.data); at += bufferSize { // nothing is a message too
				if err := g.transport.send(stop, b[0], copy(b[0].data, v.data[at:]), to); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// Recv receives what another member sends: exactly as many elements. Messages from one member arrive in the order in which they were sent.
func (g *Group) Recv(ctx context.Context, data any, from int) error {
	v, err := g.peer(data, from)
	if err == nil {
		err = g.checkMessage(from)
	}
	if err != nil {
		return fmt.Errorf("Recv: %w", err)
	}
	return g.carryOut(ctx, func() string { return fmt.Sprintf("Recv of %v from %d", v, from) }, g.transport.ordered(), func(stop <-chan struct{}) error {
		return g.with(stop, 1, func(b []*buffer) error {
			for at := 0; at == 0 || at < len(v.data); at += bufferSize {
				n := min(bufferSize, len(v.data)-at)
				if err := g.transport.receive(stop, b[0], n, from); err != nil {
					return err
				}
				copy(v.data[at:], b[0].data[:n])
			}
			return nil
		})
	})
}

// Barrier waits until all members have called it.
func (g *Group) Barrier(ctx context.Context) error {
	return g.carryOut(ctx, func() string { return "Barrier" }, true, g.transport.barrier)
}

// operands checks that the lengths of two slices are as from*a = to*b.
func (g *Group) operands(dst, src any, a, b int) (to, from view, err error) {
	if to, err = viewOf(dst); err != nil {
		return to, from, err
	}
	if from, err = viewOf(src); err != nil {
		return to, from, err
	}
	if to.element != from.element {
		return to, from, fmt.Errorf("%v of %v: %w", to, from, compute.ErrDType)
	}
	if from.len()*b != to.len()*a {
		return to, from, fmt.Errorf("%v of %v with %d members: %w", to, from, g.Size(), compute.ErrShape)
	}
	return to, from, nil
}

func (g *Group) peer(data any, rank int) (view, error) {
	v, err := viewOf(data)
	if err == nil && (rank < 0 || rank >= g.Size()) {
		err = fmt.Errorf("rank %d of %d: %w", rank, g.Size(), compute.ErrArgument)
	}
	return v, err
}

// checkMessage says whether messages go to and from a rank.
func (g *Group) checkMessage(peer int) error {
	if peer == g.Rank() {
		return fmt.Errorf("rank %d with itself: %w", peer, compute.ErrArgument)
	}
	if !g.transport.messages() {
		return fmt.Errorf("messages between two members of this group: %w", compute.ErrUnsupported)
	}
	return nil
}

// parts calls do for parts of data of which every member has so many bytes, such that those of all fit into a buffer.
func (g *Group) parts(stop <-chan struct{}, bytes int, do func(b []*buffer, at, length int) error) error {
	most := bufferSize / g.Size() / 8 * 8
	return g.with(stop, 2, func(b []*buffer) error {
		for at := 0; at < bytes; at += most {
			if err := do(b, at, min(most, bytes-at)); err != nil {
				return err
			}
		}
		return nil
	})
}

// with calls do with n buffers. If that fails, a call may still use them: then they are not released.
func (g *Group) with(stop <-chan struct{}, n int, do func(b []*buffer) error) (err error) {
	b := make([]*buffer, n)
	for i := range b {
		if b[i], err = g.transport.buffer(stop); err != nil {
			return err
		}
	}
	if err = do(b); err != nil {
		return err
	}
	for _, x := range b {
		g.transport.release(x)
	}
	return nil
}
