package dist

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
)

// Alone makes a group of which only one member exists: nobody waits for the others, and their data are taken to be its own, or whatever
// was there. It is for measuring what a member computes. Seen, if not nil, is called for each message with the name of the collective and
// the bytes of this member. There are no Send and Recv.
func Alone(rank, size int, seen func(collective string, bytes int)) (*Group, error) {
	if rank < 0 || rank >= size {
		return nil, fmt.Errorf("rank %d of %d: %w", rank, size, compute.ErrArgument)
	}
	if seen == nil {
		seen = func(string, int) {}
	}
	return newGroup(newJob(config{}, nil), aloneTransport{rank, size, seen}, "alone", 0, nil), nil
}

// aloneTransport is the only member of a group.
type aloneTransport struct {
	member, members int
	seen            func(collective string, bytes int)
}

func (t aloneTransport) rank() int                               { return t.member }
func (t aloneTransport) size() int                               { return t.members }
func (t aloneTransport) buffer(<-chan struct{}) (*buffer, error) { return buffers.Get().(*buffer), nil }
func (t aloneTransport) release(b *buffer)                       { buffers.Put(b) }
func (t aloneTransport) reduces(e element, r Reduction) bool     { return reducedByLibraries(e, r) }
func (t aloneTransport) messages() bool                          { return false }
func (t aloneTransport) ordered() bool                           { return false }
func (t aloneTransport) streams() *ncclTransport                 { return nil }
func (t aloneTransport) direct() bool                            { return false }
func (t aloneTransport) free(<-chan struct{}) error              { return nil }

func (t aloneTransport) allReduce(_ <-chan struct{}, dst, src []byte, _ element, _ Reduction) error {
	t.seen("all-reduce", len(src))
	copy(dst, src)
	return nil
}

func (t aloneTransport) allGather(_ <-chan struct{}, dst, src *buffer, n int) error {
	t.seen("all-gather", n)
	for _, part := range blocks(dst.data, n, t.members) {
		copy(part, src.data[:n])
	}
	return nil
}

func (t aloneTransport) allToAll(_ <-chan struct{}, dst, src *buffer, n int) error {
	t.seen("all-to-all", n)
	copy(dst.data, src.data[:n*t.members])
	return nil
}

func (t aloneTransport) broadcast(_ <-chan struct{}, _ *buffer, n, _ int) error {
	t.seen("broadcast", n)
	return nil
}

func (t aloneTransport) barrier(<-chan struct{}) error {
	t.seen("barrier", 0)
	return nil
}

func (t aloneTransport) send(<-chan struct{}, *buffer, int, int) error {
	panic("dist: not called, see messages")
}

func (t aloneTransport) receive(<-chan struct{}, *buffer, int, int) error {
	panic("dist: not called, see messages")
}

func (t aloneTransport) split(<-chan struct{}, int, int) (transport, error) {
	return nil, fmt.Errorf("a group of which one member exists: %w", compute.ErrUnsupported)
}
