package analyze

import (
	"github.com/wavelane/wavelane/ptx/ir"
)

var asyncDetectors = []Detector{
	{Class: "MissingAsyncWait", Severity: Bug,
		Doc: "Memory is accessed while cp.async still copies to it: no cp.async.wait_group, with a count low enough, came before.",
		Fix: "Wait for the group with cp.async.wait_group N, N being the groups committed later, and then pass a barrier.",
		run: detectPendingCopies},
	{Class: "MissingAsyncCommit", Severity: Bug,
		Doc: "Copies by cp.async are never committed to a group, so that no cp.async.wait_group waits for them.",
		Fix: "Put cp.async.commit_group after the copies.", run: detectUncommitted},
	{Class: "MbarrierProtocol", Severity: Bug,
		Doc: "An mbarrier is used before it is made, a wait's answer is ignored, or the bytes announced are not those copied: " +
			"threads wait for ever or not at all.",
		Fix: "Make it with mbarrier.init by one thread before a barrier, loop until try_wait says true, and announce with " +
			"expect_tx just the bytes that are copied.",
		run: detectMbarrier},
	{Class: "WgmmaProtocol", Severity: Bug,
		Doc: "wgmma works asynchronously: it needs wgmma.fence after registers were written, a commit before the wait, and a wait " +
			"before its results are read.",
		Fix: "wgmma.fence, wgmma.mma_async …, wgmma.commit_group, wgmma.wait_group, in this order.", run: detectWgmma},
	{Class: "MissingProxyFence", Severity: Bug,
		Doc: "A bulk copy reads shared memory through the async proxy, which does not see ordinary writes before fence.proxy.async.",
		Fix: "Put fence.proxy.async.shared::cta between the writes and the barrier before the copy.", run: detectProxyFence},
	{Class: "SetmaxnregSum", Severity: Bug,
		Doc: "What the warps of a block ask for by setmaxnreg must be in steps of 8 from 24 to 256, and their sum must fit into " +
			"the multiprocessor's 65,536 registers: otherwise setmaxnreg.inc waits for ever.",
		Fix: "Give producers less (24 to 40) so that what consumers ask for fits.", run: detectSetmaxnreg},
}

func detectPendingCopies(k *kernel, report reporter) {
	waited := false
	k.each(func(_ int, in *ir.Instr) {
		switch in.Op {
		case "cp.async.wait_group", "cp.async.wait_all", "cp.async.mbarrier.arrive":
			waited = true
		}
	})
	for _, m := range k.walks {
		for i := range k.f.Body {
			if !waited && m.seen.unwaited[i] {
				report(i, "nothing in the kernel waits for this copy")
			}
			for j := range k.f.Body {
				if m.seen.hazards[[2]int{i, j}] {
					report(i, "the copy of %s to this place may not have arrived", k.place(j))
				}
			}
		}
	}
}

func detectUncommitted(k *kernel, report reporter) {
	for _, m := range k.walks {
		for i := range k.f.Body {
			if m.seen.uncommit[i] {
				report(i, "no cp.async.commit_group follows this copy")
			}
		}
	}
}

func detectMbarrier(k *kernel, report reporter) {
	if len(k.walks) == 0 {
		return
	}
	m := k.walks[0]
	made := map[*symbol]bool{}
	unknown := false
	k.each(func(i int, in *ir.Instr) {
		if in.Op != "mbarrier.init" {
			return
		}
		if v := m.seen.addresses[i]; v != nil && v.base() != nil {
			made[v.base()] = true
		} else {
			unknown = true
		}
	})
	k.each(func(i int, in *ir.Instr) {
		if in.Kind() != ir.Mbarrier || in.Op == "mbarrier.init" || in.Op == "mbarrier.pending_count" {
			return
		}
		if v := m.seen.addresses[i]; v != nil && !unknown {
			if b := v.base(); b != nil && b.space == ir.SharedSpace && !made[b] {
				report(i, "no mbarrier.init makes the mbarrier at %s", b.name)
			}
		}
		if in.Op == "mbarrier.try_wait" || in.Op == "mbarrier.test_wait" {
			used := false
			k.g.Writes(i, func(r ir.Reg) { used = used || len(k.reach.Uses(i, r)) > 0 })
			if !used {
				report(i, "whether the phase is over is not looked at: %s does not wait by itself", in.Op)
			}
		}
	})
	for b := range k.g.Blocks {
		k.checkBytes(m, b, report)
	}
}

