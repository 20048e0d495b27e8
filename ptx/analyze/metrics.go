package analyze

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/ptx/flow"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/roofline"
)

// KernelReport is what a kernel costs. Numbers per thread count what a thread does on average over the block: loops as often as
// they iterate if that is known, else one iteration; both ways of a branch that is not known.
type KernelReport struct {
	Name    string `json:"name"`
	Block   [3]int `json:"block"`
	Assumed bool   `json:"assumed"` // the kernel does not say how large its blocks are
	// Walked is false where the code could not be followed (loops with several entries): then everything counts once, and
	// addresses are not known.
	Walked bool `json:"walked"`
	// Incomplete says that the walk met one of its limits (so long are only unrolled kernels with loops in loops): there may be
	// more to find.
	Incomplete bool `json:"incomplete"`
	// OpenLoops are loops whose number of iterations is not known: they count as one iteration. Those of more than 256 iterations are among them and
	// count as 256.
	OpenLoops    int            `json:"open_loops"`
	Instructions int            `json:"instructions"` // in the text
	Mix          map[string]int `json:"mix"`          // of them, by kind
	Live         flow.Pressure  `json:"live"`         // most registers live at once, by width
	// Registers are those for occupancy: ptxas' count if it was given, else the live ones.
	Registers int                 `json:"registers"`
	FromPtxas bool                `json:"from_ptxas"`
	Shared    int                 `json:"shared"` // bytes per block, static and dynamic
	Local     int                 `json:"local"`  // bytes per thread
	SM        int                 `json:"sm"`
	Occupancy *roofline.Occupancy `json:"occupancy,omitempty"`
	Memory    Memory              `json:"memory"`
	Accesses  []Access            `json:"accesses"`  // instructions that touch global or shared memory
	Flops     float64             `json:"flops"`     // per thread
	Bytes     float64             `json:"bytes"`     // of global memory per thread
	Intensity float64             `json:"intensity"` // flops ÷ bytes; 0 if there are no bytes
	Rate      roofline.Rate       `json:"rate"`      // the arithmetic that most flops are of
	Placement *Placement          `json:"roofline,omitempty"`
}

// Memory is a kernel's traffic.
type Memory struct {
	GlobalLoads  Traffic `json:"global_loads"`
	GlobalStores Traffic `json:"global_stores"`
	SharedLoads  Traffic `json:"shared_loads"`
	SharedStores Traffic `json:"shared_stores"`
	LocalLoads   Traffic `json:"local_loads"`
	LocalStores  Traffic `json:"local_stores"`
	Atomics      Traffic `json:"atomics"` // of whatever memory; in no other line
	// Coalescing is the least number of sectors ÷ those touched, over global accesses whose addresses are known; 1 is best.
	Coalescing      float64 `json:"coalescing"`
	CoalescingKnown bool    `json:"coalescing_known"`
	// BankConflicts is the number of passes over the banks of shared memory ÷ the least; 1 is best.
	BankConflicts      float64 `json:"bank_conflicts"`
	BankConflictsKnown bool    `json:"bank_conflicts_known"`
}

// Access is what one instruction's addresses are like, over all warps of a block and the iterations of loops that were walked.
type Access struct {
	Pos   string `json:"pos"`
	Instr string `json:"instr"`
	Space string `json:"space"`
	Bytes int    `json:"bytes"` // per thread
	// Requests are executions by warps whose addresses are known up to a common summand.
	Requests int `json:"requests"`
	// Transactions are sectors of 32 bytes of global memory, or passes over the banks of shared memory; Ideal is the least
	// number of them for as many bytes.
	Transactions int  `json:"transactions"`
	Ideal        int  `json:"ideal"`
	Unknown      bool `json:"unknown"` // some addresses are not known
}

// Traffic is that of one kind of access.
type Traffic struct {
	Instructions int     `json:"instructions"` // in the text
	Accesses     float64 `json:"accesses"`     // per thread
	Bytes        float64 `json:"bytes"`        // per thread
}

// Placement is the kernel's place under a GPU's roofline.
type Placement struct {
	GPU        string         `json:"gpu"`
	Ridge      float64        `json:"ridge"`      // flops per byte
	Attainable float64        `json:"attainable"` // flops per second
	Peak       float64        `json:"peak"`
	Bound      roofline.Bound `json:"bound"`
}

