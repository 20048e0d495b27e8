package lower

import (
	"fmt"

	"github.com/wavelane/wavelane/ptx"
)

// A quantised gemv multiplies up to quantVectors rows of x with rows of packed weights, which it reads once. A team of lanes has two
// rows of weights; each lane has units of 32 values of both. The weights may be those of three matrices, whose rows are numbered
// through, or a gate and its partner, of which a team has the rows of the same number.
const quantVectors = 8

// quantRooms are how many rows of x there are kernels for.
var quantRooms = []int{1, 4, quantVectors}

// Flags of the kernels.
const (
	quantGate   = 1 << iota // silu(first) · second
	quantNorm               // of x, which is multiplied by gamma
	quantBiased             // there are biases
)

// Arguments in the array sizes.
const (
	quantK       = iota // values of a row
	quantBlocks         // of a row of weights
	quantWords          // likewise
	quantCount          // rows of x
	quantLanes          // log2 of the lanes of a team
	quantFlags          //
	quantTasks          // of teams
	quantStep           // from the first row of a task to that of the next,
	quantSecond         // and to its second row
	quantRows           // of each of the three matrices
	quantSizes   = quantRows + 3
	quantSizeDoc = "u32 sizes[] (values of a row; blocks and words of a row of weights; rows of x; log2 of the lanes of a team; flags; " +
		"tasks; rows from a task to the next and to its second row; rows of each matrix)"
)

// quantGemvs are the kernels of a format.
type quantGemvs struct{ exact, bytes []*Kernel } // by room

var quantGemvKernels = map[*blockFormat]quantGemvs{}

func init() {
	for _, f := range blockFormats {
		var of quantGemvs
		for _, room := range quantRooms {
			of.exact = append(of.exact, register(Kernel{Family: "quant_" + f.name(), Name: fmt.Sprintf("quant_gemv_%s_%d", f.name(), room),
				Block: [3]int{teamThreads, 1, 1},
				Doc: fmt.Sprintf("x·wᵀ for up to %d rows of x. Parameters: %s, f32 eps, f32* x, f32* gamma, u32* weights, f32* biases, f32* "+
					"results of three matrices.", room, quantSizeDoc),
				build: func(k *ptx.Kernel) { newQuantGemv(k, f, room).buildExact() }}))
			of.bytes = append(of.bytes, register(Kernel{Family: "quant_dp4a_" + f.name(), Name: fmt.Sprintf("quant_dp4a_%s_%d", f.name(), room),
				Block: [3]int{teamThreads, 1, 1},
				Doc: fmt.Sprintf("x·wᵀ for up to %d rows of x that quant_bytes has rounded. Parameters: %s, s8* x, u32* scales, u32* weights, "+
					"f32* biases, f32* results of three matrices.", room, quantSizeDoc),
				build: func(k *ptx.Kernel) { newQuantGemv(k, f, room).buildBytes() }}))
		}
		quantGemvKernels[f] = of
	}
}

// quantGemv is a kernel under construction.
type quantGemv struct {
	*blockFormat
	k           *ptx.Kernel
	calc        calc
	room        int
	sizes       ptx.Array[uint32]
	weights     []ptx.Ptr[ptx.Global, uint8]
	biases, y   []ptx.Ptr[ptx.Global, float32]
	team        team
	log         ptx.Reg[uint32] // of the team's lanes
	flags       ptx.Reg[uint32]
	vectors     ptx.Reg[uint32]
	task        ptx.Reg[uint32]
	there       ptx.Reg[bool] // whether there is such a task; those of others compute the last one
	rows        []quantRow
	sums        variables[float32] // of both rows, each for all vectors
	lane, turns ptx.Reg[uint32]
}

// quantRow is a row of the weights, and where its results go.
type quantRow struct {
	there  ptx.Reg[bool]
	at     ptx.Ptr[ptx.Global, uint8]
	y      ptx.Ptr[ptx.Global, float32]
	across ptx.Reg[uint32] // from a vector's result to the next one's
	bias   float
}

func newQuantGemv(k *ptx.Kernel, f *blockFormat, room int) *quantGemv {
	k.MinBlocks(map[int]int{1: 4, 4: 2, quantVectors: 2}[room]) // what ptxas needs to know lest it saves registers and spills
	g := &quantGemv{blockFormat: f, k: k, calc: calc{k}, room: room, sizes: ptx.ParamArray[uint32](k, "sizes", quantSizes)}
	return g
}

func (g *quantGemv) size(i int) ptx.Reg[uint32] { return g.sizes.At(g.k, i) }