// checkBytes compares what a block of instructions announces to an mbarrier with what it copies under it.
func (k *kernel) checkBytes(m *machine, b int, report reporter) {
	type sums struct{ expected, copied, at int64 }
	bars := map[string]*sums{}
	var order []*sums
	unknown := false
	get := func(v *vec) *sums {
		key := string(v.key(nil))
		if bars[key] == nil {
			bars[key] = &sums{at: -1}
			order = append(order, bars[key])
		}
		return bars[key]
	}
	for i := k.g.Blocks[b].Start; i < k.g.Blocks[b].End; i++ {
		in := &k.f.Body[i]
		switch {
		case in.Op == "mbarrier.expect_tx" || in.Op == "mbarrier.arrive" && in.Has("expect_tx"):
			o := &in.Args[len(in.Args)-1]
			v := m.seen.addresses[i]
			if o.Kind != ir.IntOperand || v == nil {
				unknown = true
				continue
			}
			s := get(v)
			s.expected += int64(o.Bits)
			s.at = int64(i)
		case in.Op == "cp.async.bulk" && len(in.Args) > 3 && in.Args[3].Kind == ir.AddrOperand:
			v := m.seen.others[i]
			if in.Args[2].Kind != ir.IntOperand || v == nil || in.Guard.Reg != 0 {
				unknown = true
				continue
			}
			get(v).copied += int64(in.Args[2].Bits)
		case in.Op == "cp.async.bulk.tensor":
			unknown = true
		}
	}
	for _, s := range order {
		if !unknown && s.at >= 0 && s.copied > 0 && s.expected != s.copied {
			report(int(s.at), "%d bytes are announced, %d are copied", s.expected, s.copied)
		}
	}
}

func detectSetmaxnreg(k *kernel, report reporter) {
	first := -1
	k.each(func(i int, in *ir.Instr) {
		if in.Op != "setmaxnreg" || len(in.Args) == 0 {
			return
		}
		if first < 0 {
			first = i
		}
		if n := int64(in.Args[0].Bits); n%8 != 0 || n < 24 || n > 256 {
			report(i, "%d is not a multiple of 8 from 24 to 256", n)
		}
	})
	if first < 0 {
		return
	}
	for _, m := range k.walks {
		sum := 0
		for w := range (m.threads + 31) / 32 {
			sum += m.seen.maxreg[w] * 32
		}
		if sum > 64<<10 {
			report(first, "the warps ask for %d registers together", sum)
		}
	}
}

// forward walks facts along the control flow until they no longer change: join merges what two ways bring, pass takes a fact
// over an instruction. It returns the facts before each block.
func forward[F any](k *kernel, start F, join func(a, b F) (F, bool), pass func(f F, i int) F) []*F {
	in := make([]*F, len(k.g.Blocks))
	in[0] = &start
	for changed := true; changed; {
		changed = false
		for _, b := range k.g.RPO {
			if in[b] == nil {
				continue
			}
			f := *in[b]
			for i := k.g.Blocks[b].Start; i < k.g.Blocks[b].End; i++ {
				f = pass(f, i)
			}
			for _, s := range k.g.Blocks[b].Succs {
				if in[s] == nil {
					g := f
					in[s], changed = &g, true
					continue
				}
				if g, grew := join(*in[s], f); grew {
					in[s], changed = &g, true
				}
			}
		}
	}
	return in
}

// wgmmaFacts is where the protocol of wgmma stands.
type wgmmaFacts struct {
	unfenced bool // on some way no fence came since registers were written
	open     bool // on some way something is not committed
	flight   bool // on some way something is not awaited
}

