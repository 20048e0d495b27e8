package shadow

import (
	"math/bits"
	"slices"
)

const (
	warpSize = 32
	full     = ^uint32(0)
)

// The order of memory accesses, as vector clocks. There is one time for the whole GPU, which goes on whenever a warp
// publishes what it did. Accesses carry the time of their warp; what a thread knows is, for each other thread, a time up
// to which that one's accesses happened before its own next one. Such a table would have as many entries as there are
// threads, but they go together in blocks and warps, so a view holds times of blocks, of warps and of threads, and a
// thread's time is the latest that applies. Compare Flanagan, Freund: FastTrack (PLDI 2009); Eizenberg et al.: BARRACUDA
// (PLDI 2017).

// stamp is the time up to which a block, warp or thread is known.
type stamp struct {
	id uint32
	t  uint64
}

// stamps are sorted by id. They are shared and never change.
type stamps []stamp

func (s stamps) at(id uint32) uint64 {
	if len(s) == 0 {
		return 0
	}
	if i, ok := slices.BinarySearchFunc(s, id, byID); ok {
		return s[i].t
	}
	return 0
}

func byID(s stamp, id uint32) int {
	switch {
	case s.id < id:
		return -1
	case s.id > id:
		return 1
	}
	return 0
}

// with is s with a time for id that is at least t.
func (s stamps) with(id uint32, t uint64) stamps {
	i, ok := slices.BinarySearchFunc(s, id, byID)
	switch {
	case !ok:
		return slices.Insert(slices.Clip(s), i, stamp{id, t})
	case s[i].t >= t:
		return s
	}
	s = slices.Clone(s)
	s[i].t = t
	return s
}

// join is the later time for each id: s itself if o adds nothing.
func (s stamps) join(o stamps) stamps {
	switch {
	case len(o) == 0 || len(s) == len(o) && &s[0] == &o[0]:
		return s
	case len(s) == 0:
		return o
	case len(o) == 1:
		return s.with(o[0].id, o[0].t)
	}
	out := make(stamps, 0, len(s)+len(o))
	i, j, more := 0, 0, false
	for i < len(s) || j < len(o) {
		switch {
		case j == len(o) || i < len(s) && s[i].id < o[j].id:
			out = append(out, s[i])
			i++
		case i == len(s) || s[i].id > o[j].id:
			out, more = append(out, o[j]), true
			j++
		default:
			out = append(out, stamp{s[i].id, max(s[i].t, o[j].t)})
			more = more || o[j].t > s[i].t
			i, j = i+1, j+1
		}
	}
	if !more {
		return s
	}
	return out
}

// keep is s without the stamps that f refuses.
func (s stamps) keep(f func(stamp) bool) stamps {
	i := slices.IndexFunc(s, func(x stamp) bool { return !f(x) })
	if i < 0 {
		return s
	}
	return slices.DeleteFunc(slices.Clone(s), func(x stamp) bool { return !f(x) })
}

// view is what a thread knows. Lanes and warps share views, so they never change.
type view struct {
	block uint32 // the thread's own block
	warp  uint32 // the thread's own warp
	all   uint64 // every thread of the block is known up to here,
	mine  uint64 // and every lane of the warp up to here
	// what is known beyond that
	blocks, warps, threads stamps
}

// clocks are the times of a launch.
type clocks struct {
	now  uint64 // the latest time given out
	base uint64 // the launch's start: all that is older is ordered
	per  uint32 // warps in a block
}

// tick begins a new time.
func (k *clocks) tick() uint64 {
	k.now++
	return k.now
}

// before tells whether v knows the threads in lanes of a warp up to t.
func (k *clocks) before(v *view, warp, lanes uint32, t uint64) bool {
	if t <= k.base {
		return true
	}
	block := warp / k.per
	switch {
	case block == v.block && t <= v.all, warp == v.warp && t <= v.mine:
		return true
	case block != v.block && t <= v.blocks.at(block), t <= v.warps.at(warp):
		return true
	}
	if len(v.threads) == 0 {
		return lanes == 0
	}
	for ; lanes != 0; lanes &= lanes - 1 {
		if t > v.threads.at(warp*warpSize+uint32(bits.TrailingZeros32(lanes))) {
			return false
		}
	}
	return true
}

// knownBlock is the time up to which v knows all threads of a block.
func (k *clocks) knownBlock(v *view, block uint32) uint64 {
	if block == v.block {
		return max(v.all, k.base)
	}
	return max(v.blocks.at(block), k.base)
}

// join is a with what b knows besides: a itself if that is nothing.
func (k *clocks) join(a, b *view) *view {
	if b == nil || a == b {
		return a
	}
	if a == nil {
		return b
	}
	n := *a
	n.blocks = n.blocks.join(b.blocks)
	switch {
	case b.block == n.block:
		n.all = max(n.all, b.all)
	case b.all > k.base && b.all > n.blocks.at(b.block):
		n.blocks = n.blocks.with(b.block, b.all)
	}
	n.warps = n.warps.join(b.warps)
	switch {
	case b.warp == n.warp:
		n.mine = max(n.mine, b.mine)
	case b.mine > k.base && b.mine > n.warps.at(b.warp):
		n.warps = n.warps.with(b.warp, b.mine)
	}
	n.threads = n.threads.join(b.threads)
	k.prune(&n)
	if n.all == a.all && n.mine == a.mine && same(n.blocks, a.blocks) && same(n.warps, a.warps) && same(n.threads, a.threads) {
		return a
	}
	return &n
}

