package lower

import (
	"math"

	"github.com/wavelane/wavelane/ptx"
)

// mmaSide is an operand of an mma_gemm. Its tiles are copied to shared memory as they lie in memory, in chunks of 16 bytes that
// are permuted within their rows, lest rows share banks:
//
//	along the depth, rows of 64 bytes for each element of the result's bound: chunk ^ (row >> 1 & 3)
//	across, rows of elements at one depth: chunk ^ (row & 7), and of 4-byte elements chunk ^ 2·(row & 3)
type mmaSide struct {
	*mmaKind
	k       *ptx.Kernel
	along   bool
	threads int
	x       ptx.Ptr[ptx.Global, uint8]
	ld      ptx.Reg[uint32] // elements from row to row in memory
	vector  ptx.Reg[bool]   // rows begin at multiples of 16 bytes
	tile    ptx.Ptr[ptx.Shared, uint32]
	row     int // bytes of a row of the tile
	pieces  []mmaPiece
	// Of the lane, to read fragments: where the first of them lies, permuted by each value that XOR gives.
	base []ptx.Reg[uint32]
	ofA  bool
}

// mmaPiece is a chunk of each tile that a thread brings.
type mmaPiece struct {
	at *ptx.PtrVar[ptx.Global, uint8]
	to ptx.Reg[uint32] // bytes from the beginning of the tile
	// The first element exists while more of the depth than from is left; the next ones along the depth too, across those below
	// valid.
	from  ptx.Reg[int32]
	valid ptx.Reg[uint32]
}

func (s *mmaSide) chunk() int { return 16 / s.size } // elements
func (s *mmaSide) deep() int  { return mmaRow / s.size }

// begin is about tiles of size rows of the result's bound, from first on and at depth d0.
func (s *mmaSide) begin(tile ptx.Ptr[ptx.Shared, uint32], size int, first, bound, d0 ptx.Reg[uint32]) {
	k := s.k
	s.tile, s.row = tile, mmaRow
	if !s.along {
		s.row = size * s.size
	}
	perRow := s.row / 16
	for i := range size * mmaRow / 16 / s.threads {
		id := ptx.Add(k, k.Tid(ptx.X), u32(i*s.threads))
		row, c := ptx.Div(k, id, u32(perRow)), ptx.Rem(k, id, u32(perRow))
		in := ptx.Mul(k, c, u32(s.chunk())) // of the row, in elements
		r, d := row, in
		if !s.along {
			r, d = in, row
		}
		g, h := ptx.Add(k, first, r), ptx.Add(k, d0, d)
		major, minor := g, h
		if !s.along {
			major, minor = h, g
		}
		at := ptx.MulWideU32(k, major, s.ld)
		at = ptx.Mul(k, ptx.Add(k, at, ptx.Convert[uint64](k, minor)), u64(s.size))
		p := mmaPiece{at: ptx.PtrVarOf(k, ptx.AtByte(k, s.x, at)), to: s.offset(row, c)}
		inside := ptx.Lt(k, g, bound)
		p.from = ptx.Bitcast[int32](k, ptx.Select(k, inside, d, u32(math.MaxInt32-64)))
		p.valid = u32(s.chunk())
		if !s.along {
			p.valid = ptx.Sub(k, bound, ptx.Min(k, g, bound))
		}
		s.pieces = append(s.pieces, p)
	}
}

// twist is what the chunks of a row are permuted by.
func (s *mmaSide) twist(row ptx.Reg[uint32]) ptx.Reg[uint32] {
	k := s.k
	switch {
	case s.along:
		return ptx.And(k, ptx.Shr(k, row, u32(1)), u32(3))
	case s.size == 4:
		return ptx.Shl(k, ptx.And(k, row, u32(3)), u32(1))
	}
	return ptx.And(k, row, u32(7))
}

// offset is where in a tile a chunk of a row lies.
func (s *mmaSide) offset(row, chunk ptx.Reg[uint32]) ptx.Reg[uint32] {
	k := s.k
	return ptx.Mad(k, row, u32(s.row), ptx.Shl(k, ptx.Xor(k, chunk, s.twist(row)), u32(4)))
}

