package ptxkernels

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/ptx/analyze"
)

// allowance is a finding that stays as it is.
type allowance struct {
	class   analyze.Class
	reason  string
	kernels []string
}

var allowed = []allowance{
	{"UncoalescedLoad", "a lane has four neighbours, and reads them one by one where rows do not begin at multiples of 16 bytes",
		[]string{"gemm_64x64x16", "gemm_128x128x8", "conv2d_gemm_64x64"}},
	{"UncoalescedStore", "as the loads: rows that do not begin at multiples of 16 bytes",
		[]string{"gemm_64x64x16", "gemm_128x128x8"}},
	{"UncoalescedLoad", "the bias lies at strides that are parameters: 1 or 0 in every call",
		named("gemv_columns_")},
	{"UncoalescedStore", "the result lies at strides that are parameters: one of them is 1, and which it is depends on the call",
		named("gemv_columns_")},
	{"PredicateOverflow", "one more than the hardware has, where a tile is written, once",
		[]string{"gemm_64x64x16", "gemm_128x128x8"}},
	{"UncoalescedLoad", "chunks of 16 bytes are gathered element by element where rows do not begin at multiples of 16 bytes",
		named("mma_", "gemm_async_")},
	{"UncoalescedLoad", "the bias of four neighbours is read one by one, once for each chunk of the result", named("wgmma_")},
	{"UncoalescedStore", "as the loads: rows that do not begin at multiples of 16 bytes", named("mma_", "gemm_async_", "wgmma_")},
	{"PredicateOverflow", "a few more than the hardware has, where the operands' tiles are placed, once", named("mma_")},
	{"PredicateOverflow", "one more than the hardware has, where results are written", named("wgmma_")},
	{"HighRegisterPressure", "by the analyser's count; two of three warpgroups raise theirs to 232, and ptxas spills nothing", named("wgmma_f16_128x256", "wgmma_bf16_128x256", "wgmma_tf32_128x256", "attention_wgmma_")},
	{"UncoalescedStore", "rows of results are as far apart as there are heads: eight lanes write 128 bytes of each", named("attention_wgmma_")},
	{"SharedMemBankConflict", "lanes keep eight sums of neighbouring columns as two fours, once for each block",
		[]string{"gemv_columns_f16_1", "gemv_columns_f16_2", "gemv_columns_bf16_1", "gemv_columns_bf16_2"}},
	{"DataDependentStore", "what the block itself has put by in shared memory: which rows are its own", named("attention_mma_")},
	{"ComputedAddrFromLoaded", "rings begin where a length says, which is taken modulo the keys that there are",
		named("attention_64", "attention_128", "attention_256")},
	{"UncoalescedLoad", "elements one by one where rows do not begin at multiples of 16 bytes", named("attention_128", "attention_256")},
	{"ComputedAddrFromLoaded", "a row is looked up by an index from memory, which is compared with the number of rows",
		[]string{"gather", "gather_4", "scatter_rows", "scatter_rows_4"}},
	{"ComputedAddrFromLoaded", "the counter of a digit, the place of an update, or its number, which other kernels have sorted",
		[]string{"sort_place", "segment_sum", "segment_sum_4"}},
	{"DataDependentStore", "each update has a place of its own", []string{"sort_place"}},
	{"UncoalescedLoad", "the counts of a block, once, lie as the scan of each digit wants them", []string{"sort_place"}},
	{"UncoalescedStore", "the counts of a block, once, lie as the scan of each digit wants them", []string{"sort_count"}},
	{"ComputedAddrFromLoaded", "positions in a page that a table holds, or a block tells: compared with the page's size",
		[]string{"lz4_compress", "lz4_decompress"}},
	{"DataDependentStore", "what is written so far is as long as the block or the page is known to be; compared with its size",
		[]string{"lz4_compress", "lz4_decompress"}},
	{"DataDependentStore", "rows are put where indices say, which are compared with the number of rows; one thread writes each element",
		[]string{"scatter_rows", "scatter_rows_4", "segment_sum", "segment_sum_4"}},
	{"ComputedAddrFromLoaded", "keys lie in pages that a table names, whose ids are compared with the number of pages; rings begin where a length says",
		[]string{"attention_decode_f32_1", "attention_decode_f32_4", "attention_decode_f32_8", "attention_decode_f16_1",
			"attention_decode_f16_4", "attention_decode_f16_8", "attention_decode_bf16_1", "attention_decode_bf16_4",
			"attention_decode_bf16_8", "attention_decode_packed_1", "attention_decode_packed_4", "attention_decode_packed_8"}},
	{"UncoalescedLoad", "lanes look at the maxima of different parts, a few words in all", []string{"attention_decode_combine"}},
	{"ComputedAddrFromLoaded", "the entry of a table for a position, which is compared with the number of entries",
		[]string{"kv_append_1", "kv_append_8", "kv_append_f16_1", "kv_append_f16_8", "kv_append_bf16_1", "kv_append_bf16_8", "kv_append_packed"}},
	{"DataDependentStore", "rows go where positions and tables say, which are compared with the slots and pages that there are",
		[]string{"kv_append_1", "kv_append_8", "kv_append_f16_1", "kv_append_f16_8", "kv_append_bf16_1", "kv_append_bf16_8", "kv_append_packed"}},
	{"DataDependentStore", "a pair is appended to those in the arena, which is sorted before it is full", []string{"top_k"}},
	{"SharedMemBankConflict", "pairs of 64 bits at distances that are powers of two", []string{"top_k"}},
	{"ComputedAddrFromLoaded", "rings begin where a length says, which is taken modulo the keys that there are",
		named("attention_dq_", "attention_dk_dv_")},
	{"DataDependentStore", "as the loads: rings begin where a length says", named("attention_dk_dv_")},
	{"UncoalescedLoad", "elements one by one where rows do not begin at multiples of 16 bytes",
		[]string{"attention_dq_128", "attention_dq_256", "attention_dk_dv_128", "attention_dk_dv_256"}},
	{"UncoalescedLoad", "a lane has four neighbours, and reads them one by one where rows do not begin at multiples of 16 bytes",
		named("quant_gemm_")},
	{"ComputedAddrFromLoaded", "a row is looked up by an index from memory, which is compared with the number of rows",
		named("dequantize_")},
	{"HighRegisterPressure", "by the analyser's count; ptxas spills nothing",
		[]string{"quant_gemv_q2_k_1", "quant_gemv_q3_k_1", "quant_gemv_q5_k_1", "quant_gemv_q6_k_1", "quant_dp4a_q2_k_1", "quant_dp4a_q3_k_1",
			"quant_dp4a_q4_k_1", "quant_dp4a_q5_k_1", "quant_dp4a_q6_k_1", "quant_thin_q2_k", "quant_thin_q3_k", "quant_thin_q4_k",
			"quant_thin_q5_k", "quant_thin_q6_k"}},
	{"UncoalescedStore", "as the loads: rows that do not begin at multiples of 16 bytes", named("quant_gemm_")},
	{"UncoalescedStore", "halves lie as stages of shared memory want them: a lane's pairs in different chunks of 16 bytes, which its neighbours fill",
		[]string{"quant_halves"}},
	{"ComputedAddrFromLoaded", "addresses of rows of weights, which the block itself has put into shared memory", named("quant_mma_")},
}

