package ptx

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/internal/cost"
)

// TileLayout is how a matrix of Rows × Cols elements of Size bytes lies in shared memory, row by row.
//
// Pad elements after each row shift rows against each other; an odd number of 4-byte words makes columns free of bank
// conflicts. Swizzled instead permutes the 16-byte chunks of each row by XOR with the row's number, and takes no memory:
//
//	rows of 128 bytes or a multiple   chunk ^ (row & 7)
//	rows of 64 bytes                  chunk ^ (row >> 1 & 3)
//	rows of 32 bytes                  chunk ^ (row >> 2 & 1)
//
// which is what tensor copies and [Wgmma] call [Swizzle128], [Swizzle64] and [Swizzle32] if the rows have just these
// sizes and the tile is aligned to 1,024 bytes. Bank conflicts of a warp, as [BankConflicts] counts them:
//
//	4-byte elements     row of 32   column of 32   16 bytes a lane: 8 rows   16 bytes a lane: row
//	32×32 plain              1           32                   8                       1
//	32×32, pad 1             1            1           not aligned             not aligned
//	32×32, pad 4             1            4                   1                       1
//	32×32 swizzled           1            4                   1                       1
//
// "8 rows" is what [LdMatrix] does with 2-byte elements; the same holds for rows of 64 halves.
type TileLayout struct {
	Rows, Cols int
	Size       int
	Pad        int
	Swizzled   bool
}

// Check tells what is wrong with a layout: sizes that are no powers of two, or rows that cannot be swizzled. The error
// wraps [compute.ErrArgument].
func (l TileLayout) Check() error {
	row := l.Cols * l.Size
	switch {
	case l.Rows < 1 || l.Cols < 1 || l.Pad < 0:
		return fmt.Errorf("ptx: tile of %d × %d elements, pad %d: %w", l.Rows, l.Cols, l.Pad, compute.ErrArgument)
	case l.Size < 1 || l.Size > 16 || l.Size&(l.Size-1) != 0:
		return fmt.Errorf("ptx: tile of elements of %d bytes: %w", l.Size, compute.ErrArgument)
	case l.Swizzled && l.Pad > 0:
		return fmt.Errorf("ptx: tile both padded and swizzled: %w", compute.ErrArgument)
	case l.Swizzled && row != 32 && row != 64 && (row < 128 || row%128 != 0):
		return fmt.Errorf("ptx: swizzled tile with rows of %d bytes; 32, 64 and multiples of 128 are possible: %w", row,
			compute.ErrArgument)
	}
	return nil
}

// Stride is the number of bytes from row to row.
func (l TileLayout) Stride() int { return (l.Cols + l.Pad) * l.Size }

// Bytes is the size of the tile.
func (l TileLayout) Bytes() int { return l.Rows * l.Stride() }

// swizzle is by how much a row's number is shifted left, and which bits then change the byte offset in the row.
func (l TileLayout) swizzle() (shift int, mask int) {
	chunks := min(8, l.Cols*l.Size/16)
	return 4 - bits.TrailingZeros(8/uint(max(1, chunks))), (chunks - 1) << 4
}

// Offset is where an element lies, in bytes from the beginning.
func (l TileLayout) Offset(row, col int) int {
	in := col * l.Size
	if l.Swizzled {
		shift, mask := l.swizzle()
		in ^= row << shift & mask
	}
	return row*l.Stride() + in
}

// RowConflicts is the conflicts of 32 lanes that access neighbours in a row, the worst over the tile.
func (l TileLayout) RowConflicts() int {
	return l.worst(l.Size, l.Rows, l.Cols-31, func(r, c, lane int) (int, int) { return r, c + lane })
}

// ColumnConflicts is the conflicts of 32 lanes that access neighbours in a column.
func (l TileLayout) ColumnConflicts() int {
	return l.worst(l.Size, l.Rows-31, l.Cols, func(r, c, lane int) (int, int) { return r + lane, c })
}

// LdMatrixConflicts is the conflicts of lanes that access 16 bytes each, at one place in neighbouring rows: [LdMatrix]
// and the like.
func (l TileLayout) LdMatrixConflicts() int {
	per := max(1, 16/l.Size)
	return l.worst(16, l.Rows-7, l.Cols/per, func(r, c, lane int) (int, int) { return r + lane%8, c * per })
}

// VectorConflicts is the conflicts of lanes that access 16 bytes each, neighbours in a row and then in the next ones:
// how tiles are filled.
func (l TileLayout) VectorConflicts() int {
	per := max(1, 16/l.Size)
	chunks := max(1, l.Cols/per)
	return l.worst(16, l.Rows-(31+chunks)/chunks+1, 1, func(r, _, lane int) (int, int) {
		return r + lane/chunks, lane % chunks * per
	})
}

