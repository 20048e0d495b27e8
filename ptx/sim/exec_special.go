package sim

import (
	"fmt"
	"strings"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

// special is a special register that does not change while a block runs.
type special struct {
	typ  ir.Type
	read func(w *warp, lane int) uint64
}

// perBlock are those that differ from block to block of a launch, but not within a block.
var perBlock = map[string]bool{
	"%ctaid.x": true, "%ctaid.y": true, "%ctaid.z": true, "%clusterid.x": true, "%clusterid.y": true, "%clusterid.z": true, "%smid": true,
}

// The multiprocessors of the imaginary GPU, and the warps that fit on each.
const (
	multiprocessors = 132
	warpsPerSM      = 64
)

// specials are all of them by name.
var specials = sync.OnceValue(func() map[string]special {
	all := map[string]special{
		"%laneid":      {ir.U32, func(_ *warp, lane int) uint64 { return uint64(lane) }},
		"%warpid":      {ir.U32, func(w *warp, _ int) uint64 { return uint64(w.index) }},
		"%nwarpid":     constSpecial(ir.U32, warpsPerSM),
		"%smid":        {ir.U32, func(w *warp, _ int) uint64 { return uint64(w.block.linear() % multiprocessors) }},
		"%nsmid":       constSpecial(ir.U32, multiprocessors),
		"%gridid":      constSpecial(ir.U64, 1),
		"%lanemask_eq": {ir.U32, func(_ *warp, l int) uint64 { return 1 << l }},
		"%lanemask_le": {ir.U32, func(_ *warp, l int) uint64 { return 2<<l - 1 }},
		"%lanemask_lt": {ir.U32, func(_ *warp, l int) uint64 { return 1<<l - 1 }},
		"%lanemask_ge": {ir.U32, func(_ *warp, l int) uint64 { return uint64(full << l) }},
		"%lanemask_gt": {ir.U32, func(_ *warp, l int) uint64 { return uint64(full << l << 1) }},

		"%is_explicit_cluster": {ir.Pred, func(w *warp, _ int) uint64 { return uint64(b2i(w.block.grid.clustered)) }},
		"%cluster_ctarank":     {ir.U32, func(w *warp, _ int) uint64 { return uint64(w.block.rank) }},
		"%cluster_nctarank":    {ir.U32, func(w *warp, _ int) uint64 { return uint64(len(w.block.cluster.blocks)) }},

		"%total_smem_size":   {ir.U32, func(w *warp, _ int) uint64 { return uint64(len(w.block.shared.data)) }},
		"%aggr_smem_size":    {ir.U32, func(w *warp, _ int) uint64 { return uint64(len(w.block.shared.data)) }},
		"%dynamic_smem_size": {ir.U32, func(w *warp, _ int) uint64 { return uint64(w.block.grid.launch.Shared) }},

		"%reserved_smem_offset_begin": constSpecial(ir.U32, 0),
		"%reserved_smem_offset_end":   constSpecial(ir.U32, 0),
		"%reserved_smem_offset_cap":   constSpecial(ir.U32, 0),
		"%reserved_smem_offset_0":     constSpecial(ir.U32, 0),
		"%reserved_smem_offset_1":     constSpecial(ir.U32, 0),
		"%current_graph_exec":         constSpecial(ir.U64, 0),
	}
	dims := map[string]func(w *warp, lane int) Dim3{
		"%tid":            func(w *warp, lane int) Dim3 { return w.thread(lane) },
		"%ntid":           func(w *warp, _ int) Dim3 { return w.block.grid.launch.Block },
		"%ctaid":          func(w *warp, _ int) Dim3 { return w.block.id },
		"%nctaid":         func(w *warp, _ int) Dim3 { return w.block.grid.launch.Grid },
		"%clusterid":      func(w *warp, _ int) Dim3 { return w.block.cluster.id },
		"%nclusterid":     func(w *warp, _ int) Dim3 { return w.block.grid.shape },
		"%cluster_ctaid":  func(w *warp, _ int) Dim3 { return w.block.grid.launch.Cluster.at(w.block.rank) },
		"%cluster_nctaid": func(w *warp, _ int) Dim3 { return w.block.grid.launch.Cluster },
	}
	for name, dim := range dims {
		all[name+".x"] = special{ir.U32, func(w *warp, l int) uint64 { return uint64(dim(w, l).X) }}
		all[name+".y"] = special{ir.U32, func(w *warp, l int) uint64 { return uint64(dim(w, l).Y) }}
		all[name+".z"] = special{ir.U32, func(w *warp, l int) uint64 { return uint64(dim(w, l).Z) }}
	}
	for i := range 32 {
		all[fmt.Sprintf("%%envreg%d", i)] = constSpecial(ir.B32, 0)
	}
	all["%envreg1"] = special{ir.B32, func(w *warp, _ int) uint64 { return w.block.grid.workspaceAddress() >> 32 }}
	all["%envreg2"] = special{ir.B32, func(w *warp, _ int) uint64 { return w.block.grid.workspaceAddress() & 0xffffffff }}
	for i := range 8 {
		all[fmt.Sprintf("%%pm%d", i)] = constSpecial(ir.U32, 0)
		all[fmt.Sprintf("%%pm%d_64", i)] = constSpecial(ir.U64, 0)
	}
	return all
})

// workspaceAddress is where the workspace of a cooperative launch lies, 0 in other launches.
func (g *grid) workspaceAddress() uint64 {
	if g.workspace == nil {
		return 0
	}
	return g.workspace.base
}

// volatileSpecials are special registers that change: clocks count the instructions of the worker, a microsecond has a
// thousand. pm counters are 0.
var volatileSpecials = map[string]func(w *warp) uint64{
	"%clock":          func(w *warp) uint64 { return w.tick() },
	"%clock64":        func(w *warp) uint64 { return w.tick() },
	"%clock_hi":       func(w *warp) uint64 { return w.tick() >> 32 },
	"%globaltimer":    func(w *warp) uint64 { return w.tick() },
	"%globaltimer_lo": func(w *warp) uint64 { return w.tick() },
	"%globaltimer_hi": func(w *warp) uint64 { return w.tick() >> 32 },
}

// tick is a time that is later at every look.
func (w *warp) tick() uint64 {
	w.work.ticks++
	return w.work.clock + w.work.ticks
}

func constSpecial(t ir.Type, v uint64) special {
	return special{t, func(*warp, int) uint64 { return v }}
}

// specialReg is the slot that holds a special register.
func (c *compiler) specialReg(in *ir.Instr, name string) (ref, error) {
	if name == "WARP_SZ" {
		return c.constant(ir.U32, warpSize), nil
	}
	if r, ok := c.prog.special[name]; ok {
		return r, nil
	}
	s, ok := specials()[name]
	if !ok {
		if volatileSpecials[name] != nil || strings.HasPrefix(name, "%clock") {
			return none, c.errorf(in, compute.ErrUnsupported, "%s can only be read by mov", name)
		}
		return none, c.errorf(in, compute.ErrUnsupported, "the software GPU has no register %s", name)
	}
	r := c.slot(s.typ)
	c.prog.special[name] = r
	return r, nil
}
