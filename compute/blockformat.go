package compute

import "fmt"

// BlockFormat is a format of quantised weights: GGML's number for it. Package quant has the layouts, and conversion to and from
// float32; its quant.Type has the same numbers, so that BlockFormat(t) is the format of a type of a model file.
type BlockFormat uint32

// The formats that products take weights in.
const (
	Q4_0 BlockFormat = 2
	Q4_1 BlockFormat = 3
	Q5_0 BlockFormat = 6
	Q5_1 BlockFormat = 7
	Q8_0 BlockFormat = 8
	Q2_K BlockFormat = 10
	Q3_K BlockFormat = 11
	Q4_K BlockFormat = 12
	Q5_K BlockFormat = 13
	Q6_K BlockFormat = 14
)

var blockFormats = map[BlockFormat]string{Q4_0: "Q4_0", Q4_1: "Q4_1", Q5_0: "Q5_0", Q5_1: "Q5_1", Q8_0: "Q8_0",
	Q2_K: "Q2_K", Q3_K: "Q3_K", Q4_K: "Q4_K", Q5_K: "Q5_K", Q6_K: "Q6_K"}

func (f BlockFormat) String() string {
	if s, ok := blockFormats[f]; ok {
		return s
	}
	return fmt.Sprintf("BlockFormat(%d)", uint32(f))
}
