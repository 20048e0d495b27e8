package cuda

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wavelane/wavelane/compute"
)

// heap is a backing that looks after what it gave. Addresses lie apart by gaps, so that segments are never neighbours.
type heap struct {
	next     uint64
	live     map[uint64]uint64
	room     uint64
	refuse   bool // everything
	requests []uint64
}

func newHeap(room uint64) *heap { return &heap{next: 1 << 32, live: map[uint64]uint64{}, room: room} }

func (h *heap) alloc(bytes uint64) (uint64, error) {
	h.requests = append(h.requests, bytes)
	if h.refuse || bytes > h.room {
		return 0, fmt.Errorf("no room for %d: %w", bytes, compute.ErrOutOfMemory)
	}
	at := h.next
	h.next += bytes + 4096
	h.room -= bytes
	h.live[at] = bytes
	return at, nil
}

func (h *heap) free(at uint64) error {
	size, ok := h.live[at]
	if !ok {
		return fmt.Errorf("free of %#x: %w", at, compute.ErrArgument)
	}
	delete(h.live, at)
	h.room += size
	return nil
}

func (h *heap) total() (sum uint64) {
	for _, n := range h.live {
		sum += n
	}
	return sum
}

// inspect compares everything an arena says about itself with what its spans are.
func inspect(t require.TestingT, a *arena, h *heap) {
	var used, free, largest, blocks uint64
	gaps := [classes]map[*span]bool{{}, {}, {}, {}}
	require.Len(t, a.segments, len(h.live))
	for _, s := range a.segments {
		require.Equal(t, h.live[s.at], s.size)
		at := s.at
		var prev *span
		for n := s.first; n != nil; prev, n = n, n.next {
			require.Equal(t, at, n.at, "spans follow each other")
			require.Same(t, s, n.segment)
			require.True(t, n.prev == prev)
			at += n.size
			if n.used {
				used += n.size
				blocks++
				continue
			}
			require.True(t, prev == nil || prev.used, "neighbouring gaps are one")
			free += n.size
			largest = max(largest, n.size)
			gaps[s.class][n] = true
		}
		require.Equal(t, s.at+s.size, at)
	}
	require.Equal(t, used, a.inUse)
	require.Equal(t, free, a.cached)
	require.Equal(t, largest, a.largest())
	require.EqualValues(t, blocks, a.blocks)
	require.GreaterOrEqual(t, a.high, a.inUse)
	for i := range a.free {
		walk(t, a.free[i].root, func(s *span) {
			require.True(t, gaps[i][s], "the tree holds the gaps")
			delete(gaps[i], s)
		})
		require.Empty(t, gaps[i])
	}
}

// walk visits a tree in order and checks its invariants.
func walk(t require.TestingT, n *span, visit func(*span)) {
	if n == nil {
		return
	}
	for _, c := range []*span{n.left, n.right} {
		require.True(t, c == nil || c.priority <= n.priority)
	}
	require.True(t, n.left == nil || n.left.less(n))
	require.True(t, n.right == nil || n.less(n.right))
	walk(t, n.left, visit)
	visit(n)
	walk(t, n.right, visit)
}

// sizes favours the limits between the classes.
func sizes() *rapid.Generator[uint64] {
	edge := rapid.Custom(func(t *rapid.T) uint64 {
		e := rapid.SampledFrom([]uint64{1, alignment, smallBlock, mediumBlock, smallSegment, mediumSegment}).Draw(t, "edge")
		return e + uint64(rapid.IntRange(-1, 1).Draw(t, "off"))
	})
	return rapid.OneOf(edge, rapid.Uint64Range(0, 5000), rapid.Uint64Range(0, 3<<20), rapid.Uint64Range(0, 80<<20))
}

func TestArenaRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHeap(rapid.Uint64Range(1<<20, 400<<20).Draw(t, "room"))
		limit := rapid.OneOf(rapid.Just(uint64(math.MaxUint64)), rapid.Uint64Range(1, 300<<20)).Draw(t, "limit")
		a := &arena{from: h, limit: limit}
		var live []*span
		content := map[*span]uint64{} // the size asked for
		var high uint64
		t.Repeat(map[string]func(*rapid.T){
			"get": func(t *rapid.T) {
				bytes := sizes().Draw(t, "bytes")
				before := a.inUse
				s, err := a.get(bytes, rapid.SampledFrom([]class{0, kind}).Draw(t, "kind"))
				if err != nil {
					require.ErrorIs(t, err, compute.ErrOutOfMemory)
					// There really was no gap, nor room for one.
					size := max(roundUp(bytes, alignment), alignment)
					require.Less(t, a.largest(), size)
					last := h.requests
					full := limit-a.inUse-a.cached < size ||
						len(last) > 0 && last[len(last)-1] > h.room && last[len(last)-1] < size+granularity
					require.True(t, full, "%d refused with %d of room", size, h.room)
					require.Equal(t, before, a.inUse)
					return
				}
				require.Zero(t, s.at%alignment)
				require.GreaterOrEqual(t, s.size, bytes)
				require.Less(t, s.size, max(bytes, 1)+alignment)
				for _, o := range live {
					require.True(t, s.at+s.size <= o.at || o.at+o.size <= s.at, "blocks overlap")
				}
				live = append(live, s)
				content[s] = bytes
				high = max(high, a.inUse)
			},
			"put": func(t *rapid.T) {
				if len(live) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				a.put(live[i], 0)
				live = slices.Delete(live, i, i+1)
			},
			"trim": func(t *rapid.T) {
				require.NoError(t, a.trim())
				for _, s := range a.segments {
					require.True(t, s.first.used || s.first.next != nil, "an idle segment was kept")
				}
			},
			"": func(t *rapid.T) {
				inspect(t, a, h)
				require.Equal(t, high, a.high)
				require.LessOrEqual(t, h.total(), limit)
			},
		})
		for _, s := range live {
			a.put(s, 0)
		}
		inspect(t, a, h)
		require.Zero(t, a.inUse)
		require.NoError(t, a.trim())
		require.Empty(t, h.live)
		require.Zero(t, a.cached)
	})
}

