package sim

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/shadow"
)

// oracle is a monitor that knows the order of accesses by the book: a full vector clock for each thread, and every
// access to every byte for ever. It asks the real one too, and compares.
type oracle struct {
	*watch
	t      *testing.T
	per    int // threads in a block
	now    [][]int
	fenced [][4][]int          // by thread and scope
	seen   [][4][]int          // by thread and distance: what strong reads have seen
	bytes  map[string][]event0 // by place
	posts  map[any]*post0
	places map[string][]release0
	saw    map[string]event0 // by place: the last strong access, if that was an atomic operation
	races  int
}

type event0 struct {
	thread, time int
	m            access0
	at           int32 // the instruction
}

// access0 is whether an access writes and the scope of a strong one.
type access0 struct {
	write bool
	scope shadow.Scope
}

type post0 struct {
	v      []int
	sealed bool
}

type release0 struct {
	thread int
	scope  shadow.Scope
	v      []int
}

func (o *oracle) begin(g *grid) {
	o.watch.begin(g)
	o.per = g.launch.Block.count()
	n := g.launch.Grid.count() * o.per
	o.now, o.fenced, o.seen = make([][]int, n), make([][4][]int, n), make([][4][]int, n)
	for i := range o.now {
		o.now[i] = make([]int, n)
		o.now[i][i] = 1
	}
	o.bytes, o.posts, o.places = map[string][]event0{}, map[any]*post0{}, map[string][]release0{}
	o.saw = map[string]event0{}
}

func (o *oracle) id(w *warp, lane int) int {
	return (w.block.id.X*o.per + w.index*warpSize) + lane
}

func joined(a, b []int) []int {
	c := make([]int, max(len(a), len(b)))
	copy(c, a)
	for i, v := range b {
		c[i] = max(c[i], v)
	}
	return c
}

func each(lanes uint32, f func(lane int)) {
	for ; lanes != 0; lanes &= lanes - 1 {
		f(bits.TrailingZeros32(lanes))
	}
}

func (o *oracle) release(w *warp, lanes uint32, key any) {
	o.watch.release(w, lanes, key)
	p := o.posts[key]
	if p == nil || p.sealed {
		p = &post0{}
		o.posts[key] = p
	}
	each(lanes, func(l int) {
		t := o.id(w, l)
		p.v = joined(p.v, o.now[t])
		o.now[t][t]++
	})
}

func (o *oracle) releaseFenced(w *warp, lanes uint32, key any) {
	o.watch.releaseFenced(w, lanes, key)
	p := o.posts[key]
	if p == nil || p.sealed {
		p = &post0{}
		o.posts[key] = p
	}
	each(lanes, func(l int) { p.v = joined(p.v, o.fenced[o.id(w, l)][shadow.Cluster]) })
}

func (o *oracle) acquire(w *warp, lanes uint32, key any) {
	o.watch.acquire(w, lanes, key)
	p := o.posts[key]
	p.sealed = true
	each(lanes, func(l int) { o.now[o.id(w, l)] = joined(o.now[o.id(w, l)], p.v) })
}

func (o *oracle) meet(w *warp, lanes uint32) {
	o.watch.meet(w, lanes)
	if w.prog.code[w.at].in.Op != "bar.warp.sync" {
		return
	}
	var all []int
	each(lanes, func(l int) { all = joined(all, o.now[o.id(w, l)]) })
	each(lanes, func(l int) {
		t := o.id(w, l)
		o.now[t] = joined(all, nil)
		o.now[t][t]++
	})
}

func (o *oracle) fence(w *warp, lanes uint32, sem, scope ir.Mod) {
	o.watch.fence(w, lanes, sem, scope)
	each(lanes, func(l int) {
		t := o.id(w, l)
		for s := shadow.CTA; s <= scopeOf(scope); s++ {
			o.now[t] = joined(o.now[t], o.seen[t][s])
			o.seen[t][s] = nil
		}
		for s := shadow.CTA; s <= scopeOf(scope); s++ {
			o.fenced[t][s] = joined(o.now[t], nil)
		}
		o.now[t][t]++
	})
}

func (o *oracle) reads(*warp, uint32, *memOp, *segment, *[warpSize]uint64) bool { return false }

// quick makes the real monitor take its quick ways, and the oracle follow.
type quick struct{ *oracle }

func (q quick) reads(w *warp, m uint32, op *memOp, s *segment, off *[warpSize]uint64) bool {
	return q.both(w, m, op, s, off, q.watch.reads)
}

func (q quick) writes(w *warp, m uint32, op *memOp, s *segment, off *[warpSize]uint64) bool {
	return q.both(w, m, op, s, off, q.watch.writes)
}

