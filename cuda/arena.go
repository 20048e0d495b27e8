package cuda

import (
	"errors"
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
)

// Sizes of the allocator, in bytes.
const (
	alignment     = 256      // of every block; the driver's own blocks have at least that
	smallBlock    = 1 << 20  // blocks below share small segments
	mediumBlock   = 16 << 20 // blocks below share medium segments; larger ones get a segment of their own
	smallSegment  = 2 << 20
	mediumSegment = 32 << 20
	granularity   = 2 << 20 // of the driver's pages; larger segments are multiples
)

// backing is where an arena has its segments from.
type backing interface {
	alloc(bytes uint64) (uint64, error)
	free(at uint64) error
}

// arena divides segments of a backing into blocks, by best fit; free neighbours are merged. A segment without blocks is kept
// for reuse until trim. Operations take O(log n), and nothing is allocated once there are enough spans. Small blocks have
// segments of their own, so that a few of them do not hold large memory; so has each of the owner's two kinds of blocks; when
// memory is short, any gap will do. Its owner guards it against concurrent use.
type arena struct {
	from  backing
	limit uint64 // bytes of all segments
	// reclaim, called when memory is short, puts back blocks that wait for fences, and waits until free memory is not in use.
	reclaim func() error

	segments []*segment
	free     [classes]spanTree
	spare    *span  // list by next
	inUse    uint64 // bytes
	cached   uint64
	high     uint64 // the most that was in use
	blocks   int
	gets     uint64 // blocks so far
	obtained uint64 // segments so far, each for one of these blocks
}

// segment is memory from the backing.
type segment struct {
	at, size uint64
	first    *span
	class    class
}

// span is a part of a segment: a block in use or a gap. Gaps have no gaps as neighbours.
type span struct {
	at, size   uint64
	segment    *segment
	prev, next *span // neighbours in the segment
	used       bool
	// touched is the time of the pool's clock at which memory of the span was last put back by work that may still run.
	touched uint64

	left, right *span // in the tree of gaps
	priority    uint32
}

// roundUp rounds up to a multiple of a power of two; a result less than n means overflow.
func roundUp(n, multiple uint64) uint64 { return (n + multiple - 1) &^ (multiple - 1) }

// class is what a segment is for.
type class int

const (
	small   class = 1 // blocks, and not larger ones
	kind    class = 2 // of blocks
	classes       = 4
)

// get returns a block of at least the given size, of kind c or 0; 0 bytes are a block as well. It requests a segment of the
// backing if no gap fits. Errors wrap compute.ErrOutOfMemory if the limit or the backing does not allow it even after idle
// segments went back.
func (a *arena) get(bytes uint64, c class) (*span, error) {
	size := max(roundUp(bytes, alignment), alignment)
	if size < bytes {
		return nil, fmt.Errorf("%d bytes: %w", bytes, compute.ErrOutOfMemory)
	}
	if size < smallBlock {
		c |= small
	}
	gap := a.free[c].best(size)
	if gap == nil {
		var err error
		if gap, err = a.grow(size, c); err != nil {
			return nil, err
		}
	}
	return a.take(gap, size), nil
}

// take makes a block of the beginning of a gap.
func (a *arena) take(gap *span, size uint64) *span {
	tree := &a.free[gap.segment.class]
	tree.remove(gap)
	if rest := gap.size - size; rest > 0 {
		r := a.newSpan()
		*r = span{at: gap.at + size, size: rest, segment: gap.segment, prev: gap, next: gap.next, touched: gap.touched}
		if r.next != nil {
			r.next.prev = r
		}
		gap.next, gap.size = r, size
		tree.insert(r)
	}
	gap.used = true
	a.blocks++
	a.gets++
	a.cached -= size
	a.inUse += size
	a.high = max(a.high, a.inUse)
	return gap
}

