package tiling

import (
	"math"

	"github.com/wavelane/wavelane/ptx"
)

// TileMemory is the shared memory of an operand of a product: two stages of a tile of size × depth elements (size along the
// result), as depth rows of size elements.
//
// Element (d, i) of a tile, at depth d, lies in row d at i ^ (d/4 · 128/depth): the threads of a warp that bring fours along
// the depth then store to 32 banks, and those that read or store four neighbours still find them together.
type TileMemory struct {
	K           *ptx.Kernel
	Size, depth int
	memory      ptx.Ptr[ptx.Shared, float32]
}

// NewTileMemory declares shared memory for two stages of tiles.
func NewTileMemory(k *ptx.Kernel, name string, size, depth int) TileMemory {
	return TileMemory{k, size, depth, ptx.SharedArray[float32](k, name+"_tiles", 2*size*depth, ptx.Align(16))}
}

func (t TileMemory) twist() int { return 128 / t.depth }

// Place is where in a stage the element at row i and depth d lies.
func (t TileMemory) Place(i, d ptx.Reg[uint32]) ptx.Reg[uint32] {
	return d.Mad(t.Size, i.Xor(d.Shr(2).Mul(t.twist())))
}

// Stage is the shared memory of one.
func (t TileMemory) Stage(n ptx.Reg[uint32]) ptx.Ptr[ptx.Shared, float32] {
	return t.memory.At(n.Mul(t.Size * t.depth))
}

// Fragments returns what reads the thread's elements at a depth: four from first on, and four more 64 further each.
func (t TileMemory) Fragments(stage, first ptx.Reg[uint32]) func(d int) []ptx.Reg[float32] {
	memory := t.Stage(stage)
	var twisted []ptx.Ptr[ptx.Shared, float32]
	for i := range t.depth / 4 {
		twisted = append(twisted, memory.At(first.Xor(i*t.twist())))
	}
	return func(d int) (v []ptx.Reg[float32]) {
		for i := 0; i < t.Size; i += 64 {
			four := twisted[d/4].At(d*t.Size + i).Load4()
			v = append(v, four[:]...)
		}
		return v
	}
}

// Operand is a matrix as an operand of a product: tiles go from memory to registers and from there to shared memory. Threads bring
// pieces of four elements that are neighbours in memory.
type Operand struct {
	TileMemory
	along  ptx.Reg[bool]
	vector ptx.Reg[bool]
	ld     ptx.Reg[uint32] // elements from depth to depth in memory
	pieces []piece
}

// piece is four elements of each tile that a thread brings.
type piece struct {
	at *ptx.PtrVar[ptx.Global, float32]
	to ptx.Reg[uint32] // in the stage; along the depth, that is of the first element
	// The first element exists while more of the depth than from is left. The others do so too; across, those below valid.
	from  ptx.Reg[int32]
	valid ptx.Reg[uint32]
	held  [4]*ptx.Var[float32]
}

// NewOperand is the side whose tiles begin at element first of the result's bound and at depth d0. ld is the length of rows in
// memory.
func NewOperand(k *ptx.Kernel, name string, size, depth int, x ptx.Ptr[ptx.Global, float32], ld ptx.Reg[uint32],
	along, vector ptx.Reg[bool], first, bound, d0 ptx.Reg[uint32]) *Operand {
	s := &Operand{TileMemory: NewTileMemory(k, name, size, depth), along: along, vector: vector, ld: ptx.Select(along, ptx.U32(1), ld)}
	for i := range size * depth / 4 / GemmThreads {
		id := k.Tid(ptx.X).Add(i * GemmThreads)
		// Either four of the depth in one row of the result, or four rows at one depth.
		alongRow, alongDepth := id.Div(depth/4), id.Rem(depth/4).Mul(4)
		acrossRow, acrossDepth := id.Rem(size/4).Mul(4), id.Div(size/4)
		row, d := ptx.Select(along, alongRow, acrossRow), ptx.Select(along, alongDepth, acrossDepth)
		g, h := first.Add(row), d0.Add(d)
		at := x.At(ptx.Select(along, g, h).MulWide(ld))
		p := piece{at: ptx.PtrVarOf(at.At(ptx.Select(along, h, g)))}
		p.to = s.Place(row, d)
		p.valid = ptx.Select(along, ptx.U32(4), bound.Sub(g.Min(bound)))
		p.from = ptx.Bitcast[int32](ptx.Select(g.Lt(bound), d, math.MaxInt32-4))
		for i := range p.held {
			p.held[i] = ptx.NewVar[float32](k)
		}
		s.pieces = append(s.pieces, p)
	}
	return s
}

// Load brings the next tile to registers, with zeros where the matrix or the depth ends, of which so much is left.
func (s *Operand) Load(left ptx.Reg[int32]) {
	k := s.K
	for _, p := range s.pieces {
		for _, v := range p.held {
			v.Set(0)
		}
		from := p.at.Get()
		loadStrip(k, s.vector, func(i int) ptx.Ptr[ptx.Global, float32] { return from.At(i) }, func(i int) ptx.Reg[bool] {
			if i == 0 {
				return left.Gt(p.from)
			}
			more := left.Gt(p.from.Add(ptx.Select(s.along, ptx.Imm(int32(i)), 0)))
			return more.And(p.valid.Gt(i))
		}, p.held, ptx.ReadOnly)
		p.at.Set(p.at.Get().At(s.ld.MulWide(s.depth)))
	}
}

// store writes what load has brought.
func (s *Operand) Store(stage ptx.Reg[uint32]) {
	k := s.K
	for _, p := range s.pieces {
		to := s.Stage(stage).At(p.to)
		k.If(s.along, func() {
			for i, v := range p.held {
				to.At(i * s.Size).Store(v.Get())
			}
		}, func() {
			to.Store4([4]ptx.Reg[float32]{p.held[0].Get(), p.held[1].Get(), p.held[2].Get(), p.held[3].Get()})
		})
	}
}