// matrices reads the parameters that all kernels end with, and finds the team's rows.
func (g *quantGemv) matrices() {
	k := g.k
	for i := range 3 {
		g.weights = append(g.weights, ptx.PointerParam[uint8](k, fmt.Sprint("w", i), ptx.Align(16)))
	}
	pointers := func(name string) (p []ptx.Ptr[ptx.Global, float32]) {
		for i := range 3 {
			p = append(p, ptx.PointerParam[float32](k, fmt.Sprint(name, i)))
		}
		return p
	}
	g.biases, g.y = pointers("b"), pointers("y")
	g.log, g.flags, g.vectors = g.size(quantLanes), g.size(quantFlags), g.size(quantCount)
	tid := k.Tid(ptx.X)
	g.team = team{k: k, lanes: ptx.Shl(k, u32(1), g.log)}
	g.team.lane = ptx.And(k, tid, ptx.Sub(k, g.team.lanes, u32(1)))
	g.lane = g.team.lane
	task := ptx.Mad(k, k.Ctaid(ptx.X), ptx.Shr(k, u32(teamThreads), g.log), ptx.Shr(k, tid, g.log))
	tasks := g.size(quantTasks)
	g.there = ptx.Lt(k, task, tasks)
	g.task = ptx.Min(k, task, ptx.Sub(k, tasks, u32(1)))
	first := ptx.Mul(k, g.task, g.size(quantStep))
	second := ptx.Add(k, first, g.size(quantSecond))
	ends := [3]ptx.Reg[uint32]{g.size(quantRows)}
	for i := 1; i < 3; i++ {
		ends[i] = ptx.Add(k, ends[i-1], g.size(quantRows+i))
	}
	for i, row := range []ptx.Reg[uint32]{first, second} {
		r := quantRow{there: g.there}
		if i == 1 {
			r.there = ptx.And(k, g.there, ptx.Lt(k, row, ends[2]))
			row = ptx.Min(k, row, ptx.Sub(k, ends[2], u32(1)))
		}
		last, other := ptx.Ge(k, row, ends[1]), ptx.Ge(k, row, ends[0])
		three := func(a, b, c ptx.Reg[uint32]) ptx.Reg[uint32] {
			return ptx.Select(k, last, c, ptx.Select(k, other, b, a))
		}
		address := func(p [3]ptx.Reg[uint64]) ptx.Reg[uint64] {
			return ptx.Select(k, last, p[2], ptx.Select(k, other, p[1], p[0]))
		}
		of := func(p []ptx.Ptr[ptx.Global, float32]) ptx.Ptr[ptx.Global, float32] {
			return ptx.PtrAt[ptx.Global, float32](k, address([3]ptx.Reg[uint64]{ptx.Address(k, p[0]), ptx.Address(k, p[1]), ptx.Address(k, p[2])}))
		}
		row = ptx.Sub(k, row, three(u32(0), ends[0], ends[1]))
		r.across = three(g.size(quantRows), g.size(quantRows+1), g.size(quantRows+2))
		w := address([3]ptx.Reg[uint64]{ptx.Address(k, g.weights[0]), ptx.Address(k, g.weights[1]), ptx.Address(k, g.weights[2])})
		bytes := ptx.Shl(k, ptx.MulWideU32(k, row, g.size(quantWords)), u32(2))
		r.at = ptx.AtByte(k, ptx.PtrAt[ptx.Global, uint8](k, w), bytes)
		r.y = ptx.At(k, of(g.y), row)
		r.bias = ptx.LoadIf(k, hasFlag(k, g.flags, quantBiased), ptx.At(k, of(g.biases), row), num(0))
		g.rows = append(g.rows, r)
	}
	g.sums = variablesOf(k, constants(make([]float32, 2*g.room)))
}

// unit is which one of its block a lane has: always the same, since teams are at least as large as blocks are long.
func (g *quantGemv) unit() number {
	if g.units() == 1 {
		return known(0)
	}
	return found(ptx.And(g.k, g.lane, u32(g.units()-1)))
}

// walk calls step for each of the lane's units among the first n: with the number of its block and of the first value of its block.
func (g *quantGemv) walk(n ptx.Reg[uint32], step func(block ptx.Reg[uint32])) {
	k := g.k
	rest := ptx.Sub(k, ptx.Max(k, n, g.lane), g.lane)
	turns := ptx.Shr(k, ptx.Add(k, rest, ptx.Sub(k, g.team.lanes, u32(1))), g.log)
	per := log2(g.units())
	block := ptx.VarOf(k, shiftRight(k, g.lane, known(per)))
	ptx.For(k, u32(0), turns, u32(1), func(ptx.Reg[uint32]) {
		b := ptx.Copy(k, block.Get())
		step(b)
		block.Set(ptx.Add(k, b, shiftRight(k, g.team.lanes, known(per))))
	}, ptx.NoUnroll())
}

// finish adds up what the lanes have, and writes it. squares are Σx² of the vectors, for a norm.
func (g *quantGemv) finish(squares func(v int) float) {
	k, c := g.k, g.calc
	all := g.sums.get()
	all = reduce(g.team, all, sharedFor[float32](k, len(all)), func(a, b []float) (s []float) {
		for i := range a {
			s = append(s, c.add(a[i], b[i]))
		}
		return s
	})
	k.If(ptx.And(k, g.there, ptx.Eq(k, g.lane, u32(0))), func() {
		gate := hasFlag(k, g.flags, quantGate)
		for v := range g.room {
			y := [2]float{}
			for i, r := range g.rows {
				y[i] = all[i*g.room+v]
				if squares != nil {
					y[i] = c.mul(y[i], squares(v))
				}
				y[i] = c.add(y[i], r.bias)
			}
			y[0] = c.where(gate, c.mul(c.swish(y[0]), y[1]), y[0])
			for i, r := range g.rows {
				to := ptx.At(k, r.y, ptx.MulWideU32(k, u32(v), r.across))
				there := r.there
				if v > 0 {
					there = ptx.And(k, there, ptx.Lt(k, u32(v), g.vectors))
				}
				if i == 1 {
					there = ptx.And(k, there, ptx.Not(k, gate))
				}
				ptx.StoreIf(k, there, to, y[i])
			}
		}
	})
}
