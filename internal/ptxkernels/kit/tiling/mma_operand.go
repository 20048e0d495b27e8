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
		s.Step = ptx.MulWideU32(k, s.Ld, scalar.U32(MMARow))
	}
	perRow := s.row / 16
	rows := s.Threads / perRow // that the block brings at a time: permuted alike
	tid := k.Tid(ptx.X)
	row, c := ptx.Div(k, tid, scalar.U32(perRow)), ptx.Rem(k, tid, scalar.U32(perRow))
	in := ptx.Mul(k, c, scalar.U32(s.chunk())) // of the row, in elements
	s.to, s.apart = ptx.AtByte(k, s.tile, s.offset(row, c)), rows*s.row
	for i := range size * MMARow / 16 / s.Threads {
		row := ptx.Add(k, row, scalar.U32(i*rows))
		p := mmaPiece{d: in}
		var major, minor ptx.Reg[uint32]
		if s.Along {
			major, minor = ptx.Min(k, ptx.Add(k, first, row), ptx.Sub(k, bound, scalar.U32(1))), ptx.Add(k, d0, in)
		} else {
			p.d = row
			g := ptx.Add(k, first, in)
			inside := ptx.Lt(k, g, bound)
			p.valid = ptx.Select(k, inside, ptx.Sub(k, bound, g), scalar.U32(1))
			major, minor = ptx.Add(k, d0, row), ptx.Select(k, inside, g, scalar.U32(0))
		}
		at := ptx.MulWideU32(k, major, s.Ld)
		at = ptx.Mul(k, ptx.Add(k, at, ptx.Convert[uint64](k, minor)), scalar.U64(s.Size))
		p.at = ptx.PtrVarOf(k, ptx.AtByte(k, x, at))
		s.pieces = append(s.pieces, p)
	}
}

// twist is what the chunks of a row are permuted by.
func (s *MMAOperand) twist(row ptx.Reg[uint32]) ptx.Reg[uint32] {
	k := s.K
	switch {
	case s.Along:
		return ptx.And(k, ptx.Shr(k, row, scalar.U32(1)), scalar.U32(3))
	case s.Size == 4:
		return ptx.Shl(k, ptx.And(k, row, scalar.U32(3)), scalar.U32(1))
	}
	return ptx.And(k, row, scalar.U32(7))
}

// offset is where in a tile a chunk of a row lies.
func (s *MMAOperand) offset(row, chunk ptx.Reg[uint32]) ptx.Reg[uint32] {
	k := s.K
	return ptx.Mad(k, row, scalar.U32(s.row), ptx.Shl(k, ptx.Xor(k, chunk, s.twist(row)), scalar.U32(4)))
}

// Load starts to bring a tile of only so much depth, with zeros for the rest, whichever way its chunks permit.
func (s *MMAOperand) Load(stage, depth ptx.Reg[uint32]) {
	k := s.K
	to := ptx.AtByte(k, s.to, stage)
	k.If(s.Vector, func() {
		for i, p := range s.pieces {
			ptx.CpAsyncFill(k, to.Bytes(i*s.apart), p.at.Get(), 16, ptx.Select(k, ptx.Lt(k, p.d, depth), scalar.U32(16), scalar.U32(0)))
		}
	}, func() {
		for i, p := range s.pieces {
			s.gather(to.Bytes(i*s.apart), p, depth)
		}
	})
	skipped := ptx.MulWideU32(k, depth, scalar.U32(s.Size))
	if !s.Along {
		skipped = ptx.Mul(k, skipped, ptx.Convert[uint64](k, s.Ld))
	}
	for _, p := range s.pieces {
		p.at.Set(ptx.AtByte(k, p.at.Get(), skipped))
	}
}

// Bring starts to bring a whole tile of aligned chunks if there are more, and goes on so many bytes.
func (s *MMAOperand) Bring(stage ptx.Reg[uint32], more ptx.Reg[bool], step ptx.Reg[uint64]) {
	k := s.K
	to := ptx.AtByte(k, s.to, stage)
	k.When(more, func() {
		for i, p := range s.pieces {
			ptx.CpAsync(k, to.Bytes(i*s.apart), p.at.Get(), 16)
		}
	})
	for _, p := range s.pieces {
		p.at.Set(ptx.AtByte(k, p.at.Get(), step))
	}
}

