package tiling

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// MMAOperand is an operand of an mma_gemm. Its tiles are copied to shared memory as they lie in memory, in chunks of 16 bytes that
// are permuted within their rows, lest rows share banks:
//
//	along the depth, rows of 64 bytes for each element of the result's bound: chunk ^ (row >> 1 & 3)
//	across, rows of elements at one depth: chunk ^ (row & 7), and of 4-byte elements chunk ^ 2·(row & 3)
//
// Beyond the result's bound tiles repeat the last elements, whose products are not written.
type MMAOperand struct {
	*MMAKind
	K       *ptx.Kernel
	Along   bool
	Threads int
	Ld      ptx.Reg[uint32] // elements from row to row in memory
	Vector  ptx.Reg[bool]   // rows begin at multiples of 16 bytes
	tile    ptx.Ptr[ptx.Shared, uint32]
	row     int                         // bytes of a row of the tile
	to      ptx.Ptr[ptx.Shared, uint32] // where the thread's first piece comes to in the first stage,
	apart   int                         // and how many bytes from there to the next one
	pieces  []mmaPiece
	Step    ptx.Reg[uint64] // bytes from tile to tile in memory
	// Of the lane, to read fragments: where in the first stage the first of them lies, permuted by each value that XOR gives.
	base []ptx.Ptr[ptx.Shared, uint32]
	ofA  bool
}

// mmaPiece is a chunk of each tile that a thread brings.
type mmaPiece struct {
	at    *ptx.PtrVar[ptx.Global, uint8]
	d     ptx.Reg[uint32] // depth of the first element in the tile
	valid ptx.Reg[uint32] // elements inside of the result's bound
}

func (s *MMAOperand) chunk() int { return 16 / s.Size } // elements
func (s *MMAOperand) deep() int  { return MMARow / s.Size }

// Begin is about x, in tiles of size rows of the result's bound, from first on and at depth d0.
func (s *MMAOperand) Begin(x ptx.Ptr[ptx.Global, uint8], size int, first, bound, d0 ptx.Reg[uint32]) {
	k := s.K
	s.pieces = nil
	s.Step = scalar.U64(MMARow)
	if !s.Along {
		s.Step = s.Ld.MulWide(MMARow)
	}
	perRow := s.row / 16
	rows := s.Threads / perRow // that the block brings at a time: permuted alike
	tid := k.Tid(ptx.X)
	row, c := tid.Div(perRow), tid.Rem(perRow)
	in := c.Mul(s.chunk()) // of the row, in elements
	s.to, s.apart = s.tile.Bytes(s.offset(row, c)), rows*s.row
	for i := range size * MMARow / 16 / s.Threads {
		row := row.Add(i * rows)
		p := mmaPiece{d: in}
		var major, minor ptx.Reg[uint32]
		if s.Along {
			major, minor = first.Add(row).Min(bound.Sub(1)), d0.Add(in)
		} else {
			p.d = row
			g := first.Add(in)
			inside := g.Lt(bound)
			p.valid = ptx.Select(inside, bound.Sub(g), 1)
			major, minor = d0.Add(row), ptx.Select(inside, g, 0)
		}
		at := major.MulWide(s.Ld)
		at = at.Add(ptx.Convert[uint64](minor)).Mul(s.Size)
		p.at = ptx.PtrVarOf(x.Bytes(at))
		s.pieces = append(s.pieces, p)
	}
}

// twist is what the chunks of a row are permuted by.
func (s *MMAOperand) twist(row ptx.Reg[uint32]) ptx.Reg[uint32] {
	switch {
	case s.Along:
		return row.Shr(1).And(3)
	case s.Size == 4:
		return row.And(3).Shl(1)
	}
	return row.And(7)
}

// offset is where in a tile a chunk of a row lies.
func (s *MMAOperand) offset(row, chunk ptx.Reg[uint32]) ptx.Reg[uint32] {
	return row.Mad(s.row, chunk.Xor(s.twist(row)).Shl(4))
}

// Load starts to bring a tile of only so much depth, with zeros for the rest, whichever way its chunks permit.
func (s *MMAOperand) Load(stage, depth ptx.Reg[uint32]) {
	k := s.K
	to := s.to.Bytes(stage)
	k.If(s.Vector, func() {
		for i, p := range s.pieces {
			ptx.CpAsyncZfill(to.Bytes(i*s.apart), p.at.Get(), 16, ptx.Select(p.d.Lt(depth), ptx.U32(16), 0))
		}
	}, func() {
		for i, p := range s.pieces {
			s.gather(to.Bytes(i*s.apart), p, depth)
		}
	})
	skipped := depth.MulWide(s.Size)
	if !s.Along {
		skipped = skipped.Mul(ptx.Convert[uint64](s.Ld))
	}
	for _, p := range s.pieces {
		p.at.Set(p.at.Get().Bytes(skipped))
	}
}