// load starts to bring the next tile to a stage, with zeros where the matrix or the depth ends, of which so much is left.
func (s *mmaSide) load(stage ptx.Reg[uint32], left ptx.Reg[int32]) {
	k := s.k
	tile := ptx.AtByte(k, s.tile, stage)
	k.If(s.vector, func() {
		for _, p := range s.pieces {
			bytes := ptx.Select(k, ptx.Gt(k, left, p.from), u32(16), u32(0))
			ptx.CpAsyncFill(k, ptx.AtByte(k, tile, p.to), p.at.Get(), 16, bytes)
		}
	}, func() {
		for _, p := range s.pieces {
			s.gather(ptx.AtByte(k, tile, p.to), p, left)
		}
	})
	for _, p := range s.pieces {
		if s.along {
			p.at.Set(p.at.Get().Bytes(mmaRow))
		} else {
			p.at.Set(ptx.AtByte(k, p.at.Get(), ptx.MulWideU32(k, s.ld, u32(mmaRow))))
		}
	}
}

// gather brings a chunk element by element: it need not be aligned, and may end inside.
func (s *mmaSide) gather(to ptx.Ptr[ptx.Shared, uint32], p mmaPiece, left ptx.Reg[int32]) {
	k := s.k
	inside := func(i int) ptx.Reg[bool] {
		from := p.from
		if s.along {
			from = ptx.Add(k, from, ptx.Imm(int32(i)))
		}
		in := ptx.Gt(k, left, from)
		if !s.along {
			in = ptx.And(k, in, ptx.Gt(k, p.valid, u32(i)))
		}
		return in
	}
	at := p.at.Get()
	var words [4]ptx.Reg[uint32]
	for i := range words {
		if s.size == 4 {
			words[i] = ptx.LoadIf(k, inside(i), ptx.Cast[uint32](at).At(i), u32(0), ptx.ReadOnly)
			continue
		}
		half := func(i int) ptx.Reg[uint16] {
			return ptx.LoadIf(k, inside(i), ptx.Cast[uint16](at).At(i), ptx.Imm(uint16(0)), ptx.ReadOnly)
		}
		words[i] = ptx.Pack32(k, half(2*i), half(2*i+1))
	}
	ptx.Store4(k, to, words)
}

// lanes prepares the reading of fragments of the warp's part, which begins at first. Of a, a fragment is 16 rows; of b it is two
// of 8 rows.
func (s *mmaSide) lanes(lane, first ptx.Reg[uint32], part int, ofA bool) {
	k := s.k
	s.ofA = ofA
	if !s.along && s.size == 4 { // lane 4g+t reads column g at depth t
		t, g := ptx.And(k, lane, u32(3)), ptx.Shr(k, lane, u32(2))
		at := ptx.Add(k, s.offset(t, ptx.Add(k, ptx.Shr(k, first, u32(2)), ptx.Shr(k, g, u32(2)))),
			ptx.Shl(k, ptx.And(k, g, u32(3)), u32(2)))
		for o := 0; o < 32; o += 8 {
			s.base = append(s.base, ptx.Xor(k, at, u32(o*4)))
		}
		return
	}
	// With ldmatrix, the eight lanes of a group name the rows of one matrix of 8 × 16 bytes: of two along the result's bound and
	// two along the depth.
	group, r := ptx.Shr(k, lane, u32(3)), ptx.And(k, lane, u32(7))
	bound, deep := ptx.And(k, group, u32(1)), ptx.Shr(k, group, u32(1))
	if !ofA {
		bound, deep = deep, bound
	}
	if s.along {
		at := s.offset(ptx.Add(k, first, ptx.Mad(k, bound, u32(8), r)), deep)
		for step := range mmaRow / 32 {
			s.base = append(s.base, ptx.Xor(k, at, u32(32*step)))
		}
		return
	}
	at := s.offset(ptx.Mad(k, deep, u32(8), r), ptx.Add(k, ptx.Shr(k, first, u32(3)), bound))
	for o := 0; o < min(part, 64); o += 16 {
		s.base = append(s.base, ptx.Xor(k, at, u32(o*2)))
	}
}

// fragments returns what reads the lane's part of 16 rows from the o-th of the warp's on, 32 bytes deep: those for one product
// with 16 rows, or for two with 8.
func (s *mmaSide) fragments(stage ptx.Reg[uint32]) func(o, step int) []ptx.Reg[uint32] {
	k := s.k
	tile := ptx.AtByte(k, s.tile, stage)
	var at []ptx.Ptr[ptx.Shared, uint32]
	for _, b := range s.base {
		at = append(at, ptx.AtByte(k, tile, b))
	}
	return func(o, step int) []ptx.Reg[uint32] {
		switch {
		case s.along:
			return ptx.LdMatrix[uint32](k, at[step].Bytes(o*s.row), 4)
		case s.size == 2:
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