func (o *oracle) both(w *warp, m uint32, op *memOp, s *segment, off *[warpSize]uint64,
	real func(*warp, uint32, *memOp, *segment, *[warpSize]uint64) bool) bool {
	if !real(w, m, op, s, off) {
		return false
	}
	each(m, func(l int) {
		if o.judge(w, l, op, s, int(off[l])) {
			o.t.Errorf("thread %d: a race was overlooked: %s", o.id(w, l), w.access(l))
		}
	})
	return true
}

func (o *oracle) writes(*warp, uint32, *memOp, *segment, *[warpSize]uint64) bool { return false }

func (o *oracle) access(w *warp, lane int, op *memOp, s *segment, off int, undef uint32) uint32 {
	if s.space != ir.SharedSpace && s.space != ir.GlobalSpace {
		return o.watch.access(w, lane, op, s, off, undef)
	}
	want := o.judge(w, lane, op, s, off)
	defer func() {
		f, raced := recover().(*Fault)
		if raced != want {
			o.t.Errorf("thread %d: race %v, should be %v: %v; %s", o.id(w, lane), raced, want, f, w.access(lane))
		}
		if raced {
			o.races++
			panic(f)
		}
	}()
	return o.watch.access(w, lane, op, s, off, undef)
}

// judge tells whether an access races, and notes it.
func (o *oracle) judge(w *warp, lane int, op *memOp, s *segment, off int) (races bool) {
	t := o.id(w, lane)
	m := access0{write: op.write}
	if op.strong() {
		m.scope = scopeOf(op.scope)
	}
	far := func(u int) shadow.Scope {
		if u/o.per == t/o.per {
			return shadow.CTA
		}
		return shadow.GPU
	}
	place := func(i int) string { return fmt.Sprintf("%p %d", s, i) }
	if s.space == ir.SharedSpace { // blocks use the memory again
		place = func(i int) string { return fmt.Sprintf("block %d %d", w.block.id.X, i) }
	}
	repeats := m == access0{write: true} && w.repeats(lane, op, s.data[off:])
	for i := off; i < off+op.size; i++ {
		list := o.bytes[place(i)]
		last := len(list) - 1
		for last >= 0 && list[last].m != (access0{write: true}) {
			last--
		}
		if repeats && last >= 0 {
			if h := list[last]; h.at == w.at && h.thread != t && o.now[t][h.thread] < h.time {
				continue // it changes nothing
			}
		}
		saw, observed := o.saw[place(i)]
		observed = observed && m.scope == shadow.Weak && (saw.thread == t || o.now[t][saw.thread] >= saw.time)
		for _, h := range o.bytes[place(i)] {
			if observed && h.m.scope != shadow.Weak {
				continue
			}
			if h.thread != t && (m.write || h.m.write) && min(m.scope, h.m.scope) < far(h.thread) &&
				o.now[t][h.thread] < h.time {
				races = true
			}
		}
		e := event0{t, o.now[t][t], m, w.at}
		o.bytes[place(i)] = append(o.bytes[place(i)], e)
		if m.scope != shadow.Weak {
			delete(o.saw, place(i))
			if op.atomic {
				o.saw[place(i)] = e
			}
		}
	}
	if m.scope == shadow.Weak {
		if op.write {
			for i := off; i < off+op.size; i++ {
				delete(o.places, place(i))
			}
		}
		return races
	}
	at, list := place(off), o.places[place(off)]
	if !op.write || op.atomic {
		for _, r := range list {
			if d := far(r.thread); r.scope >= d && m.scope >= d {
				if op.sem == ir.Acquire || op.sem == ir.AcqRel {
					o.now[t] = joined(o.now[t], r.v)
				} else {
					o.seen[t][d] = joined(o.seen[t][d], r.v)
				}
			}
		}
	}
	if op.write {
		if !op.atomic && len(list) > 0 {
			var own []release0
			for _, r := range list {
				if r.thread == t {
					own = append(own, r)
				}
			}
			list = own
		}
		for sc := shadow.CTA; sc <= shadow.GPU; sc++ {
			if v := o.fenced[t][sc]; v != nil {
				list = append(list, release0{t, min(sc, m.scope), v})
			}
		}
		if op.sem == ir.Release || op.sem == ir.AcqRel {
			list = append(list, release0{t, m.scope, joined(o.now[t], nil)})
			o.now[t][t]++
		}
		o.places[at] = list
	}
	return races
}

