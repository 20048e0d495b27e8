package catalogue

import (
	endian "encoding/binary"
	"math/bits"
)

// The numbers of the LZ4 entries. A page is compressed by itself, to one block of the LZ4 block format
// (github.com/lz4/lz4, doc/lz4_Block_format.md).
const (
	LZ4Page   = 4096 // bytes of a page
	LZ4Lanes  = 32   // positions that are searched at a time
	LZ4Table  = 1024 // entries of the hash table
	LZ4Hash   = 2654435761
	LZ4Shift  = 22 // of a product with LZ4Hash: what is left are the bits of an index
	LZ4Last   = LZ4Page - 12
	LZ4End    = LZ4Page - 5 // where matches end at the latest
	LZ4Least  = 4           // bytes of a match
	lz4Direct = 15          // from this on, a length goes on after the token
)

// CompressLZ4 compresses a page into block, of the same size, and returns the size of the result, of which the rest is zeros;
// LZ4Page means that block is the page itself, because it does not get smaller.
//
// The search is made for 32 threads in step and gives the same bytes with one. A table holds, for each hash of four bytes,
// the last position where they were seen. From the present position on, 32 positions up to LZ4Last are looked up before any
// of them is entered. A position has a match where the table leads to the same four bytes, or else where the four bytes one
// position before are the same (a run, which the table would not know yet). The first position that has one begins a match,
// as long as possible; what lies between is literals. Entered are the positions up to and with the match's, then the last 32
// positions inside the match; without a match, all 32. The search goes on after.
func CompressLZ4(block, page []byte) int {
	block, page = block[:LZ4Page], page[:LZ4Page]
	var table [LZ4Table]uint16 // positions, plus 1
	word := func(i int) uint32 { return endian.LittleEndian.Uint32(page[i:]) }
	enter := func(from, to int) {
		for i := from; i < to; i++ {
			table[word(i)*LZ4Hash>>LZ4Shift] = uint16(i + 1)
		}
	}
	size, anchor := 0, 0
	for at := 0; at <= LZ4Last; {
		end := min(at+LZ4Lanes, LZ4Last+1)
		p, q := at, -1
		for ; p < end; p++ {
			w := word(p)
			if t := int(table[w*LZ4Hash>>LZ4Shift]) - 1; t >= 0 && word(t) == w {
				q = t
			} else if p > 0 && word(p-1) == w {
				q = p - 1
			} else {
				continue
			}
			break
		}
		if q < 0 {
			enter(at, end)
			at = end
			continue
		}
		enter(at, p+1)
		n := lz4Match(page, p, q)
		if size = lz4Sequence(block, size, page[anchor:p], p-q, n); size >= LZ4Page {
			return copy(block, page)
		}
		at, anchor = p+n, p+n
		enter(max(p+1, at-LZ4Lanes), min(at, LZ4Last+1))
	}
	if size = lz4Sequence(block, size, page[anchor:], 0, 0); size >= LZ4Page {
		return copy(block, page)
	}
	clear(block[size:])
	return size
}

// lz4Match is the length of the match at p with what begins at q.
func lz4Match(page []byte, p, q int) int {
	n := LZ4Least
	for p+n+8 <= LZ4Page {
		x := endian.LittleEndian.Uint64(page[p+n:]) ^ endian.LittleEndian.Uint64(page[q+n:])
		if x != 0 {
			return min(n+bits.TrailingZeros64(x)/8, LZ4End-p)
		}
		n += 8
	}
	for p+n < LZ4End && page[p+n] == page[q+n] {
		n++
	}
	return min(n, LZ4End-p)
}

// lz4Sequence writes literals and a match, of no bytes at the end of the block. It returns the new size, and writes nothing
// where that is LZ4Page or more.
func lz4Sequence(block []byte, size int, literals []byte, offset, match int) int {
	total := size + 1 + lz4More(len(literals)) + len(literals)
	if match > 0 {
		total += 2 + lz4More(match-LZ4Least)
	}
	if total >= LZ4Page {
		return total
	}
	token := min(len(literals), lz4Direct) << 4
	if match > 0 {
		token |= min(match-LZ4Least, lz4Direct)
	}
	block[size] = byte(token)
	size = lz4Length(block, size+1, len(literals))
	size += copy(block[size:], literals)
	if match > 0 {
		endian.LittleEndian.PutUint16(block[size:], uint16(offset))
		size = lz4Length(block, size+2, match-LZ4Least)
	}
	return size
}

// lz4More is the number of bytes after the token that a length takes.
func lz4More(n int) int {
	if n < lz4Direct {
		return 0
	}
	return 1 + (n-lz4Direct)/255
}

func lz4Length(block []byte, size, n int) int {
	more := lz4More(n)
	for i := range more - 1 {
		block[size+i] = 255
	}
	if more > 0 {
		block[size+more-1] = byte((n - lz4Direct) % 255)
	}
	return size + more
}

// Status values of lz4_decompress, instead of the number of bytes.
const (
	LZ4BadSize   = -1 // the size is not from 1 to LZ4Page
	LZ4Truncated = -2 // the block ends within a sequence, or after a match
	LZ4BadOffset = -3 // a match begins before the page, or where it is
	LZ4Overflow  = -4 // there is more than a page
)

// DecompressLZ4 decompresses the first size bytes of block into page, and returns how many bytes that is, of which the rest of
// the page is zeros, or a negative number that says what is wrong: then all of the page is zeros.
func DecompressLZ4(page, block []byte, size int) int {
	page = page[:LZ4Page]
	n := lz4Decompress(page, block, size)
	clear(page[max(n, 0):])
	return n
}

func lz4Decompress(page, block []byte, size int) int {
	if size < 1 || size > LZ4Page {
		return LZ4BadSize
	}
	block = block[:size]
	if size == LZ4Page {
		return copy(page, block)
	}
	at, to := 0, 0
	// length reads what follows a part of the token; ok is false where the block ends before it.
	length := func(n int) (_ int, ok bool) {
		if n < lz4Direct {
			return n, true
		}
		for ; at < size; at++ {
			if n += int(block[at]); block[at] < 255 {
				at++
				return n, true
			}
		}
		return 0, false
	}
	for at < size {
		token := int(block[at])
		at++
		n, ok := length(token >> 4)
		switch {
		case !ok || n > size-at:
			return LZ4Truncated
		case n > LZ4Page-to:
			return LZ4Overflow
		}
		to += copy(page[to:], block[at:at+n])
		if at += n; at == size {
			return to
		}
		if at+2 > size {
			return LZ4Truncated
		}
		offset := int(endian.LittleEndian.Uint16(block[at:]))
		at += 2
		if n, ok = length(token & 15); !ok {
			return LZ4Truncated
		}
		n += LZ4Least
		switch {
		case offset == 0 || offset > to:
			return LZ4BadOffset
		case n > LZ4Page-to:
			return LZ4Overflow
		}
		for end := to + n; to < end; { // what is there by now may be copied at once
			to += copy(page[to:end], page[to-offset:to])
		}
	}
	return LZ4Truncated
}