// sm is the architecture for occupancy: what the options say, or the module's target, but at least the oldest whose limits are
// known.
func (k *kernel) sm() int {
	switch {
	case k.o.SM > 0:
		return k.o.SM
	case k.o.GPU != nil:
		return k.o.GPU.SM
	}
	return max(70, k.mod.Target.SM)
}

func (k *kernel) limits() (roofline.Limits, error) { return roofline.LimitsOf(k.sm()) }

// sharedBytes is the shared memory of a block: what the kernel mentions, and the dynamic part.
func (k *kernel) sharedBytes() int {
	mentioned := map[string]bool{}
	for i := range k.f.Body {
		for a := range k.f.Body[i].Args {
			mentions(&k.f.Body[i].Args[a], mentioned)
		}
	}
	n := 0
	add := func(v *ir.Var) {
		if v.Space == ir.SharedSpace {
			a := v.Alignment()
			n = (n+a-1)/a*a + v.Size()
		}
	}
	for i := range k.mod.Vars {
		if mentioned[k.mod.Vars[i].Name] {
			add(&k.mod.Vars[i])
		}
	}
	for i := range k.f.Vars {
		add(&k.f.Vars[i])
	}
	return n + k.o.Shared
}

// weight is how often a thread runs instruction i.
func (k *kernel) weight(i int) float64 {
	if len(k.walks) == 0 {
		return 1
	}
	return k.walks[0].seen.counts[i] / float64(k.walks[0].threads)
}

func (k *kernel) report() (KernelReport, error) {
	if k.broken {
		return KernelReport{Name: k.f.Name, Mix: map[string]int{}, Accesses: []Access{}}, nil
	}
	r := KernelReport{Name: k.f.Name, Block: k.dims, Assumed: k.assumed, Walked: len(k.walks) > 0, Mix: map[string]int{},
		Live: k.live.Pressure(), Shared: k.sharedBytes(), SM: k.sm()}
	for i := range k.f.Vars {
		if v := &k.f.Vars[i]; v.Space == ir.LocalSpace {
			r.Local += v.Size()
		}
	}
	flops := map[roofline.Rate]float64{}
	k.each(func(i int, in *ir.Instr) {
		r.Instructions++
		r.Mix[kindName(in)]++
		n, rate := opsOf(in)
		flops[rate] += n * k.weight(i)
		r.Flops += n * k.weight(i)
		k.traffic(&r.Memory, i, in)
	})
	r.Rate = roofline.F32
	for _, rate := range slices.Sorted(maps.Keys(flops)) {
		if flops[rate] > flops[r.Rate] {
			r.Rate = rate
		}
	}
	k.ratios(&r.Memory)
	r.Accesses = []Access{}
	k.used(func(i int, in *ir.Instr, u *memoryUse) {
		if u.space == ir.GlobalSpace || u.space == ir.SharedSpace {
			r.Accesses = append(r.Accesses, Access{in.Pos.String(),
				strings.TrimSuffix(k.f.InstrString(in), ";"), u.space.String(), u.size,
				u.requests, u.sectors, u.ideal, u.unknown})
		}
	})
	for _, m := range k.walks[:min(1, len(k.walks))] {
		r.Incomplete = m.seen.incomplete
		for _, open := range m.seen.open {
			r.OpenLoops += int(bit(open))
		}
	}
	r.Bytes = r.Memory.GlobalLoads.Bytes + r.Memory.GlobalStores.Bytes
	if r.Bytes > 0 {
		r.Intensity = r.Flops / r.Bytes
	}
	r.Registers, r.FromPtxas = k.registers()
	return r, k.locate(&r)
}

// locate finds occupancy and the place under the roofline.
func (k *kernel) locate(r *KernelReport) error {
	if l, err := k.limits(); err == nil {
		if o, err := l.Occupancy(product3(k.dims), min(r.Registers, l.MaxRegisters), r.Shared); err == nil {
			r.Occupancy = &o // what exceeds limits is a finding
		}
	}
	if k.o.GPU == nil || r.Bytes == 0 {
		return nil
	}
	peak, err := k.o.GPU.PeakOf(r.Rate)
	if err != nil {
		return fmt.Errorf("ptx/analyze: %s: %w", k.f.Name, err)
	}
	p := Placement{GPU: k.o.GPU.Name, Peak: peak}
	if p.Ridge, err = k.o.GPU.Ridge(r.Rate); err == nil {
		p.Attainable, err = k.o.GPU.Attainable(r.Rate, r.Intensity)
	}
	if err != nil {
		return fmt.Errorf("ptx/analyze: %s: %w", k.f.Name, err)
	}
	p.Bound, err = k.o.GPU.Bound(r.Rate, r.Intensity)
	r.Placement = &p
	return err
}

