package tiling

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// AsyncOperand is an operand whose tiles are copied to shared memory in the background: tiles of Rows rows of the result (or columns)
// by Depth elements. A thread copies the same pieces of each tile. Beyond the result's bound tiles repeat other elements, whose
// products are not written.
type AsyncOperand struct {
	K                 *ptx.Kernel
	Size, Rows, Depth int             // bytes of an element; of a tile
	KMajor            bool            // neighbours in memory are neighbours in depth
	Threads           int             // of the block
	Ld                ptx.Reg[uint32] // elements from line to line in memory
	Vector            ptx.Reg[bool]   // lines begin at multiples of 16 bytes

	// How a stage is filled: lines of the tile in pieces, of which so many are a line and begin a number of elements after each other.
	perLine, every int
	place          func(line, piece ptx.Reg[uint32]) ptx.Reg[uint32] // where a piece comes to in a stage, in bytes
	line           int                                               // bytes from there to the same piece of the next line
	memory         ptx.Ptr[ptx.Shared, uint32]

	to     ptx.Ptr[ptx.Shared, uint32] // where the thread's first piece comes to in the first stage,
	apart  int                         // and how many bytes from there to the next one
	pieces []asyncPiece
	Step   ptx.Reg[uint64] // bytes from tile to tile in memory
}

// asyncPiece is what a thread copies of each tile: neighbours in memory.
type asyncPiece struct {
	at    *ptx.PtrVar[ptx.Global, uint8]
	d     ptx.Reg[uint32] // depth of the first element in the tile
	valid ptx.Reg[uint32] // elements inside of the result's bound
}

// Begin is about x, in tiles from row first on, of so many, and from depth d0 on.
func (s *AsyncOperand) Begin(x ptx.Ptr[ptx.Global, uint8], first, bound, d0 ptx.Reg[uint32]) {
	s.pieces = nil
	s.Step = scalar.U64(s.Depth * s.Size)
	lines := s.Rows
	if !s.KMajor {
		s.Step = s.Ld.MulWide(s.Depth * s.Size)
		lines = s.Depth
	}
	together := s.Threads / s.perLine // lines that the block brings at a time
	tid := s.K.Tid(ptx.X)
	number, i := tid.Div(s.perLine), tid.Rem(s.perLine)
	in := i.Mul(s.every)
	s.to, s.apart = s.memory.Bytes(s.place(number, i)), together*s.line
	for n := range lines / together {
		number := number.Add(n * together)
		p := asyncPiece{d: in}
		var major, minor ptx.Reg[uint32]
		if s.KMajor {
			major, minor = first.Add(number).Min(bound.Sub(1)), d0.Add(in)
		} else {
			p.d = number
			g := first.Add(in)
			inside := g.Lt(bound)
			p.valid = ptx.Select(inside, bound.Sub(g), 1)
			major, minor = d0.Add(number), ptx.Select(inside, g, 0)
		}
		at := major.MulWide(s.Ld)
		at = at.Add(ptx.Convert[uint64](minor)).Mul(s.Size)
		p.at = ptx.PtrVarOf(x.Bytes(at))
		s.pieces = append(s.pieces, p)
	}
}

// CopyPart starts to copy a tile of only so much depth, with zeros for the rest, whichever way its lines permit.
func (s *AsyncOperand) CopyPart(stage, depth ptx.Reg[uint32]) {
	to := s.to.Bytes(stage)
	s.K.If(s.Vector, func() {
		for i, p := range s.pieces {
			ptx.CpAsyncZfill(to.Bytes(i*s.apart), p.at.Get(), 16, ptx.Select(p.d.Lt(depth), ptx.U32(16), 0))
		}
	}, func() {
		for i, p := range s.pieces {
			s.gather(to.Bytes(i*s.apart), p, depth)
		}
	})
	skipped := depth.MulWide(s.Size)
	if !s.KMajor {
		skipped = skipped.Mul(ptx.Convert[uint64](s.Ld))
	}
	s.advance(skipped)
}

// Copy starts to copy a whole tile of aligned pieces if there are more, and goes on so many bytes. Only the copies ask: addresses that
// nobody needs do not hurt.
func (s *AsyncOperand) Copy(stage ptx.Reg[uint32], more ptx.Reg[bool], step ptx.Reg[uint64]) {
	to := s.to.Bytes(stage)
	s.K.When(more, func() {
		for i, p := range s.pieces {
			ptx.CpAsync(to.Bytes(i*s.apart), p.at.Get(), 16)
		}
	})
	s.advance(step)
}

func (s *AsyncOperand) advance(bytes ptx.Reg[uint64]) {
	for _, p := range s.pieces {
		p.at.Set(p.at.Get().Bytes(bytes))
	}
}

// gather brings 16 bytes element by element: they need not be aligned, and may end inside.
func (s *AsyncOperand) gather(to ptx.Ptr[ptx.Shared, uint32], p asyncPiece, depth ptx.Reg[uint32]) {
	inside := func(i int) ptx.Reg[bool] {
		if s.KMajor {
			return p.d.Add(i).Lt(depth)
		}
		if i == 0 { // of valid ones there is one at least
			return p.d.Lt(depth)
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
