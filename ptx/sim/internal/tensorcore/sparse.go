package tensorcore

import "github.com/wavelane/wavelane/ptx/ir"

// Sparse is how mma.sp finds the elements of a matrix A of 16 rows and k columns of which half are stored: in each chunk of four
// elements two, of two tf32 elements one, of eight elements of 4 bits two pairs. The metadata has four bits for each chunk, the indices of
// both elements or pairs, in the registers of some of the four lanes that have rows i and i+8 of A. The place of the stored elements is
// that of the elements of a matrix of k/2 columns, as [FragmentA] has it.
type Sparse struct {
	K        int
	Type     ir.Type
	Selector int  // which of the lanes have the metadata
	Ordered  bool // the indices have to ascend
}

// HasSparse tells whether mma.sp has the shape for elements of type t in A.
func HasSparse(m, n, k int, t ir.Type) bool {
	return m == 16 && n == 8 && (k*t.Bits() == 512 || k*t.Bits() == 256)
}

// elements is the number of elements in a chunk.
func (s *Sparse) elements() int {
	switch {
	case s.Type.Bits() == 32:
		return 2
	case s.Type.Bits() == 4:
		return 8
	}
	return 4
}

// place is where the four bits of a chunk are: the lane, and the lowest of them in its register.
func (s *Sparse) place(row, chunk int) (lane, bit int) {
	quad, below := row%8*4, row/8
	if s.Type.Bits() >= 16 { // both rows in a register, four chunks of each
		lanes := s.K / s.elements() / 4
		return quad + s.Selector*lanes + chunk/4, 16*below + 4*(chunk%4)
	}
	// A row in a register, eight chunks of it.
	return quad + 2*s.Selector + below + 2*(chunk/8), 4 * (chunk % 8)
}

// Lanes are the lanes that have the metadata, a bit each.
func (s *Sparse) Lanes() uint32 {
	lanes := uint32(0)
	for row := range 16 {
		for chunk := range s.K / s.elements() {
			lane, _ := s.place(row, chunk)
			lanes |= 1 << lane
		}
	}
	return lanes
}

// Columns puts the columns of the stored elements of a row into list, of K/2 elements, by the metadata of all lanes. It is not ok if the
// bits of a chunk are none that mean something.
func (s *Sparse) Columns(list []int, metadata *[32]uint32, row int) (lane int, ok bool) {
	per := s.elements()
	for chunk := range s.K / per {
		lane, bit := s.place(row, chunk)
		if !choose(list, chunk, per, int(metadata[lane]>>bit&15), s.Ordered) {
			return lane, false
		}
	}
	return 0, true
}

// choose puts the columns of the stored elements of a chunk into list, by its four bits. They may mean nothing.
func choose(list []int, chunk, per, bits int, ordered bool) bool {
	first, second := bits&3, bits>>2
	at := chunk * per / 2
	switch per {
	case 2: // the element is two places of 16 bits
		list[at] = chunk*2 + first/2
		return bits == 0b0100 || bits == 0b1110
	case 8:
		list[at+2], list[at+3] = chunk*8+2*second, chunk*8+2*second+1
		list[at], list[at+1] = chunk*8+2*first, chunk*8+2*first+1
	default:
		list[at], list[at+1] = chunk*4+first, chunk*4+second
	}
	return first < second || first > second && !ordered
}

// Columns is how a row of A of a sparse tcgen05.mma finds the columns of its stored elements, in ascending order: the four bits of each chunk
// are in tensor memory. Of elements of up to 8 bits a row has two columns of its own lane. Of others a column has both halves of 8 rows and
// the 8 rows after those, in 16 lanes: the first half in the lower 8, the first rows in the lower 16 bits.
func (x *Instruction) Columns(list []int, row int, word func(lane, column int) uint32) (chunk int, ok bool) {
	per, chunks := 4, x.K/2
	if x.A.Per == 4 {
		per, chunks = 2, x.K
	}
	for chunk := range chunks {
		lane, bit := row, 4*chunk
		if x.A.Per < 16 {
			lane, bit = row/16*16+chunk/4*8+row%8, row/8%2*16+chunk%4*4
		}
		if !choose(list, chunk, per, int(word(lane, bit/32)>>(bit%32)&15), true) {
			return chunk, false
		}
	}
	return 0, true
}
