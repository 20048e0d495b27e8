package tiling

import (
	"math"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// OperandTile is the shared memory of an operand of a product on ordinary cores: stages of tiles of Rows × Depth elements (rows of
// the result, or its columns), M-major: Depth lines of Rows elements, which threads read four at a time whichever way the operand
// lies in memory. Element (i, d) lies in line d
//
//	swizzled  at i ^ (d/4 · 128/Depth): threads of a warp that store fours along the depth meet 32 banks, and four neighbours are
//	          still found together
//	padded    at i; lines are eight elements longer, so that elements of eight rows at four depths meet 32 banks
type OperandTile struct {
	K           *ptx.Kernel
	Rows, Depth int
	padding     int // elements of a line; without, the tile is swizzled
	memory      ptx.Ptr[ptx.Shared, float32]
}

// NewOperandTile declares the shared memory of two stages, swizzled.
func NewOperandTile(k *ptx.Kernel, name string, rows, depth int) OperandTile {
	return OperandTile{K: k, Rows: rows, Depth: depth, memory: ptx.SharedArray[float32](k, name+"_tiles", 2*rows*depth, ptx.Align(16))}
}

// PaddedTiles declares the shared memory of both operands of a product, in stages that have a tile of each.
func PaddedTiles(k *ptx.Kernel, stages int, of Shape) (a, b OperandTile) {
	a = OperandTile{K: k, Rows: of.M, Depth: of.K, padding: 8}
	b = OperandTile{K: k, Rows: of.N, Depth: of.K, padding: 8}
	a.memory = ptx.SharedArray[float32](k, "tiles", stages*(a.Elements()+b.Elements()), ptx.Align(16))
	b.memory = a.memory.At(a.Elements())
	return a, b
}

// line is the elements from one depth to the next.
func (t OperandTile) line() int { return t.Rows + t.padding }

// Elements is how many there are in a stage.
func (t OperandTile) Elements() int { return t.Depth * t.line() }

func (t OperandTile) swizzle() int { return 128 / t.Depth }

// Place is where in a stage the element of row i at depth d lies.
func (t OperandTile) Place(i, d ptx.Reg[uint32]) ptx.Reg[uint32] {
	if t.padding == 0 {
		i = i.Xor(d.Shr(2).Mul(t.swizzle()))
	}
	return d.Mad(t.line(), i)
}

// Stage is the shared memory of one, 0 or 1.
func (t OperandTile) Stage(n ptx.Reg[uint32]) ptx.Ptr[ptx.Shared, float32] {
	return t.memory.At(n.Mul(t.Elements()))
}

// Fragments returns what reads the thread's elements at a depth of a stage: four from first on, and four more 64 further each.
func (t OperandTile) Fragments(first ptx.Reg[uint32], stage ptx.Ptr[ptx.Shared, float32]) func(d int) []ptx.Reg[float32] {
	var at []ptx.Ptr[ptx.Shared, float32]
	for i := range t.Depth / 4 {
		at = append(at, stage.At(first.Xor(i*t.swizzle())))
	}
	return t.fragments(at...)
}

// fragments is Fragments of addresses that serve as many depths each.
func (t OperandTile) fragments(at ...ptx.Ptr[ptx.Shared, float32]) func(d int) []ptx.Reg[float32] {
	return func(d int) (v []ptx.Reg[float32]) {
		for i := 0; i < t.Rows; i += 64 {
			four := at[d*len(at)/t.Depth].At(d*t.line() + i).Load4()
			v = append(v, four[:]...)
		}
		return v
	}
}

// Operand is an operand of a [Product] whose tiles pass through registers: a thread loads pieces of four elements of the next tile,
// from wherever they come, while the present one is multiplied, and then stores them.
type Operand struct {
	OperandTile
	kMajor ptx.Reg[bool] // pieces are neighbours in depth, else in rows
	both   bool          // that depends on kMajor; else no piece is K-major
	pieces []piece
}

// piece is four elements of each tile.
type piece struct {
	to   ptx.Reg[uint32] // where in a stage the first element comes to
	load func(left ptx.Reg[int32])
	held scalar.Variables[float32]
}

// GatherOperand is an operand without pieces, none of which will be K-major.
func GatherOperand(t OperandTile) *Operand { return &Operand{OperandTile: t} }

// EitherOperand is one whose pieces are K-major or not.
func EitherOperand(t OperandTile, kMajor ptx.Reg[bool]) *Operand {
	return &Operand{OperandTile: t, kMajor: kMajor, both: true}
}

// Add adds a piece of the thread, whose first element comes to a place of [OperandTile.Place]. load sets its four registers to what the
// next tile has, with zeros where matrix or depth end, of which so much is left.
func (s *Operand) Add(to ptx.Reg[uint32], held scalar.Variables[float32], load func(left ptx.Reg[int32])) {
	s.pieces = append(s.pieces, piece{to, load, held})
}

// Held are the registers of a piece.
func Held(k *ptx.Kernel) (held scalar.Variables[float32]) {
	for range 4 {
		held = append(held, ptx.NewVar[float32](k))
	}
	return held
}

// Load loads the next tile.
func (s *Operand) Load(left ptx.Reg[int32]) {
	for _, p := range s.pieces {
		p.load(left)
	}
}

// Store writes what Load has loaded to a stage.
func (s *Operand) Store(stage ptx.Reg[uint32]) {
	for _, p := range s.pieces {
		to := s.Stage(stage).At(p.to)
		together := func() { to.Store4([4]scalar.Float(p.held.Get())) }
		if !s.both {
			together()
			continue
		}
		s.K.If(s.kMajor, func() {
			for i, v := range p.held {
				to.At(i * s.line()).Store(v.Get())
			}
		}, together)
	}
}

// MatrixOperand is a matrix in memory as an operand, whose rows are ld elements apart and begin at multiples of 16 bytes if vector.
// Its tiles begin at row first, of so many, and at depth d0.
func MatrixOperand(t OperandTile, x ptx.Ptr[ptx.Global, float32], ld ptx.Reg[uint32], kMajor, vector ptx.Reg[bool],
	first, bound, d0 ptx.Reg[uint32]) *Operand {
	k, s := t.K, EitherOperand(t, kMajor)
	byDepth := ptx.Select(kMajor, ptx.U32(1), ld) // elements from depth to depth
	for i := range t.Rows * t.Depth / 4 / GemmThreads {
		id := k.Tid(ptx.X).Add(i * GemmThreads)
		// Either four of the depth in one row of the result, or four rows at one depth.
		alongRow, alongDepth := id.Div(t.Depth/4), id.Rem(t.Depth/4).Mul(4)
		acrossRow, acrossDepth := id.Rem(t.Rows/4).Mul(4), id.Div(t.Rows/4)
		row, d := ptx.Select(kMajor, alongRow, acrossRow), ptx.Select(kMajor, alongDepth, acrossDepth)
		g, h := first.Add(row), d0.Add(d)
		line := x.At(ptx.Select(kMajor, g, h).MulWide(ld))
		at := ptx.PtrVarOf(line.At(ptx.Select(kMajor, h, g)))
		to := t.Place(row, d)
		valid := ptx.Select(kMajor, ptx.U32(4), bound.Sub(g.Min(bound)))
		// The first element is there while more of the depth than from is left.
		from := ptx.Bitcast[int32](ptx.Select(g.Lt(bound), d, math.MaxInt32-4))
		held := Held(k)
		s.Add(to, held, func(left ptx.Reg[int32]) {
			for _, v := range held {
				v.Set(0)
			}
			p := at.Get()
			loadStrip(k, vector, func(i int) ptx.Ptr[ptx.Global, float32] { return p.At(i) }, func(i int) ptx.Reg[bool] {
				if i == 0 {
					return left.Gt(from)
				}
				more := left.Gt(from.Add(ptx.Select(kMajor, ptx.Imm(int32(i)), 0)))
				return more.And(valid.Gt(i))
			}, held, ptx.ReadOnly)
			at.Set(at.Get().At(byDepth.MulWide(t.Depth)))
		})
	}
	return s
}