// worst is the most conflicts over the tile's places for an access; 0 if it fits nowhere or is not aligned.
func (l TileLayout) worst(size, rows, cols int, at func(r, c, lane int) (int, int)) int {
	most := 0
	for r := range max(0, min(rows, 32)) {
		for c := range max(0, min(cols, 64)) {
			var addresses [32]int
			for lane := range addresses {
				addresses[lane] = l.Offset(at(r, c, lane))
				if addresses[lane]%size != 0 {
					return 0
				}
			}
			most = max(most, BankConflicts(size, addresses[:]))
		}
	}
	return most
}

// BankConflicts is how many times longer than the least the access of a warp to shared memory takes: 1 is free of
// conflicts. Each lane accesses size bytes at its address. Memory has 32 banks of 4 bytes; it serves 32 lanes at a time
// for up to 4 bytes each, 16 for 8, 8 for 16, and different words of one bank one after another. (CUDA C++ Programming
// Guide, "Shared Memory".)
func BankConflicts(size int, addresses []int) int {
	most := 0
	for warp := range slices.Chunk(addresses, 32) {
		var at [32]uint64
		for lane, a := range warp {
			at[lane] = uint64(a)
		}
		worst, _, _ := cost.Banks(&at, uint32(1<<len(warp)-1), max(1, size))
		most = max(most, worst)
	}
	return most
}

// Tile is a matrix in shared memory.
type Tile[T Elem] struct {
	k      *Kernel
	Layout TileLayout
	base   Ptr[Shared, T]
}

// NewTile declares stages tiles of a layout, one after the other, aligned to 16 bytes, swizzled ones to 1,024. The
// layout's Size may be left 0.
func NewTile[T Elem](k *Kernel, name string, l TileLayout, stages int) Tile[T] {
	l = k.layout(l, typeOf[T]())
	align := 16
	if l.Swizzled {
		align = 1024
	}
	return Tile[T]{k, l, SharedArray[T](k, name, max(1, stages)*l.Bytes()/l.Size, Align(align))}
}

// TileAt is the tile that begins at p.
func TileAt[T Elem](k *Kernel, p Ptr[Shared, T], l TileLayout) Tile[T] {
	return Tile[T]{k, k.layout(l, typeOf[T]()), p}
}

func (k *Kernel) layout(l TileLayout, t *typeInfo) TileLayout {
	if l.Size == 0 {
		l.Size = t.size()
	}
	err := l.Check()
	if err == nil && l.Size != t.size() {
		err = fmt.Errorf("ptx: tile of elements of %d bytes laid out for %d: %w", t.size(), l.Size, compute.ErrArgument)
	}
	if err != nil {
		k.m.errs = append(k.m.errs, &Error{Kernel: k.name, Pos: caller(), Msg: err.Error()})
		return TileLayout{Rows: 1, Cols: 1, Size: t.size()}
	}
	return l
}

// Stage is the i-th tile from this one; i is an int or an [Index].
func (t Tile[T]) Stage(i any) Tile[T] {
	t.base = t.base.move(i, t.Layout.Bytes())
	return t
}

// Ptr is the first element.
func (t Tile[T]) Ptr() Ptr[Shared, T] { return t.base }

// At is the address of an element; row and col are of type uint32. Constants fold: a constant column of a padded tile takes no
// instruction, nor does a constant row.
func (t Tile[T]) At(row, col any) Ptr[Shared, T] {
	l, y, x := t.Layout, lift[uint32](t.k, row), lift[uint32](t.k, col)
	r, fixedRow := y.constant()
	c, fixedCol := x.constant()
	switch {
	case fixedRow && fixedCol:
		return t.base.Bytes(l.Offset(int(r), int(c)))
	case !l.Swizzled:
		return t.base.move(y, l.Stride()).At(x)
	}
	shift, mask := l.swizzle()
	var in, change Reg[uint32]
	if fixedCol {
		in = Imm(uint32(c) * uint32(l.Size))
	} else {
		in = scaled(x, l.Size)
	}
	if fixedRow {
		change = Imm(uint32(r) << shift & uint32(mask))
	} else {
		change = y.Shl(shift).And(mask)
	}
	return t.base.move(y, l.Stride()).Bytes(in.Xor(change))
}

// scaled is x · size, a power of two.
func scaled(x Reg[uint32], size int) Reg[uint32] {
	if size == 1 {
		return x
	}
	return x.Shl(bits.TrailingZeros(uint(size)))
}