// put takes a block back. Work submitted up to the given time may still use it; 0 says that there is none.
func (a *arena) put(s *span, touched uint64) {
	s.used, s.touched = false, max(s.touched, touched)
	a.blocks--
	a.inUse -= s.size
	a.cached += s.size
	tree := &a.free[s.segment.class]
	if n := s.next; n != nil && !n.used {
		tree.remove(n)
		a.join(s, n)
	}
	if p := s.prev; p != nil && !p.used {
		tree.remove(p)
		a.join(p, s)
		s = p
	}
	tree.insert(s)
}

// join makes one gap of two neighbours, in the first.
func (a *arena) join(s, next *span) {
	s.size += next.size
	s.touched = max(s.touched, next.touched)
	s.next = next.next
	if s.next != nil {
		s.next.prev = s
	}
	a.drop(next)
}

// grow returns a gap of at least size bytes in a new segment, or, if there is no memory for one, in any other, or in whatever
// can be reclaimed.
func (a *arena) grow(size uint64, c class) (*span, error) {
	want := roundUp(size, granularity)
	if c&small != 0 {
		want = smallSegment
	} else if size < mediumBlock {
		want = mediumSegment
	}
	gap, err := a.obtain(size, want, c)
	if err == nil || !errors.Is(err, compute.ErrOutOfMemory) {
		return gap, err
	}
	if gap := a.any(size); gap != nil {
		return gap, nil
	}
	if a.reclaim != nil {
		if err := a.reclaim(); err != nil {
			return nil, err
		}
		if gap := a.any(size); gap != nil {
			return gap, nil
		}
	}
	if err := a.trim(); err != nil {
		return nil, err
	}
	return a.obtain(size, roundUp(size, granularity), c)
}

// any is a gap of at least size bytes of whatever class.
func (a *arena) any(size uint64) *span {
	for i := range a.free {
		if gap := a.free[i].best(size); gap != nil {
			return gap
		}
	}
	return nil
}

// obtain requests a segment of the wanted size, or of what the limit leaves if that is at least size.
func (a *arena) obtain(size, want uint64, c class) (*span, error) {
	left := (a.limit - a.inUse - a.cached) &^ (alignment - 1)
	if left < size || want < size {
		return nil, fmt.Errorf("a limit of %d bytes: %w", a.limit, compute.ErrOutOfMemory)
	}
	want = min(want, left)
	at, err := a.from.alloc(want)
	if err != nil {
		return nil, err
	}
	s := &segment{at: at, size: want, class: c, first: a.newSpan()}
	*s.first = span{at: at, size: want, segment: s}
	a.segments = append(a.segments, s)
	a.free[c].insert(s.first)
	a.cached += want
	a.obtained++
	return s.first, nil
}

// trim gives the segments without blocks back to the backing. They must no longer be in use.
func (a *arena) trim() error {
	var failed error
	a.segments = slices.DeleteFunc(a.segments, func(s *segment) bool {
		idle := !s.first.used && s.first.size == s.size
		if idle {
			a.free[s.class].remove(s.first)
			a.cached -= s.size
			a.drop(s.first)
			if err := a.from.free(s.at); failed == nil {
				failed = err
			}
		}
		return idle
	})
	return failed
}

// close frees all segments, used or not. Blocks must not be put back afterwards.
func (a *arena) close() error {
	var failed error
	for _, s := range a.segments {
		if err := a.from.free(s.at); failed == nil {
			failed = err
		}
	}
	a.segments, a.free, a.spare = nil, [classes]spanTree{}, nil
	a.inUse, a.cached, a.blocks = 0, 0, 0
	return failed
}

// largest is the largest block that fits into a gap.
func (a *arena) largest() (n uint64) {
	for i := range a.free {
		n = max(n, a.free[i].largest())
	}
	return n
}

func (a *arena) newSpan() *span {
	s := a.spare
	if s == nil {
		return new(span)
	}
	a.spare = s.next
	return s
}

func (a *arena) drop(s *span) {
	*s = span{next: a.spare}
	a.spare = s
}
