package reference

import (
	endian "encoding/binary"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func lz4Table() table {
	return table{
		catalogue.LZ4Compress: {values: func(in []Array, _ program.Attr, out []program.Type) [][]float64 {
			blocks, sizes := make([]float64, 0, out[0].Len()), make([]float64, 0, out[1].Len())
			var page, block [catalogue.LZ4Page]byte
			for x := in[0].Data; len(x) > 0; x = x[catalogue.LZ4Words:] {
				lz4Bytes(page[:], x)
				sizes = append(sizes, float64(catalogue.CompressLZ4(block[:], page[:])))
				blocks = appendWords(blocks, block[:])
			}
			return [][]float64{blocks, sizes}
		}},
		catalogue.LZ4Decompress: {values: func(in []Array, _ program.Attr, out []program.Type) [][]float64 {
			pages, status := make([]float64, 0, out[0].Len()), make([]float64, 0, out[1].Len())
			var page, block [catalogue.LZ4Page]byte
			for i, size := range in[1].Data {
				lz4Bytes(block[:], in[0].Data[i*catalogue.LZ4Words:])
				status = append(status, float64(catalogue.DecompressLZ4(page[:], block[:], int(size))))
				pages = appendWords(pages, page[:])
			}
			return [][]float64{pages, status}
		}},
	}
}

// lz4Bytes fills to with words, the lowest byte of each first.
func lz4Bytes(to []byte, words []float64) {
	for i := range len(to) / 4 {
		endian.LittleEndian.PutUint32(to[4*i:], uint32(words[i]))
	}
}

func appendWords(to []float64, b []byte) []float64 {
	for i := 0; i < len(b); i += 4 {
		to = append(to, float64(endian.LittleEndian.Uint32(b[i:])))
	}
	return to
}
