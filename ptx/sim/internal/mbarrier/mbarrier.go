// Package mbarrier is the state of an mbarrier object: phases, arrivals and announced bytes, with the limits of the PTX ISA.
package mbarrier

import "fmt"

// Limits: PTX ISA, "Contents of the mbarrier object".
const (
	maxArrivals = 1<<20 - 1
	maxTx       = 1<<20 - 1
)

// State is the state of one mbarrier object. A phase ends when nothing is pending and all bytes that were announced have
// come.
type State struct {
	phase    uint64 // completed phases since init; waits by parity look at its lowest bit
	expected int    // arrivals that a phase needs
	pending  int    // arrivals that the current phase still needs
	tx       int    // bytes announced and not come; below zero while bytes come before their announcement
}

// New returns the state after mbarrier.init.
func New(count uint32) (State, error) {
	if count < 1 || count > maxArrivals {
		return State{}, fmt.Errorf("count %d of mbarrier.init, want 1 to %d", count, maxArrivals)
	}
	return State{expected: int(count), pending: int(count)}, nil
}

// Arrive counts n arrivals; with drop they are missing from later phases too. done says that the phase ended.
func (b *State) Arrive(n uint32, drop bool) (done bool, err error) {
	switch {
	case n < 1 || n > maxArrivals:
		return false, fmt.Errorf("count %d of an arrival, want 1 to %d", n, maxArrivals)
	case int(n) > b.pending:
		return false, fmt.Errorf("%d arrive, phase %d waits for %d more of %d: arrivals beyond its count",
			n, b.phase, b.pending, b.expected)
	}
	b.pending -= int(n)
	if drop {
		b.expected -= int(n)
	}
	return b.settle()
}

// Add makes the current phase wait for one more arrival.
func (b *State) Add() error {
	if b.pending++; b.pending > maxArrivals {
		return fmt.Errorf("more than %d arrivals pending", maxArrivals)
	}
	return nil
}

// Pending is the number of arrivals that the current phase still needs.
func (b *State) Pending() int { return b.pending }

// Expect announces bytes.
func (b *State) Expect(bytes uint32) (done bool, err error) {
	if bytes > maxTx || b.tx+int(bytes) > maxTx {
		return false, fmt.Errorf("expect_tx of %d bytes brings the tx-count to %d, the limit is %d", bytes, b.tx+int(bytes), maxTx)
	}
	b.tx += int(bytes)
	return b.settle()
}

// Complete counts bytes that have come.
func (b *State) Complete(bytes uint32) (done bool, err error) {
	if bytes > maxTx || b.tx-int(bytes) < -maxTx {
		return false, fmt.Errorf("complete_tx of %d bytes brings the tx-count to %d, the limit is %d", bytes, b.tx-int(bytes), -maxTx)
	}
	b.tx -= int(bytes)
	return b.settle()
}

// settle ends the phase if it is complete. Bytes left over when all have arrived are an error: had they come a moment later,
// they would have counted for the next phase.
func (b *State) settle() (done bool, err error) {
	switch {
	case b.pending > 0 || b.tx > 0:
		return false, nil
	case b.tx < 0:
		return false, fmt.Errorf("all have arrived in phase %d, and %d bytes more have come than expect_tx announced", b.phase, -b.tx)
	}
	b.phase++
	b.pending = b.expected
	return true, nil
}

// Token is the opaque state that arrivals return: the phase and, for mbarrier.pending_count, what is pending.
func (b *State) Token() uint64 { return b.phase<<20 | uint64(b.pending) }

// PendingOf is the number of pending arrivals in a token.
func PendingOf(token uint64) uint64 { return token & maxArrivals }

// Passed tells whether the phase of a token is over. Only the current phase and the one before it may be asked for.
func (b *State) Passed(token uint64) (bool, error) {
	phase := token >> 20
	if phase != b.phase && phase+1 != b.phase {
		return false, fmt.Errorf("the state is of phase %d, the mbarrier is in phase %d: "+
			"only the current phase and the one before may be awaited",
			phase, b.phase)
	}
	return phase != b.phase, nil
}

// PassedParity tells whether the latest phase of a parity is over: so it is when the current one has the other parity.
func (b *State) PassedParity(parity uint32) bool { return uint32(b.phase&1) != parity&1 }

// Bits is what the object's 8 bytes in memory hold, so that a kernel that overwrites them is found out.
func (b *State) Bits() uint64 {
	return 1<<63 | (b.phase&1)<<62 | uint64(b.expected)<<42 | uint64(b.pending)<<22 | uint64(b.tx)&(1<<22-1)
}

// String is the state in words, for reports.
func (b *State) String() string {
	return fmt.Sprintf("phase %d, %d of %d arrivals and %d bytes pending", b.phase, b.pending, b.expected, b.tx)
}
