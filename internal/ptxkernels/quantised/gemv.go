package quantised

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

// A quantised gemv multiplies up to quantVectors rows of x with rows of packed weights, which it reads once. A thread group has two
// rows of weights; each lane has units of 32 values of both. The weights may be those of three matrices, whose rows are numbered
// through, or a gate and its partner, of which a thread group has the rows of the same number.
const quantVectors = 8

// quantRooms are how many rows of x there are kernels for, and byteRooms likewise where these are bytes, which only old GPUs take
// several of: the others have quantThin.
var quantRooms, byteRooms = []int{1, 4, quantVectors}, []int{1, quantVectors}

// Flags of the kernels.
const (
	quantGate   = 1 << iota // silu(first) · second
	quantNorm               // of x, which is multiplied by gamma
	quantBiased             // there are biases
)

// gemvParams are those of quant_gemv, with Eps and Gamma, and of quant_dp4a and quant_thin, with Scales.
type gemvParams struct {
	K             int `array:"sizes"` // values of a row
	Blocks, Words int // of a row of weights
	Count         int // rows of x
	Lanes         int // log2 of the lanes of a thread group; in quant_thin of the warps
	Flags         int
	Tasks         int          // of thread groups; in quant_thin rows of the result, of which a task has eight after each of its two
	Step, Second  int          // from the first row of a task to that of the next, and to its second row
	N0, N1, N2    int          // rows of each of the three matrices
	Eps           []float32    `names:"eps"`
	X             kit.Buffer   `of:"f32 or s8"`
	Gamma         []kit.Buffer `names:"gamma"`
	Scales        []kit.Buffer `of:"u32" names:"scales"`
	W             []kit.Buffer `of:"u32"`
	B, Y          []kit.Buffer
}

// gemvFields are those of x as bytes, or as float32.
func gemvFields(bytes bool) gemvParams {
	p := gemvParams{W: make([]kit.Buffer, 3), B: make([]kit.Buffer, 3), Y: make([]kit.Buffer, 3)}
	if bytes {
		p.Scales = make([]kit.Buffer, 1)
	} else {
		p.Eps, p.Gamma = make([]float32, 1), make([]kit.Buffer, 1)
	}
	return p
}

// quantGemvs are the kernels of a format.
type quantGemvs struct{ exact, bytes []*kit.Kernel } // by room

var quantGemvKernels = ofFormats(func(f *blockFormat) (of quantGemvs) {
	for _, room := range quantRooms {
		of.exact = append(of.exact, kit.Register(kit.Kernel{Family: "quant_" + f.name(), Name: fmt.Sprintf("quant_gemv_%s_%d", f.name(), room),
			Block: [3]int{threadgroup.Threads, 1, 1},
			Doc:   fmt.Sprintf("x·wᵀ for up to %d rows of x.", room), Params: gemvFields(false),
			Build: func(k *ptx.Kernel) { newQuantGemv(k, f, room, false).buildExact() }}))
	}
	for _, room := range byteRooms {
		of.bytes = append(of.bytes, kit.Register(kit.Kernel{Family: "quant_dp4a_" + f.name(), Name: fmt.Sprintf("quant_dp4a_%s_%d", f.name(), room),
			Block: [3]int{threadgroup.Threads, 1, 1},
			Doc:   fmt.Sprintf("x·wᵀ for up to %d rows of x that quant_bytes has rounded.", room), Params: gemvFields(true),
			Build: func(k *ptx.Kernel) { newQuantGemv(k, f, room, true).buildBytes() }}))
	}
	return of
})

// quantGemv is a kernel under construction.
type quantGemv struct {
	*blockFormat
	k     *ptx.Kernel
	calc  scalar.Math
	room  int
	least int // rows of x that there are: for fewer, another kernel has room
	*kit.Params
	of        gemvParams
	weights   []ptx.Ptr[ptx.Global, uint8]
	biases, y []ptx.Ptr[ptx.Global, float32]
	group     threadgroup.Group
	lane      ptx.Reg[uint32]
	log       ptx.Reg[uint32] // of the lanes of the group
	flags     ptx.Reg[uint32]
	rows      [2]ptx.Ptr[ptx.Global, uint8]
	sums      scalar.Variables[float32] // of both rows, each for all vectors
}

func newQuantGemv(k *ptx.Kernel, f *blockFormat, room int, bytes bool) *quantGemv {
	// What ptxas needs to know lest it saves registers and spills.
	blocks := map[int]int{1: 3, 4: 2, quantVectors: 2}[room]
	if room == quantVectors && f.units() > 1 {
		blocks = 1
	}
	k.MinBlocks(blocks)
	g := quantGemvOf(k, f, room, bytes)
	rooms := quantRooms
	if bytes {
		rooms = byteRooms
	}
	if i := slices.Index(rooms, room); i > 0 {
		g.least = rooms[i-1] + 1
	}
	return g
}

