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
		Doc: "pages of 4 KiB [pages, 1024] as blocks of the LZ4 block format, each at the beginning of its row of blocks [pages, 1024], " +
			"with the rest zeros, and their sizes [pages] in bytes: the same bytes on every device",
		Special: "Size 4096 says that a page does not get smaller: then the block is the page itself. A page of zeros has 26 bytes.",
		Inputs:  []program.Input{{Name: "pages", Types: []compute.DType{compute.Uint32}}},
		InferAll: func(in []program.Type, _ program.Attr) ([]program.Type, error) {
			return lz4Types(in[0])
		}}
	LZ4Decompress = &program.Entry{Name: "lz4_decompress", Method: "LZ4Decompress", Class: program.Layer, Results: []string{"pages", "status"},
		Doc: "the pages [pages, 1024] of 4 KiB at most that are compressed in blocks [pages, 1024] of the LZ4 block format, of so many " +
			"bytes as sizes [pages] say (4096: the page itself), with the rest zeros; status [pages] is the number of their bytes",
		Special: "Where a block is malformed, its page is zeros and its status says what is wrong: −1 the size is not from 1 to 4096, " +
			"−2 the block ends within a sequence or with a match, −3 a match begins before the page or at offset 0, −4 there is more " +
			"than a page. What lies behind a block is not looked at.",
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