// traffic adds an instruction's accesses.
func (k *kernel) traffic(m *Memory, i int, in *ir.Instr) {
	add := func(t *Traffic, bytes float64) {
		t.Instructions++
		t.Accesses += k.weight(i)
		t.Bytes += k.weight(i) * bytes
	}
	size := float64(in.Type(0).Size() * in.Width())
	space := in.Space()
	if space == ir.NoSpace {
		space = ir.GlobalSpace
		for _, w := range k.walks {
			if u := w.seen.memory[i]; u != nil && u.space != ir.NoSpace {
				space = u.space
			}
		}
	}
	pick := func(global, shared, local *Traffic, bytes float64) {
		switch space {
		case ir.GlobalSpace:
			add(global, bytes)
		case ir.SharedSpace, ir.SharedClusterSpace:
			add(shared, bytes)
		case ir.LocalSpace:
			add(local, bytes)
		}
	}
	switch in.Kind() {
	case ir.Load:
		pick(&m.GlobalLoads, &m.SharedLoads, &m.LocalLoads, size)
	case ir.Store:
		pick(&m.GlobalStores, &m.SharedStores, &m.LocalStores, size)
	case ir.Atomic:
		add(&m.Atomics, size)
	case ir.Matrix:
		switch in.Op {
		case "ldmatrix":
			add(&m.SharedLoads, float64(4*int(in.First(ir.X1, ir.X2, ir.X4)[1]-'0')))
		case "stmatrix":
			add(&m.SharedStores, float64(4*int(in.First(ir.X1, ir.X2, ir.X4)[1]-'0')))
		case "wmma.load.a", "wmma.load.b", "wmma.load.c":
			pick(&m.GlobalLoads, &m.SharedLoads, &m.LocalLoads, fragmentBytes(in))
		case "wmma.store.d":
			pick(&m.GlobalStores, &m.SharedStores, &m.LocalStores, fragmentBytes(in))
		}
	case ir.Async:
		n := 0.0
		if len(in.Args) > 2 && in.Args[2].Kind == ir.IntOperand {
			n = float64(in.Args[2].Bits)
		}
		switch {
		case bulkStore(in):
			add(&m.GlobalStores, n)
			add(&m.SharedLoads, n)
		case in.Op == "cp.async" || in.Op == "cp.async.bulk" || in.Op == "cp.async.bulk.tensor":
			add(&m.GlobalLoads, n)
			add(&m.SharedStores, n)
		}
	}
}

// ratios finds how well accesses are coalesced and how often banks clash.
func (k *kernel) ratios(m *Memory) {
	var sectors, ideal, passes, least int
	k.used(func(_ int, in *ir.Instr, u *memoryUse) {
		switch {
		case u.space == ir.GlobalSpace && in.Kind() != ir.Atomic:
			sectors, ideal = sectors+u.sectors, ideal+u.ideal
		case u.space == ir.SharedSpace && in.Kind() != ir.Atomic && in.Kind() != ir.Mbarrier:
			passes, least = passes+u.sectors, least+u.ideal
		}
	})
	if sectors > 0 {
		m.Coalescing, m.CoalescingKnown = math.Min(1, float64(ideal)/float64(sectors)), true
	}
	if least > 0 {
		m.BankConflicts, m.BankConflictsKnown = float64(passes)/float64(least), true
	}
}

// kindName names what an instruction is for.
func kindName(in *ir.Instr) string {
	switch in.Kind() {
	case ir.Arithmetic, ir.Carry:
		if in.Type(0).IsFloat() {
			return "float"
		}
		return "integer"
	case ir.Move:
		return "move"
	case ir.SetPred:
		return "compare"
	case ir.Load:
		return "load"
	case ir.Store:
		return "store"
	case ir.Atomic:
		return "atomic"
	case ir.Branch, ir.Call, ir.Leave:
		return "control"
	case ir.Barrier, ir.Fence, ir.Mbarrier:
		return "synchronisation"
	case ir.WarpSync:
		return "warp"
	case ir.Matrix, ir.Wgmma:
		return "matrix"
	case ir.Async:
		return "copy"
	}
	return "other"
}