// randomKernel is a few instructions that access few words, guarded by conditions on the thread, with barriers and
// fences between.
func randomKernel(rng *rand.Rand) string {
	var b strings.Builder
	pick := func(s ...string) string { return s[rng.IntN(len(s))] }
	for range 4 + rng.IntN(12) {
		guard := "@%p1 "
		switch rng.IntN(5) {
		case 0:
			fmt.Fprintf(&b, "setp.eq.u32 %%p1, %%t, %d;\n", rng.IntN(64))
		case 1:
			fmt.Fprintf(&b, "shr.u32 %%r1, %%t, 5; setp.eq.u32 %%p1, %%r1, %d;\n", rng.IntN(2))
		case 2:
			fmt.Fprintf(&b, "setp.eq.u32 %%p1, %%i, %d;\n", rng.IntN(128))
		case 3:
			fmt.Fprintf(&b, "setp.eq.u32 %%p1, %%b, %d;\n", rng.IntN(2))
		default:
			guard = ""
		}
		// %sm and %yi are words of the thread's own; the others share.
		own := "[%sm" + pick("", "", "+4", "+128") + "]"
		if guard != "" && rng.IntN(2) == 0 {
			own = "[buf+" + pick("0", "4", "200") + "]"
		}
		space := "shared"
		if rng.IntN(2) == 0 {
			space, own = "global", strings.NewReplacer("%sm", "%yi", "buf", "%y").Replace(own)
		}
		switch rng.IntN(9) {
		case 0, 1:
			fmt.Fprintf(&b, "%sst.%s.u32 %s, %%t;\n", guard, space, own)
		case 2, 3:
			fmt.Fprintf(&b, "%sld.%s.u32 %%r9, %s;\n", guard, space, own)
		case 4:
			fmt.Fprintf(&b, "%sst.%s.u8 %s, %%t;\n", guard, space, own)
		case 5:
			fmt.Fprintf(&b, "%satom.%s.%s.%s.add.u32 %%r9, %s, 1;\n", guard, pick("relaxed", "acq_rel", "acquire", "release"),
				pick("gpu", "cta"), space, own)
		case 6:
			fmt.Fprintf(&b, "%sfence.acq_rel.%s;\n", guard, pick("gpu", "cta"))
			fmt.Fprintf(&b, "%s%s.%s.%s.u32 %s;\n", guard, pick("st.relaxed", "st.release"), pick("gpu", "cta"), space, own+", %t")
		case 7:
			fmt.Fprintf(&b, "%s%s.%s.%s.u32 %%r9, %s;\n", guard, pick("ld.relaxed", "ld.acquire"), pick("gpu", "cta"), space, own)
			fmt.Fprintf(&b, "%sfence.acq_rel.%s;\n", guard, pick("gpu", "cta"))
		case 8:
			b.WriteString(pick("bar.sync 0;\n", "bar.sync 0;\n", "bar.sync 0;\n", "bar.warp.sync -1;\n",
				"setp.lt.u32 %p1, %t, 32; @%p1 bar.arrive 1, 64; @!%p1 bar.sync 1, 64;\n",
				"shr.u32 %r1, %t, 5; setp.eq.u32 %p1, %r1, %b; @%p1 bar.sync 2, 32;\n"))
		}
	}
	return b.String()
}

// TestOracle compares the monitor with the oracle on random kernels.
func TestOracle(t *testing.T) {
	rng := ptxtest.Random(t)
	n := 1000
	if testing.Short() {
		n = 100
	}
	races, runs := 0, 0
	for i := range n {
		s := &sample{name: "random", shared: 512, grid: 2, block: 64, zero: 256, ptx: randomKernel(rng)}
		cfg := Config{Checks: CheckRace, Seed: uint64(i) % 3 * rng.Uint64()}
		p := prepare(t, s, cfg, rng)
		p.gpu.mon.(*watch).races.Limits = [2]int{1 << 20, 1 << 20} // the oracle does not fold
		o := &oracle{watch: p.gpu.mon.(*watch), t: t}
		p.gpu.mon = o
		if i%2 == 0 {
			p.gpu.mon = quick{o}
		}
		_, err := p.gpu.Run(t.Context(), p.kernel, p.launch)
		if t.Failed() {
			t.Fatalf("%v\n%s", err, s.ptx)
		}
		if o.races > 0 {
			races++
			continue
		}
		if f, ok := err.(*Fault); ok && (f.Kind == BarrierDivergence || f.Kind == Deadlock) { // arrived twice, in others' place
			continue
		}
		require.NoError(t, err, s.ptx)
		runs++
	}
	t.Logf("%d kernels race, %d do not", races, runs)
	require.Positive(t, races)
	require.Positive(t, runs)
}
