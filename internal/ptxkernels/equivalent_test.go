package ptxkernels

import (
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
)

// equivalents are mutations that compute the same, so that nobody can notice them, or what differs lies where it may: of kernels
// by name, of a kind, of instructions like instr that were written by a line of Go that contains source.
var equivalents = []struct {
	kernel, kind string // regular expressions
	instr        string // a regular expression, too
	source       string
	reason       string
}{
	{`^pow_`, `^bounds$`, "setp.lt.u32", "",
		"pow's power of what the logarithm of an infinity comes to is infinite or zero all the same"},
	{`.`, `^bounds$`, "setp.le.u32", "ptx.For(",
		"the iterations of an unrolled loop that are left over at its end are taken one by one: so may be all of them"},
	{`^(gemv|conv2d_direct)_`, `^bounds$`, "setp.ge.u32", "ptx.For(k, 0, now, 1",
		"whether the loop has an iteration is asked at its beginning: now is not 0, as left is not"},
	{`^gemv_(rows|columns)_(f16_|bf16_)?[24]$|^(rms_norm_matvec|qkv|gate_up_swiglu)_.*_8$`, `^bounds$`, "setp.lt.u32 .*, 1, ", ").Lt(",
		"a kernel with room for several vectors is taken where there are two or more"},
	{`^gemv_(rows|columns)_4(_[0-9a-f]+)?$`, `^bounds$`, "setp.lt.u32 .*, 2, ", ").Lt(",
		"float32 has a kernel with room for two, too: that for four is taken where there are three or more"},
	{`^gemv_columns_`, `^bounds$`, "setp.ge.u32", "ptx.For(k, 0, along, 1",
		"whether the loop has an iteration is asked at its beginning: there is a warp along the depth"},
	{`^gemv_(rows|columns)_(f16_|bf16_)?8$`, `^bounds$`, "setp.lt.u32 .*, [1234], ", "ptx.U32(i).Lt(g.vectors)",
		"a kernel with room for eight vectors is taken where there are five or more"},
	{`^gemv_rows_(f16_|bf16_)?\d$`, `^bounds$`, "setp.lt.u32", "k.If(lane.Eq(0).And(id.Lt(g.U32(&g.Total)))",
		"rows after the last are computed as it is, and the same would be stored once more"},
	{`^quant_(gemv|dp4a)_`, `^bounds$`, "setp.lt.u32", "both := second.Lt(total)",
		"as above: the last row takes the place of a second one that there is not"},
	{`^quant_mma_`, `^bounds$`, "setp.ge.u32", "ptx.For(k, tid.Shl(4), quantMmaStages*size, 16*quantMmaThreads",
		"whether the loop has an iteration is asked at its beginning: there is more memory than the threads fill in one"},
	{`^quant_columns_`, `^bounds$`, "setp.ge.u32", "ptx.For(k, tid, 32*n, threadgroup.Threads",
		"as above: there are as many sums as threads, or more"},
	{`^(quant_mma_|quant_thin_)`, `^bounds$`, "setp.ge.u32", "ptx.For(k, q.first, q.end, q.deep()",
		"as above: a split has a part of the depth"},
	{`^quant_mma_`, `^bounds$`, "setp.ge.u32", "ptx.For(k, 0, end, 32",
		"as above: a stage has values"},
	{`^quant_thin_`, `^bounds$`, "setp.ge.u32", "ptx.For(k, 0, warps, 1",
		"as above: a row has a warp"},
	{`^wgmma_`, `^bounds$`, "setp.ge.u32", "ptx.For(k, k.Ctaid(ptx.X), p.U32(&p.Items), k.Nctaid(ptx.X)",
		"as above: there are no more blocks than items"},
	{`^attention_wgmma_`, `^bounds$`, "setp.ge.u32", "ptx.For(k, k.Ctaid(ptx.X), b.U32(&b.Items), k.Nctaid(ptx.X)",
		"as above"},
	{`^attention_`, `^bounds$`, "setp.ge.u32", "ptx.For(k, 0, b.U32(&b.at.Width), flashDepth",
		"as above: a head has elements"},
	{`^attention_`, `^(bounds|iteration)$`, "", "ptx.For(k, b.from, b.to, ",
		"no row sees a key of a tile after the last: what there is of it weighs nothing"},
	{`^attention_mma_`, `^bounds$`, "setp.lt.u32", "k.If(tile.Get().Lt(b.to), next)",
		"of a tile after the last key nothing is copied"},
	{`^attention_mma_`, `^bounds$`, "setp.ge.u32", "ring := ptx.Select(b.front.Add(tile).Ge(capacity), b.to, capacity.Sub(b.front))",
		"no tile after a ring's end is plain then: they take longer"},
	{`.`, `^bounds$`, "setp.ge.u32", "ptx.For(b.K, b.from, b.End, step",
		"as above: a part of a row that is streamed has more elements than a group has lanes"},
	{`.`, `^bounds$`, "setp.ge.u32", "ptx.For(k, row, row.Add(rows), 4",
		"as above: a chunk has rows"},
	{`^sort_scan$`, `^bounds$`, "setp.ge.u32", "ptx.For(k, 0, blocks, sortThreads",
		"as above: counts of one block are not summed up"},
	{`^u8_to_`, `^bounds$`, "setp.gt.u32 .*, 2139095040", "isNaN :=",
		"a byte is no NaN"},
	{`^rope`, `^bounds$`, "setp.ge.u32", "ptx.For(k, first, last, 1",
		"whether the loop has an iteration is asked at its beginning: a chunk has a head, without heads there is no thread"},
	{`_(quads|elements)$`, `^bounds$`, "setp.gt.u32", "k.If(rank.Gt(uint32(d+1))",
		"an axis that there is not skips work: its words are 0, which as a divisor leave the index as it is, and as strides add nothing"},
	{`^(strided|strided_4)$`, `^bounds$`, "setp.gt.u32", "k.If(b.inner.Gt(uint32(at/axisWords))",
		"as above: the words of an axis that there is not are 0"},
	{`^cumsum$`, `^(bounds|predicate)$`, "", "s := ptx.LoadIf(ptx.U32(32*j).Lt(t.Lanes)",
		"sums of warps beyond the group would go into its next tile alone, and a group smaller than the block has one tile only"},
	{`^(.*softmax.*|.*norm.*|cross_entropy.*|sum.*|largest.*|place|inspect)$`, `^shuffle$`, "shfl.sync.idx", "all = append(all, x.Shuffle(ptx.ShuffleIndex, first",
		"every lane has the group's result already, combined in another order: the last bits differ, less than the tolerance"},
	{`^quant_mma_`, `^barrier$`, "bar.warp.sync", "k.WarpSync(ptx.FullWarp())",
		"it keeps ptxas from reading ahead until it has no registers left, and orders nothing"},
	{`^quant_columns_`, `^bounds$`, "setp.lt.u32", ".Lt(q.slots())",
		"a lane beyond the last slot has the last one's sums, and would store the same"},
	{`^quant_columns_.*_1$`, `^predicate$`, "st.global.f32", "ptx.StoreIf(there, to, sum)",
		"as above"},
	{`^segment_sum`, `^predicate$`, "st.global.u32", "ptx.StoreIf(col.Eq(0), ends.At(slot), key)",
		"every column has the same key to store"},
	{`^norm_columns$`, `^bounds$`, "setp.lt.u32 .*, 128", "k.If(k.Tid(ptx.X).Lt(columnsOfBlock)",
		"the thread after them has the first one's column, and would store the same"},
	{`^attention_wgmma_`, `^barrier$`, "bar", ".BarSync(b.group.Add(1), ptx.U32(256))",
		"turns are for speed: what warpgroups ask for in which order changes no result"},
	{`^quant_mma_`, `^bounds$`, "setp.lt.u32", "there = there.And(d.Add(among.Mul(q.deep() / each)).Lt(q.depth))",
		"what is copied from beyond the depth lies in scratch memory, and is not multiplied"},
	{`^quant_mma_`, `^bounds$`, "setp.lt.u32", "there := tid.And(halvesTile/4 - 1).Shl(2).Lt(rows)",
		"scales of rows that are not there are copied from scratch memory, and what comes of them is not stored"},
	{`^quant_halves$`, `^iteration$`, "setp.lt.u32", "ptx.For(k, 0, rounded, bytesPart",
		"an iteration more has nothing to load or to store"},
	{`^quant_bytes$`, `^predicate$`, "mul.rn.f32", "v[j].Set(v[j].Get().Mul(factor).Mul(g))",
		"lanes beyond the row store nothing"},
	{`^conv2d_direct_`, `^predicate$`, "fma.rn.f32", "s.Set(w[i].Fma(v, s.Get()))",
		"padding counts as 0, which a finite weight multiplies to 0; other kernels do multiply it"},
	{`^quant_mma_`, `^predicate$`, "", "k.When(rows.Gt(i/q.row())",
		"rows that are not there are copied from the padding of the tile, and what comes of them is not stored"},
	{`^quant_mma_`, `^predicate$`, "", "factor = ptx.LoadIf(there, factors.At(row), 0)",
		"a factor of a row that is not there is read from scratch memory, and what comes of it is not stored"},
}

func equivalent(k *kit.Kernel, m *ptxtest.Mutation, pos ir.Pos) bool {
	for _, e := range equivalents {
		if matches(e.kernel, k.Name) && matches(e.kind, m.Kind) && matches(e.instr, m.Instr) && strings.Contains(sourceAt(pos), e.source) {
			return true
		}
	}
	return false
}

func matches(pattern, s string) bool { return regexp.MustCompile(pattern).MatchString(s) }

// sourceAt is the line of Go that wrote an instruction.
func sourceAt(pos ir.Pos) string {
	lines, _ := sources.LoadOrStore(pos.File, sync.OnceValue(func() []string {
		text, err := os.ReadFile(pos.File)
		if err != nil {
			panic(err)
		}
		return strings.Split(string(text), "\n")
	}))
	return strings.TrimSpace(lines.(func() []string)()[pos.Line-1])
}

var sources sync.Map // file name → func() []string