func detectWgmma(k *kernel, report reporter) {
	accumulators := map[ir.Reg]bool{}
	any := false
	k.each(func(i int, in *ir.Instr) {
		if in.Op == "wgmma.mma_async" {
			any = true
			in.Args[0].Regs(func(r ir.Reg) { accumulators[r] = true })
		}
	})
	if !any {
		return
	}
	pass := func(f wgmmaFacts, i int) wgmmaFacts {
		in := &k.f.Body[i]
		switch in.Op {
		case "wgmma.fence":
			f.unfenced = false
		case "wgmma.mma_async":
			f.open, f.flight = true, true
		case "wgmma.commit_group":
			f.open = false
		case "wgmma.wait_group":
			f.open, f.flight = false, false
		default:
			k.g.Writes(i, func(r ir.Reg) { f.unfenced = f.unfenced || accumulators[r] })
		}
		return f
	}
	join := func(a, b wgmmaFacts) (wgmmaFacts, bool) {
		c := wgmmaFacts{a.unfenced || b.unfenced, a.open || b.open, a.flight || b.flight}
		return c, c != a
	}
	in := forward(k, wgmmaFacts{unfenced: true}, join, pass)
	for _, b := range k.g.RPO {
		if in[b] == nil {
			continue
		}
		f := *in[b]
		for i := k.g.Blocks[b].Start; i < k.g.Blocks[b].End; i++ {
			op := k.f.Body[i].Op
			switch {
			case op == "wgmma.mma_async" && f.unfenced:
				report(i, "no wgmma.fence comes between the writes of its registers and this instruction")
			case op == "wgmma.wait_group" && f.open:
				report(i, "wgmma.mma_async before it is not committed, so that this does not wait for it")
			case k.f.Body[i].Kind() == ir.Leave && f.open:
				report(i, "wgmma.mma_async is never committed")
			case k.f.Body[i].Kind() != ir.Wgmma && f.flight:
				k.g.Reads(i, func(r ir.Reg) {
					if accumulators[r] {
						report(i, "%s is read while wgmma.mma_async may still write it", k.f.Regs[r].Name)
					}
				})
			}
			f = pass(f, i)
		}
	}
}

func detectProxyFence(k *kernel, report reporter) {
	if len(k.walks) == 0 {
		return
	}
	m := k.walks[0]
	pass := func(dirty map[*symbol]bool, i int) map[*symbol]bool {
		in := &k.f.Body[i]
		switch {
		case in.Op == "fence.proxy" && in.First("async", "async.shared::cta", "async::generic") != "":
			return map[*symbol]bool{}
		case in.Op == "st" || in.Op == "stmatrix":
			v := m.seen.addresses[i]
			if v == nil || v.base() == nil || v.base().space != ir.SharedSpace || dirty[v.base()] {
				return dirty
			}
			out := map[*symbol]bool{v.base(): true}
			for s := range dirty {
				out[s] = true
			}
			return out
		}
		return dirty
	}
	join := func(a, b map[*symbol]bool) (map[*symbol]bool, bool) {
		out, grew := map[*symbol]bool{}, false
		for s := range a {
			out[s] = true
		}
		for s := range b {
			grew = grew || !out[s]
			out[s] = true
		}
		return out, grew
	}
	in := forward(k, map[*symbol]bool{}, join, pass)
	for _, b := range k.g.RPO {
		if in[b] == nil {
			continue
		}
		f := *in[b]
		for i := k.g.Blocks[b].Start; i < k.g.Blocks[b].End; i++ {
			if v := m.seen.others[i]; v != nil && bulkStore(&k.f.Body[i]) && f[v.base()] {
				report(i, "%s was written by ordinary stores, and no fence.proxy.async came since", v.base().name)
			}
			f = pass(f, i)
		}
	}
}

// bulkStore tells bulk copies out of shared memory.
func bulkStore(in *ir.Instr) bool {
	switch in.Op {
	case "cp.async.bulk", "cp.async.bulk.tensor", "cp.reduce.async.bulk", "cp.reduce.async.bulk.tensor":
		return in.Space() == ir.GlobalSpace || in.First(ir.Global, ir.Shared, ir.SharedCTA, ir.SharedCluster) == ir.Global
	}
	return false
}
