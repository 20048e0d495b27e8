package conformance

import (
	"encoding/binary"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func init() {
	byName["lz4_compress"], byName["lz4_decompress"] = lz4Cases, lz4Blocks
	largeByName["lz4_compress"] = func(b *builder) {
		b.add("", program.Attr{}, func(r *source) []operand { return []operand{lz4Operand(r.pages(200))} })
	}
	largeByName["lz4_decompress"] = func(b *builder) {
		b.add("", program.Attr{}, func(r *source) []operand { return r.blocks(200, func([]byte, *int) {}) })
	}
}

// page is a page of a kind: zeros, noise, a short or long pattern, text-like pieces repeated, words of few values, noise that
// ends in a run, a run that ends in noise.
func (r *source) page(kind int) []byte {
	p := make([]byte, catalogue.LZ4Page)
	noise := func(p []byte) {
		for i := range p {
			p[i] = byte(r.Uint32())
		}
	}
	repeat := func(p []byte, period int) {
		noise(p[:period])
		for i := period; i < len(p); i++ {
			p[i] = p[i-period]
		}
	}
	switch kind % 8 {
	case 1:
		noise(p)
	case 2:
		repeat(p, 1+r.IntN(40))
	case 3:
		repeat(p, 100+r.IntN(3000))
	case 4:
		for at := 0; at < len(p); {
			if from := r.IntN(at + 1); r.IntN(3) > 0 && at > 0 {
				for n := 1 + r.IntN(1<<r.IntN(11)); n > 0 && at < len(p); n-- {
					p[at] = p[from]
					at, from = at+1, from+1
				}
			} else {
				n := min(1+r.IntN(1<<r.IntN(9)), len(p)-at)
				noise(p[at : at+n])
				at += n
			}
		}
	case 5:
		for i := 0; i < len(p); i += 4 {
			binary.LittleEndian.PutUint32(p[i:], r.Uint32N(300))
		}
	case 6:
		noise(p[:2000])
		repeat(p[len(p)-r.IntN(30)-1:], 1)
	case 7:
		n := len(p) - r.IntN(20)
		repeat(p[:n], 1+r.IntN(3))
		noise(p[n:])
	}
	return p
}

// pages are pages of every kind.
func (r *source) pages(n int) []byte {
	var all []byte
	for i := range n {
		all = append(all, r.page(i)...)
	}
	return all
}

func lz4Operand(b []byte) operand {
	w := make([]uint32, len(b)/4)
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return operand{program.Type{DType: compute.Uint32, Shape: []int{len(b) / catalogue.LZ4Page, catalogue.LZ4Page / 4}}, w}
}

func lz4Cases(b *builder) {
	for kind := range 8 {
		b.add("", program.Attr{}, func(r *source) []operand { return []operand{lz4Operand(r.page(kind))} })
	}
	for _, n := range []int{0, 2, 7} {
		b.add("", program.Attr{}, func(r *source) []operand { return []operand{lz4Operand(r.pages(n))} })
	}
	b.bothAliases(b.add("", program.Attr{}, func(r *source) []operand { return []operand{lz4Operand(r.pages(18))} }))
}

// blocks are compressed pages, changed by a function.
func (r *source) blocks(n int, change func(block []byte, size *int)) []operand {
	var all []byte
	sizes := make([]int32, n)
	for i := range n {
		block := make([]byte, catalogue.LZ4Page)
		size := catalogue.CompressLZ4(block, r.page(i))
		change(block, &size)
		sizes[i], all = int32(size), append(all, block...)
	}
	return []operand{lz4Operand(all), {program.Type{DType: compute.Int32, Shape: []int{n}}, sizes}}
}

func lz4Blocks(b *builder) {
	add := func(note string, n int, change func(r *source, block []byte, size *int)) {
		b.add(note, program.Attr{}, func(r *source) []operand {
			return r.blocks(n, func(block []byte, size *int) { change(r, block, size) })
		})
	}
	for _, n := range []int{0, 1, 2, 8, 17} {
		add("", n, func(*source, []byte, *int) {})
	}
	add("any sizes", 16, func(r *source, _ []byte, size *int) { *size = r.IntN(2*catalogue.LZ4Page) - catalogue.LZ4Page/2 })
	add("truncated", 16, func(r *source, _ []byte, size *int) { *size = r.IntN(*size + 1) })
	add("longer than they are", 8, func(r *source, _ []byte, size *int) { *size = min(*size+1+r.IntN(9), catalogue.LZ4Page) })
	for range 3 {
		add("some bytes changed", 16, func(r *source, block []byte, size *int) {
			for range 1 + r.IntN(4) {
				block[r.IntN(*size)] = byte(r.Uint32())
			}
		})
	}
	add("bits flipped near the beginning", 16, func(r *source, block []byte, _ *int) { block[r.IntN(12)] ^= 1 << r.IntN(8) })
	add("noise", 16, func(r *source, block []byte, size *int) {
		copy(block, r.page(1))
		*size = 1 + r.IntN(catalogue.LZ4Page-1)
	})
	add("lengths without end", 4, func(r *source, block []byte, size *int) {
		for i := range block {
			block[i] = 255
		}
		*size = 1 + r.IntN(catalogue.LZ4Page-1)
	})
}