func quantGemvOf(k *ptx.Kernel, f *blockFormat, room int, bytes bool) *quantGemv {
	g := &quantGemv{blockFormat: f, k: k, calc: scalar.Math{K: k}, room: room, least: 1, of: gemvFields(bytes)}
	g.Params = kit.NewParams(k, &g.of)
	return g
}

// rounded is x as bytes, and their scales.
func (g *quantGemv) rounded() (x ptx.Ptr[ptx.Global, uint8], scales ptx.Ptr[ptx.Global, uint32]) {
	return kit.Ptr[uint8](g.Params, &g.of.X, ptx.Align(16)), kit.Ptr[uint32](g.Params, &g.of.Scales[0], ptx.Align(16))
}

// apart is how many values lie between the first row of x and each of the others. Where there are fewer than room, the last is
// repeated.
func (g *quantGemv) apart() (values []ptx.Reg[uint64]) {
	for v := 1; v < g.room; v++ {
		row := ptx.U32(v)
		if v >= g.least {
			row = row.Min(g.U32(&g.of.Count).Sub(1))
		}
		values = append(values, row.MulWide(g.U32(&g.of.K)))
	}
	return values
}

// matrices reads the parameters that all kernels end with.
func (g *quantGemv) matrices() {
	for i := range 3 {
		g.weights = append(g.weights, kit.Ptr[uint8](g.Params, &g.of.W[i], ptx.Align(16)))
	}
	pointers := func(fields []kit.Buffer) (p []ptx.Ptr[ptx.Global, float32]) {
		for i := range fields {
			p = append(p, kit.Ptr[float32](g.Params, &fields[i]))
		}
		return p
	}
	g.biases, g.y = pointers(g.of.B), pointers(g.of.Y)
	g.log, g.flags = g.U32(&g.of.Lanes), g.U32(&g.of.Flags)
}

// bindRows finds the rows of the thread group.
func (g *quantGemv) bindRows() {
	k, tid := g.k, g.k.Tid(ptx.X)
	g.group = threadgroup.Group{K: k, Lanes: ptx.U32(1).Shl(g.log)}
	g.group.Lane = tid.And(g.group.Lanes.Sub(1))
	g.lane = g.group.Lane
	for i := range g.rows {
		g.rows[i] = g.rowAt(g.Place(g.row(g.task(), i)))
	}
	g.sums = scalar.Zeros(k, 2*g.room)
}

// rowAt is where a row of a matrix begins.
func (g *quantGemv) rowAt(row ptx.Reg[uint32], matrix quantMatrix) ptx.Ptr[ptx.Global, uint8] {
	k := g.k
	w := matrix.address(k, [3]ptx.Reg[uint64]{ptx.Address(g.weights[0]), ptx.Address(g.weights[1]), ptx.Address(g.weights[2])})
	bytes := row.MulWide(g.U32(&g.of.Words)).Shl(2)
	return ptx.PtrAt[ptx.Global, uint8](k, w).Bytes(bytes)
}

// elementOf is an element of one of three vectors or matrices.
func (g *quantGemv) elementOf(m quantMatrix, p []ptx.Ptr[ptx.Global, float32], i ptx.Reg[uint32]) ptx.Ptr[ptx.Global, float32] {
	a := m.address(g.k, [3]ptx.Reg[uint64]{ptx.Address(p[0]), ptx.Address(p[1]), ptx.Address(p[2])})
	return ptx.PtrAt[ptx.Global, float32](g.k, a).At(i)
}

// task is that of the thread group; there may be none of that number.
func (g *quantGemv) task() ptx.Reg[uint32] {
	k := g.k
	return k.Ctaid(ptx.X).Mad(ptx.U32(threadgroup.Threads).Shr(g.log), k.Tid(ptx.X).Shr(g.log))
}

// quantMatrix is which of three matrices a row belongs to.
type quantMatrix struct{ second, third ptx.Reg[bool] }

func (m quantMatrix) pick(k *ptx.Kernel, a, b, c ptx.Reg[uint32]) ptx.Reg[uint32] {
	return ptx.Select(m.third, c, ptx.Select(m.second, b, a))
}

func (m quantMatrix) address(k *ptx.Kernel, p [3]ptx.Reg[uint64]) ptx.Reg[uint64] {
	return ptx.Select(m.third, p[2], ptx.Select(m.second, p[1], p[0]))
}