// named are the kernels whose names begin so.
func named(prefixes ...string) (names []string) {
	for _, k := range all() {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(k.Name, p) }) {
			names = append(names, k.Name)
		}
	}
	return names
}

func (a *allowance) covers(class, kernel string) bool {
	return string(a.class) == class && slices.Contains(a.kernels, kernel)
}

// Every family is clean in strict mode but for what is allowed, and nothing is allowed that does not occur.
func TestStrict(t *testing.T) {
	for _, f := range kit.Families() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			used := map[string]bool{}
			for _, x := range verdictOf(t, f).findings {
				class, kernel, _ := strings.Cut(x, " of ")
				used[x] = true
				if class == "LowOccupancy" { // tiles in registers are what these kernels are for, and ptxas' counts are in a table
					continue
				}
				if !slices.ContainsFunc(allowed, func(a allowance) bool { return a.covers(class, kernel) }) {
					t.Errorf("%s, which wavelane ptx check --strict explains", x)
				}
			}
			for _, a := range allowed {
				require.NotEmpty(t, a.reason)
				for _, k := range a.kernels {
					known := slices.ContainsFunc(f.Kernels, func(o *kit.Kernel) bool { return o.Name == k })
					if what := fmt.Sprint(a.class, " of ", k); known && !used[what] {
						t.Errorf("%s is allowed, and does not occur", what)
					}
				}
			}
		})
	}
	for _, a := range allowed {
		for _, k := range a.kernels {
			require.True(t, slices.ContainsFunc(all(), func(o *kit.Kernel) bool { return o.Name == k }), "%s is no kernel", k)
		}
	}
}