// Best fit: the smallest gap that is large enough is taken, the lowest of several.
func TestArenaBestFit(t *testing.T) {
	a := &arena{from: newHeap(1 << 30), limit: math.MaxUint64}
	var all []*span
	for _, n := range []uint64{5, 1, 3, 1, 2, 1, 3, 1} { // odd ones stay as walls
		s, err := a.get(n*alignment, 0)
		require.NoError(t, err)
		all = append(all, s)
	}
	at := func(i int) uint64 { return all[i].at }
	want := []uint64{at(4), at(2), at(6), at(0)}
	for i := 0; i < len(all); i += 2 {
		a.put(all[i], 0)
	}
	for i, n := range []uint64{2, 3, 3, 4} {
		s, err := a.get(n*alignment, 0)
		require.NoError(t, err)
		require.Equal(t, want[i], s.at)
	}
}

func TestArenaSegments(t *testing.T) {
	h := newHeap(1 << 40)
	a := &arena{from: h, limit: math.MaxUint64}
	for _, n := range []uint64{1, smallBlock - alignment, smallBlock, mediumBlock - 1, mediumBlock, mediumBlock + 1,
		100<<20 + 1} {
		_, err := a.get(n, 0)
		require.NoError(t, err)
	}
	require.Equal(t, []uint64{smallSegment, mediumSegment, 16 << 20, 18 << 20, 102 << 20}, h.requests[:5])
	_, err := a.get(math.MaxUint64, 0)
	require.ErrorIs(t, err, compute.ErrOutOfMemory)
	_, err = a.get(math.MaxUint64-2*granularity/3, 0)
	require.ErrorIs(t, err, compute.ErrOutOfMemory)
	require.NoError(t, a.close())
	require.Empty(t, h.live)
}

// A small block does not keep a larger segment alive, and one small segment serves many.
func TestArenaClasses(t *testing.T) {
	h := newHeap(1 << 40)
	a := &arena{from: h, limit: math.MaxUint64}
	large, err := a.get(64<<20, 0)
	require.NoError(t, err)
	a.put(large, 0)
	for range smallSegment / 1024 {
		_, err := a.get(1000, 0)
		require.NoError(t, err)
	}
	require.Equal(t, []uint64{64 << 20, smallSegment}, h.requests)
	require.NoError(t, a.trim())
	require.Len(t, h.live, 1)
}

// A refusal is answered by giving idle segments back, after what is pending, and by one more, smaller, request.
func TestArenaShort(t *testing.T) {
	h := newHeap(40 << 20)
	reclaimed := 0
	a := &arena{from: h, limit: math.MaxUint64}
	idle, err := a.get(20<<20, 0)
	require.NoError(t, err)
	a.reclaim = func() error { reclaimed++; a.put(idle, 0); return nil }
	s, err := a.get(2<<20, 0) // wants a segment of 32 MiB; there are 20, but the reclaimed 20 hold it
	require.NoError(t, err)
	require.Equal(t, idle.at, s.at)
	require.Equal(t, 1, reclaimed)
	require.EqualValues(t, 1, a.obtained)
	a.reclaim = func() error { reclaimed++; return nil }
	a.put(s, 0)
	_, err = a.get(40<<20, 0) // only after the idle one went back
	require.NoError(t, err)
	require.Equal(t, 2, reclaimed)
	_, err = a.get(1, 0)
	require.ErrorIs(t, err, compute.ErrOutOfMemory)
	require.Equal(t, []uint64{20 << 20, 32 << 20, 40 << 20, 40 << 20, smallSegment, smallSegment}, h.requests)
	a.reclaim = func() error { return compute.ErrDeviceLost }
	_, err = a.get(1, 0)
	require.ErrorIs(t, err, compute.ErrDeviceLost)
	inspect(t, a, h)
}

func TestArenaAllocatesNothing(t *testing.T) {
	a := &arena{from: newHeap(1 << 40), limit: math.MaxUint64}
	var live [16]*span
	n := uint64(0)
	step := func() {
		for i := range live {
			n = n*6364136223846793005 + 1442695040888963407
			if live[i] != nil {
				a.put(live[i], 0)
			}
			live[i], _ = a.get(n>>44, 0)
		}
	}
	for range 100 {
		step()
	}
	require.Zero(t, testing.AllocsPerRun(100, step))
}

func BenchmarkArena(b *testing.B) {
	a := &arena{from: newHeap(1 << 40), limit: math.MaxUint64}
	var live [1024]*span
	n := uint64(0)
	b.ReportAllocs()
	for i := range b.N {
		n = n*6364136223846793005 + 1442695040888963407
		s := &live[i%len(live)]
		if *s != nil {
			a.put(*s, 0)
		}
		*s, _ = a.get(n>>44, 0)
	}
}
