package catalogue

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// LZ4Words are the words of a page.
const LZ4Words = LZ4Page / 4

// LZ4 entries: pages of 4 KiB, each by itself.
var (
	LZ4Compress = &program.Entry{Name: "lz4_compress", Method: "LZ4Compress", Class: program.Layer, Results: []string{"blocks", "sizes"},
		Doc: "pages of 4 KiB compressed in the LZ4 block format, and the sizes of the blocks in bytes",
		Special: "pages is [pages, 1024]. Each block lies at the beginning of its row of blocks [pages, " +
			"1024]; the rest of the row is zeros. sizes is [pages]. The bytes are the same on every device. Size 4096 " +
			"means that the page does not get smaller and is stored as it is. A page of zeros takes 26 bytes.",
		Inputs: []program.Input{{Name: "pages", Types: []compute.DType{compute.Uint32}}},
		InferAll: func(in []program.Type, _ program.Attr) ([]program.Type, error) {
			return lz4Types(in[0])
		}}
	LZ4Decompress = &program.Entry{Name: "lz4_decompress", Method: "LZ4Decompress", Class: program.Layer, Results: []string{"pages", "status"},
		Doc: "the pages of up to 4 KiB that are compressed in blocks of the LZ4 block format",
		Special: "blocks is [pages, 1024]; sizes [pages] holds the bytes of each block (4096: the page as " +
			"it is). pages is [pages, 1024]; the rest of a row is zeros. status [pages] is the number of bytes of the " +
			"page, or says what is wrong with the block; then the page is zeros. Status −1: the size is not from 1 to " +
			"4096. Status −2: the block ends within a sequence or with a match. Status −3: a match begins before the " +
			"page or at offset 0. Status −4: there is more than a page. What follows a block is not read.",
		Inputs: []program.Input{{Name: "blocks", Types: []compute.DType{compute.Uint32}}, {Name: "sizes", Types: indexType}},
		InferAll: func(in []program.Type, _ program.Attr) ([]program.Type, error) {
			out, err := lz4Types(in[0])
			if err == nil && !program.EqualShape(in[1].Shape, out[1].Shape) {
				return nil, fmt.Errorf("sizes must have shape %v: %w", out[1].Shape, compute.ErrShape)
			}
			return out, err
		}}
)

func lz4Types(x program.Type) ([]program.Type, error) {
	if len(x.Shape) != 2 || x.Shape[1] != LZ4Words {
		return nil, fmt.Errorf("must have shape [pages %d]: %w", LZ4Words, compute.ErrShape)
	}
	return []program.Type{x, {DType: compute.Int32, Shape: x.Shape[:1]}}, nil
}