// gather brings a chunk element by element: it need not be aligned, and may end inside.
func (s *MMAOperand) gather(to ptx.Ptr[ptx.Shared, uint32], p mmaPiece, depth ptx.Reg[uint32]) {
	k := s.K
	inside := func(i int) ptx.Reg[bool] {
		if s.Along {
			return ptx.Lt(k, ptx.Add(k, p.d, scalar.U32(i)), depth)
		}
		return ptx.And(k, ptx.Lt(k, p.d, depth), ptx.Gt(k, p.valid, scalar.U32(i)))
	}
	at := p.at.Get()
	var words [4]ptx.Reg[uint32]
	for i := range words {
		if s.Size == 4 {
			words[i] = ptx.LoadIf(k, inside(i), ptx.Cast[uint32](at).At(i), scalar.U32(0), ptx.ReadOnly)
			continue
		}
		half := func(i int) ptx.Reg[uint16] {
			return ptx.LoadIf(k, inside(i), ptx.Cast[uint16](at).At(i), ptx.Imm(uint16(0)), ptx.ReadOnly)
		}
		words[i] = ptx.Pack32(k, half(2*i), half(2*i+1))
	}
	ptx.Store4(k, to, words)
}

// Lanes prepares the reading of fragments of the warp's part of tiles of size rows, which begins at first. Of a, a fragment is 16
// rows; of b it is two of 8 rows.
func (s *MMAOperand) Lanes(tile ptx.Ptr[ptx.Shared, uint32], size int, lane, first ptx.Reg[uint32], part int, ofA bool) {
	k := s.K
	s.ofA, s.tile, s.row = ofA, tile, MMARow
	if !s.Along {
		s.row = size * s.Size
	}
	if !s.Along && s.Size == 4 { // lane 4g+t reads column g at depth t
		t, g := ptx.And(k, lane, scalar.U32(3)), ptx.Shr(k, lane, scalar.U32(2))
		at := ptx.Add(k, s.offset(t, ptx.Add(k, ptx.Shr(k, first, scalar.U32(2)), ptx.Shr(k, g, scalar.U32(2)))),
			ptx.Shl(k, ptx.And(k, g, scalar.U32(3)), scalar.U32(2)))
		s.permuted(at, 4)
		return
	}
	// With ldmatrix, the eight lanes of a group name the rows of one matrix of 8 × 16 bytes: of two along the result's bound and
	// two along the depth.
	group, r := ptx.Shr(k, lane, scalar.U32(3)), ptx.And(k, lane, scalar.U32(7))
	bound, deep := ptx.And(k, group, scalar.U32(1)), ptx.Shr(k, group, scalar.U32(1))
	if !ofA {
		bound, deep = deep, bound
	}
	if s.Along {
		at := s.offset(ptx.Add(k, first, ptx.Mad(k, bound, scalar.U32(8), r)), deep)
		s.permuted(at, MMARow/32)
		return
	}
	at := s.offset(ptx.Mad(k, deep, scalar.U32(8), r), ptx.Add(k, ptx.Shr(k, first, scalar.U32(3)), bound))
	s.permuted(at, min(part, 64)/16)
}

// permuted sets the bases.
func (s *MMAOperand) permuted(at ptx.Reg[uint32], n int) {
	for i := range n {
		s.base = append(s.base, ptx.AtByte(s.K, s.tile, ptx.Xor(s.K, at, scalar.U32(32*i))))
	}
}

// Fragments returns what reads the lane's part of 16 rows from the o-th of the warp's on, 32 bytes deep: those for one product
// with 16 rows, or for two with 8.
func (s *MMAOperand) Fragments(stage ptx.Reg[uint32]) func(o, step int) []ptx.Reg[uint32] {
	k := s.K
	var at []ptx.Ptr[ptx.Shared, uint32]
	for _, b := range s.base {
		at = append(at, ptx.AtByte(k, b, stage))
	}
	return func(o, step int) []ptx.Reg[uint32] {
		switch {
		case s.Along:
			return ptx.LdMatrix[uint32](k, at[step].Bytes(o*s.row), 4)
		case s.Size == 2:
			return ptx.LdMatrixTrans[uint32](k, at[o/16%4].Bytes(o/64*128+16*step*s.row), 4)
		}
		word := func(o, d int) ptx.Reg[uint32] {
			return ptx.Load(k, at[o/8%4].Bytes(o/32*128+(8*step+d)*s.row))
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
