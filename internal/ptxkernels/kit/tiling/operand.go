package tiling

import (
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
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

func NewTileMemory(k *ptx.Kernel, name string, size, depth int) TileMemory {
	return TileMemory{k, size, depth, ptx.SharedArray[float32](k, name+"_tiles", 2*size*depth, ptx.Align(16))}
}

func (t TileMemory) twist() int { return 128 / t.depth }

// Place is where in a stage the element at row i and depth d lies.
func (t TileMemory) Place(i, d ptx.Reg[uint32]) ptx.Reg[uint32] {
	k := t.K
	return ptx.Mad(k, d, scalar.U32(t.Size), ptx.Xor(k, i, ptx.Mul(k, ptx.Shr(k, d, scalar.U32(2)), scalar.U32(t.twist()))))
}

// Stage is the shared memory of one.
func (t TileMemory) Stage(n ptx.Reg[uint32]) ptx.Ptr[ptx.Shared, float32] {
	return ptx.At(t.K, t.memory, ptx.Mul(t.K, n, scalar.U32(t.Size*t.depth)))
}

// Fragments returns what reads the thread's elements at a depth: four from first on, and four more 64 further each.
func (t TileMemory) Fragments(stage, first ptx.Reg[uint32]) func(d int) []ptx.Reg[float32] {
	k, memory := t.K, t.Stage(stage)
	var twisted []ptx.Ptr[ptx.Shared, float32]
	for i := range t.depth / 4 {
		twisted = append(twisted, ptx.At(k, memory, ptx.Xor(k, first, scalar.U32(i*t.twist()))))
	}
	return func(d int) (v []ptx.Reg[float32]) {
		for i := 0; i < t.Size; i += 64 {
			four := ptx.Load4(k, twisted[d/4].At(d*t.Size+i))
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
	s := &Operand{TileMemory: NewTileMemory(k, name, size, depth), along: along, vector: vector, ld: ptx.Select(k, along, scalar.U32(1), ld)}
	for i := range size * depth / 4 / GemmThreads {
		id := ptx.Add(k, k.Tid(ptx.X), scalar.U32(i*GemmThreads))
		// Either four of the depth in one row of the result, or four rows at one depth.
		alongRow, alongDepth := ptx.Div(k, id, scalar.U32(depth/4)), ptx.Mul(k, ptx.Rem(k, id, scalar.U32(depth/4)), scalar.U32(4))
		acrossRow, acrossDepth := ptx.Mul(k, ptx.Rem(k, id, scalar.U32(size/4)), scalar.U32(4)), ptx.Div(k, id, scalar.U32(size/4))
		row, d := ptx.Select(k, along, alongRow, acrossRow), ptx.Select(k, along, alongDepth, acrossDepth)
		g, h := ptx.Add(k, first, row), ptx.Add(k, d0, d)
		at := ptx.At(k, x, ptx.MulWideU32(k, ptx.Select(k, along, g, h), ld))
		p := piece{at: ptx.PtrVarOf(k, ptx.At(k, at, ptx.Select(k, along, h, g)))}
		p.to = s.Place(row, d)
		p.valid = ptx.Select(k, along, scalar.U32(4), ptx.Sub(k, bound, ptx.Min(k, g, bound)))
		p.from = ptx.Bitcast[int32](k, ptx.Select(k, ptx.Lt(k, g, bound), d, scalar.U32(math.MaxInt32-4)))
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
			v.Set(ptx.Imm(float32(0)))
		}
		loadStrip(k, s.vector, p.at.Get().At, func(i int) ptx.Reg[bool] {
			if i == 0 {
				return ptx.Gt(k, left, p.from)
			}
			more := ptx.Gt(k, left, ptx.Add(k, p.from, ptx.Select(k, s.along, ptx.Imm(int32(i)), ptx.Imm(int32(0)))))
			return ptx.And(k, more, ptx.Gt(k, p.valid, scalar.U32(i)))
		}, p.held, ptx.ReadOnly)
		p.at.Set(ptx.At(k, p.at.Get(), ptx.MulWideU32(k, s.ld, scalar.U32(s.depth))))
	}
}

// store writes what load has brought.
func (s *Operand) Store(stage ptx.Reg[uint32]) {
	k := s.K
	for _, p := range s.pieces {
		to := ptx.At(k, s.Stage(stage), p.to)
		k.If(s.along, func() {
			for i, v := range p.held {
				ptx.Store(k, to.At(i*s.Size), v.Get())
			}
		}, func() {
			ptx.Store4(k, to, [4]ptx.Reg[float32]{p.held[0].Get(), p.held[1].Get(), p.held[2].Get(), p.held[3].Get()})
		})
	}
}