// Bring starts to bring a whole tile of aligned chunks if there are more, and goes on so many bytes.
func (s *MMAOperand) Bring(stage ptx.Reg[uint32], more ptx.Reg[bool], step ptx.Reg[uint64]) {
	k := s.K
	to := s.to.Bytes(stage)
	k.When(more, func() {
		for i, p := range s.pieces {
			ptx.CpAsync(to.Bytes(i*s.apart), p.at.Get(), 16)
		}
	})
	for _, p := range s.pieces {
		p.at.Set(p.at.Get().Bytes(step))
	}
}

// gather brings a chunk element by element: it need not be aligned, and may end inside.
func (s *MMAOperand) gather(to ptx.Ptr[ptx.Shared, uint32], p mmaPiece, depth ptx.Reg[uint32]) {
	inside := func(i int) ptx.Reg[bool] {
		if s.Along {
			return p.d.Add(i).Lt(depth)
		}
		return p.d.Lt(depth).And(p.valid.Gt(i))
	}
	at := p.at.Get()
	var words [4]ptx.Reg[uint32]
	for i := range words {
		if s.Size == 4 {
			words[i] = ptx.LoadIf(inside(i), ptx.Cast[uint32](at).At(i), 0, ptx.ReadOnly)
			continue
		}
		half := func(i int) ptx.Reg[uint16] {
			return ptx.LoadIf(inside(i), ptx.Cast[uint16](at).At(i), 0, ptx.ReadOnly)
		}
		words[i] = ptx.Pack32(half(2*i), half(2*i+1))
	}
	to.Store4(words)
}

// Lanes prepares the reading of fragments of the warp's part of tiles of size rows, which begins at first. Of a, a fragment is 16
// rows; of b it is two of 8 rows.
func (s *MMAOperand) Lanes(tile ptx.Ptr[ptx.Shared, uint32], size int, lane, first ptx.Reg[uint32], part int, ofA bool) {
	s.ofA, s.tile, s.row = ofA, tile, MMARow
	if !s.Along {
		s.row = size * s.Size
	}
	if !s.Along && s.Size == 4 { // lane 4g+t reads column g at depth t
		t, g := lane.And(3), lane.Shr(2)
		at := s.offset(t, first.Shr(2).Add(g.Shr(2))).Add(g.And(3).Shl(2))
		s.permuted(at, 4)
		return
	}
	// With ldmatrix, the eight lanes of a group name the rows of one matrix of 8 × 16 bytes: of two along the result's bound and
	// two along the depth.
	group, r := lane.Shr(3), lane.And(7)
	bound, deep := group.And(1), group.Shr(1)
	if !ofA {
		bound, deep = deep, bound
	}
	if s.Along {
		at := s.offset(first.Add(bound.Mad(8, r)), deep)
		s.permuted(at, MMARow/32)
		return
	}
	at := s.offset(deep.Mad(8, r), first.Shr(3).Add(bound))
	s.permuted(at, min(part, 64)/16)
}

// permuted sets the bases.
func (s *MMAOperand) permuted(at ptx.Reg[uint32], n int) {
	for i := range n {
		s.base = append(s.base, s.tile.Bytes(at.Xor(32*i)))
	}
}

// Fragments returns what reads the lane's part of 16 rows from the o-th of the warp's on, 32 bytes deep: those for one product
// with 16 rows, or for two with 8.
func (s *MMAOperand) Fragments(stage ptx.Reg[uint32]) func(o, step int) []ptx.Reg[uint32] {
	var at []ptx.Ptr[ptx.Shared, uint32]
	for _, b := range s.base {
		at = append(at, b.Bytes(stage))
	}
	return func(o, step int) []ptx.Reg[uint32] {
		switch {
		case s.Along:
			return ptx.LdMatrix[uint32](at[step].Bytes(o*s.row), 4)
		case s.Size == 2:
			return ptx.LdMatrixTrans[uint32](at[o/16%4].Bytes(o/64*128+16*step*s.row), 4)
		}
		word := func(o, d int) ptx.Reg[uint32] {
			return at[o/8%4].Bytes(o/32*128 + (8*step+d)*s.row).Load()
		}
		if s.ofA {
			return []ptx.Reg[uint32]{word(o, 0), word(o+8, 0), word(o, 4), word(o+8, 4)}
		}
		return []ptx.Reg[uint32]{word(o, 0), word(o, 4), word(o+8, 0), word(o+8, 4)}
	}
}

// Tiles of operands are mmaRow bytes deep, in mmaStages stages: with tiles of 128 × 128 that is 48 KiB, all that a block has
// without asking.
const (
	MMARow    = 64
	MmaStages = 3
)
