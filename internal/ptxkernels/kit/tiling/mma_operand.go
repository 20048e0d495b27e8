package tiling

import (
	"github.com/wavelane/wavelane/ptx"
)

// MMAOperand is an operand of an mma_gemm. Its tiles are copied to shared memory as they lie in memory, in chunks of 16 bytes that
// are swizzled within their lines, lest lines share banks:
//
//	K-major   lines of 64 bytes, one for each row of the result: chunk ^ (line >> 1 & 3)
//	M-major   lines of rows at one depth: chunk ^ (line & 7), and of 4-byte elements chunk ^ 2·(line & 3)
type MMAOperand struct {
	AsyncOperand
	// Of the lane, to read fragments: where in the first stage the first of them lies, swizzled by each value that XOR gives.
	base []ptx.Ptr[ptx.Shared, uint32]
	ofA  bool
}

// NewMMAOperand is the operand whose tiles have so many rows, in stages at memory. The warp reads its part of them, which begins at
// first: of a, a fragment is 16 rows; of b it is two of 8 rows.
func NewMMAOperand(k *ptx.Kernel, kind *MMAKind, kMajor bool, threads int, ld ptx.Reg[uint32], vector ptx.Reg[bool],
	memory ptx.Ptr[ptx.Shared, uint32], rows int, lane, first ptx.Reg[uint32], part int, ofA bool) *MMAOperand {
	s := &MMAOperand{AsyncOperand: AsyncOperand{K: k, Size: kind.Size, Rows: rows, Depth: MMARow / kind.Size, KMajor: kMajor, Threads: threads,
		Ld: ld, Vector: vector, MayBeUnaligned: true, every: 16 / kind.Size, line: MMARow, copies: []asyncCopy{{16, 0, 0}}, memory: memory},
		ofA: ofA}
	if !kMajor {
		s.line = rows * kind.Size
	}
	s.perLine, s.place = s.line/16, s.offset
	s.findFragments(lane, first, part)
	return s
}

// swizzle is what the chunks of a line are permuted by.
func (s *MMAOperand) swizzle(line ptx.Reg[uint32]) ptx.Reg[uint32] {
	switch {
	case s.KMajor:
		return line.Shr(1).And(3)
	case s.Size == 4:
		return line.And(3).Shl(1)
	}
	return line.And(7)
}

// offset is where in a stage a chunk of a line lies.
func (s *MMAOperand) offset(line, chunk ptx.Reg[uint32]) ptx.Reg[uint32] {
	return line.Mad(s.line, chunk.Xor(s.swizzle(line)).Shl(4))
}

// findFragments finds where the lane reads fragments of the warp's part.
func (s *MMAOperand) findFragments(lane, first ptx.Reg[uint32], part int) {
	if !s.KMajor && s.Size == 4 { // lane 4g+t reads column g at depth t
		t, g := lane.And(3), lane.Shr(2)
		at := s.offset(t, first.Shr(2).Add(g.Shr(2))).Add(g.And(3).Shl(2))
		s.swizzled(at, 4)
		return
	}
	// With ldmatrix, the eight lanes of a group name the rows of one matrix of 8 × 16 bytes: of two along the result's bound and
	// two along the depth.
	group, r := lane.Shr(3), lane.And(7)
	bound, deep := group.And(1), group.Shr(1)
	if !s.ofA {
		bound, deep = deep, bound
	}
	if s.KMajor {
		at := s.offset(first.Add(bound.Mad(8, r)), deep)
		s.swizzled(at, MMARow/32)
		return
	}
	at := s.offset(deep.Mad(8, r), first.Shr(3).Add(bound))
	s.swizzled(at, min(part, 64)/16)
}

// swizzled sets the bases.
func (s *MMAOperand) swizzled(at ptx.Reg[uint32], n int) {
	for i := range n {
		s.base = append(s.base, s.memory.Bytes(at.Xor(32*i)))
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
		case s.KMajor:
			return ptx.LdMatrix[uint32](at[step].Bytes(o*s.line), 4)
		case s.Size == 2:
			return ptx.LdMatrixTrans[uint32](at[o/16%4].Bytes(o/64*128+16*step*s.line), 4)
		}
		word := func(o, d int) ptx.Reg[uint32] {
			return at[o/8%4].Bytes(o/32*128 + (8*step+d)*s.line).Load()
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
