package cpu

import (
	"sync"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/engine"
)

// table says how each entry of the catalogue is computed. It is filled when it is first used: lowerings of compositions look others
// up in it, which an initialiser may not.
var table struct {
	once      sync.Once
	spans     map[*program.Entry]*engine.SpanOp   // elementwise entries
	lowerings map[*program.Entry]func(*call) work // all others
}

// spanOf returns the span of an elementwise entry, nil for any other.
func spanOf(e *program.Entry) *engine.SpanOp {
	table.once.Do(fillTable)
	return table.spans[e]
}

// loweringOf returns the lowering of an entry that is not elementwise, nil for any other.
func loweringOf(e *program.Entry) func(*call) work {
	table.once.Do(fillTable)
	return table.lowerings[e]
}

func fillTable() {
	table.spans = map[*program.Entry]*engine.SpanOp{
		catalogue.Neg: &engine.NegOp, catalogue.Abs: &engine.AbsOp, catalogue.Sqrt: &engine.SqrtOp,
		catalogue.Recip: &engine.RecipOp, catalogue.Floor: &engine.FloorOp, catalogue.Ceil: &engine.CeilOp,
		catalogue.Round: &engine.RoundOp, catalogue.Trunc: &engine.TruncOp, catalogue.Sign: &engine.SignOp,
		catalogue.ReLU: &engine.ReluOp, catalogue.LeakyReLU: &engine.LeakyOp, catalogue.Clip: &engine.ClipOp,
		catalogue.Scale: &engine.ScaleOp, catalogue.HardSwish: &engine.HardSwishOp, catalogue.Add: &engine.AddOp,
		catalogue.Sub: &engine.SubOp, catalogue.Mul: &engine.MulOp, catalogue.Div: &engine.DivOp,
		catalogue.Maximum: &engine.MaximumOp, catalogue.Minimum: &engine.MinimumOp, catalogue.FMA: &engine.FmaOp,
		catalogue.Lerp: &engine.LerpOp, catalogue.Exp: &engine.ExpOp, catalogue.Log: &engine.LogOp,
		catalogue.Log2: &engine.Log2Op, catalogue.Sin: &engine.SinOp, catalogue.Cos: &engine.CosOp,
		catalogue.Tanh: &engine.TanhOp, catalogue.Sigmoid: &engine.SigmoidOp, catalogue.GELU: &engine.GeluOp,
		catalogue.GELUErf: &engine.GeluErfOp, catalogue.SiLU: &engine.SiLUOp, catalogue.Mish: &engine.MishOp,
		catalogue.Softplus: &engine.SoftplusOp, catalogue.SELU: &engine.SeluOp, catalogue.ELU: &engine.EluOp,
		catalogue.PowScalar: &engine.PowScalarOp, catalogue.Pow: &engine.PowOp, catalogue.Less: &engine.LessOp,
		catalogue.LessEqual: &engine.LessEqOp, catalogue.Equal: &engine.EqualOp, catalogue.Select: &engine.SelectOp,
		catalogue.ReLUBackward: &reluBackwardOp, catalogue.GELUBackward: &geluBackwardOp,
		catalogue.GELUErfBackward: &geluErfBackwardOp, catalogue.SiLUBackward: &siluBackwardOp,
		catalogue.SwiGLU: &swigluOp, catalogue.ClipByNorm: &clipByNormOp,
	}
	table.lowerings = map[*program.Entry]func(*call) work{
		catalogue.Sum: reduction(&engine.SumFold, rounded), catalogue.Mean: reduction(&engine.SumFold, meanOf),
		catalogue.NormL1: reduction(&engine.SumAbsFold, rounded), catalogue.NormL2: reduction(&engine.SquaresFold, rootOf),
		catalogue.NormLInf:   reduction(&engine.MaxAbsFold, itself),
		catalogue.DotProduct: reduction(&engine.DotFold, rounded), catalogue.Max: reduction(&engine.MaxFold, valueOf),
		catalogue.Min: reduction(&engine.MinFold, valueOf), catalogue.ArgMax: reduction(&engine.MaxFold, indexOf),
		catalogue.ArgMin:     reduction(&engine.MinFold, indexOf),
		catalogue.SumSquares: reduction(&engine.SquaresFold, rounded),
		catalogue.Inspect:    reduction(&specialFold, specialIn), catalogue.Softmax: rowwise(&engine.SoftmaxRow),
		catalogue.LogSoftmax: rowwise(&engine.LogSoftmaxRow), catalogue.LayerNorm: rowwise(&engine.LayerNormRow),
		catalogue.RMSNorm: rowwise(&engine.RmsNormRow), catalogue.L2Normalize: rowwise(&l2NormalizeRow),
		catalogue.GatedRMSNorm: rowwiseAs(&engine.RmsNormRow, gatedRows),
		catalogue.AddRMSNorm:   rowwiseAs(&engine.RmsNormRow, addedRows),
		catalogue.AddLayerNorm: rowwiseAs(&engine.LayerNormRow, addedRows), catalogue.RMSNormBackward: normBackward,
		catalogue.LayerNormBackward: normBackward, catalogue.SoftmaxBackward: softmaxBackward,
		catalogue.MatMul: product("matmul"), catalogue.MatVec: product("matvec"), catalogue.VecMat: product("vecmat"),
		catalogue.RMSNormMatVec: decomposed(catalogue.RMSNormMatVec), catalogue.QKV: decomposed(catalogue.QKV),
		catalogue.GateUpSwiGLU: decomposed(catalogue.GateUpSwiGLU), catalogue.BiasActivation: biasActivation,
		catalogue.Dequantize: dequantize, catalogue.QuantMatMulRowMajor: quantisedRows,
		catalogue.QuantMatMulColMajor: quantisedColumns, catalogue.QuantRMSNormMatVec: quantisedNorm,
		catalogue.QuantQKV: quantisedQKV, catalogue.QuantGateUpSwiGLU: quantisedGateUp, catalogue.MatMulExperts: matmulExperts, catalogue.Conv2D: conv2d,
		catalogue.Conv1D: conv1d, catalogue.MaxPool2D: pool2d(false), catalogue.AvgPool2D: pool2d(true),
		catalogue.Attention: attention, catalogue.AttentionLSE: attention, catalogue.AttentionBackward: attentionBackward,
		catalogue.PagedAttention: pagedAttention, catalogue.KVAppend: kvAppend, catalogue.KVAppendPaged: kvAppendPaged,
		catalogue.Rope: rope(1), catalogue.RopeBackward: rope(-1), catalogue.Transpose: transpose, catalogue.Slice: slice,
		catalogue.Pad: pad, catalogue.Concat: concat, catalogue.Copy: copyAll, catalogue.Reshape: copyAll,
		catalogue.Fill: fill, catalogue.Cast: cast, catalogue.Gather: gather, catalogue.TakeAlong: takeAlong,
		catalogue.Embedding: embedding, catalogue.Scatter: scatter, catalogue.ScatterAdd: scatterAdd,
		catalogue.EmbeddingBackward: embeddingBackward, catalogue.CumSum: cumSum, catalogue.TopK: topK,
		catalogue.RandomUniform: random(10, uniform), catalogue.RandomNormal: random(20, normal),
		catalogue.LZ4Compress: lz4Compress, catalogue.LZ4Decompress: lz4Decompress, catalogue.CrossEntropy: crossEntropy,
		catalogue.CrossEntropyBackward: crossEntropyBackward, catalogue.SwiGLUBackward: swigluBackward,
		catalogue.Adam: adam,
	}
}