// row is the first of a task's rows, or of the second ones.
func (g *quantGemv) row(task ptx.Reg[uint32], i int) ptx.Reg[uint32] {
	row := task.Mul(g.U32(&g.of.Step))
	if i == 1 {
		row = row.Add(g.U32(&g.of.Second))
	}
	return row
}

// Place is where a row is in its matrix. Where there is none it is another one, whose results are not written.
func (g *quantGemv) Place(row ptx.Reg[uint32]) (ptx.Reg[uint32], quantMatrix) {
	k := g.k
	first := g.U32(&g.of.N0)
	second := first.Add(g.U32(&g.of.N1))
	row = row.Min(second.Add(g.U32(&g.of.N2)).Sub(1))
	m := quantMatrix{row.Ge(first), row.Ge(second)}
	return row.Sub(m.pick(k, ptx.U32(0), first, second)), m
}

// unit is which one of its block a lane has: always the same, since thread groups are at least as large as blocks are long.
func (g *quantGemv) unit() number {
	if g.units() == 1 {
		return known(0)
	}
	return found(g.lane.And(g.units() - 1))
}

// walk calls step for each of the lane's units, or pieces, among the first n, of which a block has so many: with the number of its
// block.
func (g *quantGemv) walk(n ptx.Reg[uint32], ofBlock int, step func(block ptx.Reg[uint32])) {
	k := g.k
	rest := n.Max(g.lane).Sub(g.lane)
	iterations := rest.Add(g.group.Lanes.Sub(1)).Shr(g.log)
	per := scalar.Log2(ofBlock)
	block := ptx.VarOf(k, shiftRight(k, g.lane, known(per)))
	ptx.For(k, 0, iterations, 1, func(ptx.Reg[uint32]) {
		b := block.Get().Copy()
		step(b)
		block.Set(b.Add(shiftRight(k, g.group.Lanes, known(per))))
	}, ptx.NoUnroll())
}

// Finish adds up what the lanes have, so many at most, and writes it. factor, if there is one, is what the sums of a vector are multiplied by.
func (g *quantGemv) Finish(lanes int, factor func(v int) scalar.Float) {
	k, c := g.k, g.calc
	all := g.sums.Get()
	if sums := threadgroup.Sums[float32](len(all)); lanes > 32 {
		all = threadgroup.ReducerOf(g.group, sums).Reduce(all)
	} else {
		all = threadgroup.ReduceWarp(g.group, sums, all)
	}
	// Where results go is found only now: registers are short before.
	var vectors ptx.Reg[uint32]
	if g.room > g.least {
		vectors = g.U32(&g.of.Count)
	}
	task := g.task()
	there := task.Lt(g.U32(&g.of.Tasks))
	k.If(there.And(g.lane.Eq(0)), func() {
		gate, biased := scalar.HasFlag(k, g.flags, quantGate), scalar.HasFlag(k, g.flags, quantBiased)
		var to [2]ptx.Ptr[ptx.Global, float32]
		var across [2]ptx.Reg[uint32]
		var bias [2]scalar.Float
		for i := range to {
			row, m := g.Place(g.row(task, i))
			to[i] = g.elementOf(m, g.y, row)
			across[i] = m.pick(k, g.U32(&g.of.N0), g.U32(&g.of.N1), g.U32(&g.of.N2))
			bias[i] = ptx.LoadIf(biased, g.elementOf(m, g.biases, row), 0)
		}
		total := g.U32(&g.of.N0).Add(g.U32(&g.of.N1)).Add(g.U32(&g.of.N2))
		second := task.Mul(g.U32(&g.of.Step)).Add(g.U32(&g.of.Second))
		both := second.Lt(total).And(gate.Not())
		for v := range g.room {
			var y [2]scalar.Float
			for i := range y {
				y[i] = all[i*g.room+v]
				if factor != nil {
					y[i] = y[i].Mul(factor(v))
				}
				y[i] = y[i].Add(bias[i])
			}
			y[0] = c.Where(gate, c.Silu(y[0]).Mul(y[1]), y[0])
			for i := range y {
				at := to[i].At(ptx.U32(v).MulWide(across[i]))
				switch there := v < g.least; {
				case there && i == 0:
					at.Store(y[i])
				case there:
					ptx.StoreIf(both, at, y[i])
				case i == 0:
					ptx.StoreIf(ptx.U32(v).Lt(vectors), at, y[i])
				default:
					ptx.StoreIf(ptx.U32(v).Lt(vectors).And(both), at, y[i])
				}
			}
		}
	})
}