func same(a, b stamps) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// prune drops what larger groups imply.
func (k *clocks) prune(v *view) {
	v.all = max(v.all, v.blocks.at(v.block))
	v.mine = max(v.mine, v.warps.at(v.warp))
	v.blocks = v.blocks.keep(func(s stamp) bool { return s.id != v.block })
	blockTime := func(warp uint32) uint64 {
		if warp/k.per == v.block {
			return v.all
		}
		return v.blocks.at(warp / k.per)
	}
	v.warps = v.warps.keep(func(s stamp) bool { return s.id != v.warp && s.t > blockTime(s.id) })
	v.threads = v.threads.keep(func(s stamp) bool {
		warp := s.id / warpSize
		return s.t > blockTime(warp) && s.t > v.warps.at(warp) && (warp != v.warp || s.t > v.mine)
	})
}

// Warp is what the lanes of a warp know of all others, and the time of what they do themselves.
type Warp struct {
	id, block, cluster uint32
	lo                 uint32 // the block's first warp
	epoch              uint64 // the time that accesses get
	gone               uint32 // lanes that have exited or never were
	told               uint32 // lanes that have published what they did up to epoch, one by one at instruction
	toldAt             int32
	common             *view // of all lanes; nil if they differ
	lanes              [warpSize]*view
	fences             *[warpSize]fences // nil until somebody needs them
}

// fences are what fences of a thread have to order.
type fences struct {
	released [3]snapshot // by scope: what the latest fence published, for strong writes to hand on
	pending  [3]*view    // by distance: what strong reads have seen, for the next fence to acquire
}

func (w *Warp) view(lane int) *view {
	if w.common != nil {
		return w.common
	}
	return w.lanes[lane]
}

// set gives the lanes a new view.
func (w *Warp) set(lanes uint32, v *view) {
	if lanes|w.gone == full {
		w.common = v
		return
	}
	if w.common != nil {
		if w.common == v {
			return
		}
		for i := range w.lanes {
			w.lanes[i] = w.common
		}
		w.common = nil
	}
	for m := lanes; m != 0; m &= m - 1 {
		w.lanes[bits.TrailingZeros32(m)] = v
	}
}

// publish is what the lanes together know, their own accesses so far included. The warp goes on in a new time.
func (k *clocks) publish(w *Warp, lanes uint32) *view {
	n := *k.together(w, lanes)
	if lanes|w.gone == full {
		k.home(&n, w.id)
		n.mine = w.epoch
	} else {
		own := make(stamps, 0, bits.OnesCount32(lanes))
		for m := lanes; m != 0; m &= m - 1 {
			own = append(own, stamp{w.id*warpSize + uint32(bits.TrailingZeros32(m)), w.epoch})
		}
		n.threads = n.threads.join(own)
	}
	k.prune(&n)
	w.epoch = k.tick()
	return &n
}

// home makes a view one of a warp: after a barrier warps share views.
func (k *clocks) home(v *view, warp uint32) {
	if v.warp != warp {
		if v.mine > v.all {
			v.warps = v.warps.with(v.warp, v.mine)
		}
		v.warp, v.mine = warp, v.warps.at(warp)
	}
}

// publishOne is publish for a lane, without a new time: lanes that execute the same instruction one by one share it. The
// lane's own next access begins it, see fresh.
func (k *clocks) publishOne(w *Warp, lane int, at int32) *view {
	w.told, w.toldAt = w.told|1<<lane, at
	return k.view(snapshot{w.view(lane), w.epoch}, w.id*warpSize+uint32(lane))
}

// fresh makes sure that what the lanes do now is later than what they have published.
func (k *clocks) fresh(w *Warp, lanes uint32, at int32) {
	if w.told != 0 && (w.toldAt != at || w.told&lanes != 0) {
		w.told, w.epoch = 0, k.tick()
	}
}

// together is what the lanes know if they tell each other.
func (k *clocks) together(w *Warp, lanes uint32) *view {
	if w.common != nil {
		return w.common
	}
	var v *view
	for m := lanes; m != 0; m &= m - 1 {
		v = k.join(v, w.lanes[bits.TrailingZeros32(m)])
	}
	return v
}

// learn adds a view to what the lanes know.
func (k *clocks) learn(w *Warp, lanes uint32, v *view) {
	if v == nil {
		return
	}
	if w.common != nil {
		if n := k.join(w.common, v); n != w.common {
			w.set(lanes, n)
		}
		return
	}
	for m := lanes; m != 0; {
		// lanes that share a view share the new one
		have := w.lanes[bits.TrailingZeros32(m)]
		alike := uint32(0)
		for r := m; r != 0; r &= r - 1 {
			if l := bits.TrailingZeros32(r); w.lanes[l] == have {
				alike |= 1 << l
			}
		}
		w.set(alike, k.join(have, v))
		m &^= alike
	}
}
