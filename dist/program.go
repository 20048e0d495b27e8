package dist

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// members carries out the collectives that a batch has recorded for a group.
type members struct{ *Group }

// site is the key of contexts of calls that a batch makes: their value says where it was recorded.
type site struct{}

// callerIn returns where a call was recorded, or the line outside of this package.
func callerIn(ctx context.Context) string {
	if at, ok := ctx.Value(site{}).(string); ok {
		return at
	}
	return caller()
}

// Check says whether there is such a collective for elements of this type.
func (m members) Check(c *program.Collective, t compute.DType) error {
	v, err := viewOf(program.MakeSlice(program.Type{DType: t, Shape: []int{0}}))
	if err != nil {
		return err
	}
	switch c.Call {
	case program.CallAllReduce, program.CallReduceScatter:
		return checkReduction(c.Reduction, v.element)
	case program.CallBroadcast, program.CallSend, program.CallRecv:
		if c.Peer < 0 || c.Peer >= m.Size() {
			return fmt.Errorf("rank %d for rank %d of %d: %w", c.Peer, m.Rank(), m.Size(), compute.ErrArgument)
		}
		if c.Call != program.CallBroadcast {
			return m.checkMessage(c.Peer)
		}
	}
	return nil
}

// Carry carries a collective out.
func (m members) Carry(ctx context.Context, c *program.Collective, dst, src any) error {
	ctx = context.WithValue(ctx, site{}, c.Site)
	switch c.Call {
	case program.CallAllReduce:
		return m.AllReduce(ctx, dst, src, c.Reduction)
	case program.CallAllGather:
		return m.AllGather(ctx, dst, src)
	case program.CallReduceScatter:
		return m.ReduceScatter(ctx, dst, src, c.Reduction)
	case program.CallAllToAll:
		return m.AllToAll(ctx, dst, src)
	case program.CallRecv:
		return m.Recv(ctx, dst, c.Peer)
	}
	copy(program.Bytes(dst), program.Bytes(src))
	switch c.Call {
	case program.CallSend:
		return m.Send(ctx, dst, c.Peer)
	case program.CallBarrier:
		return m.Barrier(ctx)
	}
	return m.Broadcast(ctx, dst, c.Peer)
}

// Fail breaks the group.
func (m members) Fail(c *program.Collective, err error) {
	if m.job.done.Err() == nil {
		m.fail(&BrokenError{m.name, m.Rank(), c.Name(), m.sequence.Load() + 1, c.Site, err})
	}
}

// Agree compares hashes of what all members are about to carry out, and the texts only if they differ. A byte after the hash says yes.
func (m members) Agree(ctx context.Context, calls, sites []string, yes bool) (all bool, err error) {
	at := ""
	if len(sites) > 0 {
		at = sites[0]
	}
	ctx = context.WithValue(ctx, site{}, at)
	text := []byte(strings.Join(calls, "\n"))
	hash := sha256.Sum256(text)
	mine := append(hash[:], 0)
	if yes {
		mine[len(hash)] = 1
	}
	theirs := make([]byte, len(mine)*m.Size())
	if err := m.AllGather(ctx, theirs, mine); err != nil {
		return false, err
	}
	same := true
	all = true
	for _, h := range blocks(theirs, len(mine), m.Size()) {
		same = same && string(h[:len(hash)]) == string(hash[:])
		all = all && h[len(hash)] == 1
	}
	if same {
		return all, nil
	}
	// Hashes differ for all members, so that all of them come here.
	lengths := make([]int32, m.Size())
	if err := m.AllGather(ctx, lengths, []int32{int32(len(text))}); err != nil {
		return false, err
	}
	longest := int(slices.Max(lengths))
	texts := make([]byte, longest*m.Size())
	if err := m.AllGather(ctx, texts, append(text, make([]byte, longest-len(text))...)); err != nil {
		return false, err
	}
	lists := make([][]string, m.Size())
	for i, b := range blocks(texts, longest, m.Size()) {
		lists[i] = strings.Split(string(b[:lengths[i]]), "\n")
	}
	return false, differ(m.name, m.Rank(), lists, sites)
}

// differ names the first collective that is not the same for all members.
func differ(group string, rank int, lists [][]string, sites []string) error {
	of := func(list []string, n int) string {
		if n < len(list) {
			return list[n]
		}
		return "nothing"
	}
	for n := 0; ; n++ {
		for i := range lists {
			if a, b := of(lists[0], n), of(lists[i], n); a != b {
				err := fmt.Errorf("collective %d of the batches for %s: rank 0 has %s, rank %d has %s", n+1, group, a, i, b)
				if n < len(sites) {
					err = fmt.Errorf("%w (rank %d recorded it at %s)", err, rank, sites[n])
				}
				return fmt.Errorf("%w: %w", err, ErrMismatch)
			}
		}
		if n > len(lists[0]) {
			return fmt.Errorf("collectives of the batches for %s: %w", group, ErrMismatch) // of texts that are equal with unequal hashes
		}
	}
}
