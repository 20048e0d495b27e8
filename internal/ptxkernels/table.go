package ptxkernels

import (
	"sync"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/attention"
	"github.com/wavelane/wavelane/internal/ptxkernels/cache"
	"github.com/wavelane/wavelane/internal/ptxkernels/conv"
	"github.com/wavelane/wavelane/internal/ptxkernels/elementwise"
	"github.com/wavelane/wavelane/internal/ptxkernels/gemm"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/lz4"
	"github.com/wavelane/wavelane/internal/ptxkernels/move"
	"github.com/wavelane/wavelane/internal/ptxkernels/norm"
	"github.com/wavelane/wavelane/internal/ptxkernels/quantised"
	"github.com/wavelane/wavelane/internal/ptxkernels/reduce"
	"github.com/wavelane/wavelane/internal/ptxkernels/rope"
)

// lowering says how the steps of an entry become code.
type lowering struct {
	lower              func(s *kit.Step) error
	prologue, epilogue bool // whether its kernels take one
	inPlace            operands
}

// operands in whose memory a result may lie.
type operands uint8

const (
	noOperand operands = iota
	firstOperand
	everyOperand
)

// table has the code of every entry of the catalogue.
var table = sync.OnceValue(func() map[*program.Entry]lowering {
	// Kernels of rows and reductions compute their first operand by a prologue. Those of rows take no epilogue: ptxas spills kilobytes
	// where one with functions is unrolled over the elements that a thread keeps in registers.
	rows := lowering{lower: norm.Rows, prologue: true, inPlace: firstOperand}
	reduction := lowering{lower: reduce.Reduce, prologue: true, epilogue: true}
	places := lowering{lower: reduce.Reduce, prologue: true} // results are no float32 numbers
	t := map[*program.Entry]lowering{
		program.Fused:            {lower: elementwise.Fused, inPlace: everyOperand},
		catalogue.BiasActivation: {lower: elementwise.BiasActivation, inPlace: everyOperand},
		catalogue.RandomUniform:  {lower: elementwise.RandomUniform},
		catalogue.RandomNormal:   {lower: elementwise.RandomNormal},

		catalogue.Copy:              {lower: move.Copy},
		catalogue.Reshape:           {lower: move.Copy},
		catalogue.Fill:              {lower: move.Fill},
		catalogue.Cast:              {lower: move.Cast},
		catalogue.Transpose:         {lower: move.Transpose},
		catalogue.Slice:             {lower: move.Slice},
		catalogue.Pad:               {lower: move.Pad},
		catalogue.Concat:            {lower: move.Concat},
		catalogue.Embedding:         {lower: move.Embedding},
		catalogue.Gather:            {lower: move.Gather},
		catalogue.TakeAlong:         {lower: move.TakeAlong},
		catalogue.Scatter:           {lower: move.Scatter},
		catalogue.ScatterAdd:        {lower: move.ScatterAdd},
		catalogue.EmbeddingBackward: {lower: move.EmbeddingBackward},

		catalogue.Sum:                  reduction,
		catalogue.SumSquares:           reduction,
		catalogue.Mean:                 reduction,
		catalogue.NormL1:               reduction,
		catalogue.NormL2:               reduction,
		catalogue.DotProduct:           reduction,
		catalogue.Max:                  reduction,
		catalogue.Min:                  reduction,
		catalogue.NormLInf:             reduction,
		catalogue.ArgMax:               places,
		catalogue.ArgMin:               places,
		catalogue.Inspect:              places,
		catalogue.CumSum:               {lower: reduce.CumSum},
		catalogue.TopK:                 {lower: reduce.TopK},
		catalogue.CrossEntropy:         {lower: reduce.CrossEntropy},
		catalogue.CrossEntropyBackward: {lower: reduce.CrossEntropyBackward},
		catalogue.SoftmaxBackward:      {lower: reduce.SoftmaxBackward},

		catalogue.Softmax:           rows,
		catalogue.LogSoftmax:        rows,
		catalogue.LayerNorm:         rows,
		catalogue.RMSNorm:           rows,
		catalogue.L2Normalize:       rows,
		catalogue.GatedRMSNorm:      {lower: norm.Rows},
		catalogue.AddRMSNorm:        {lower: norm.Rows},
		catalogue.AddLayerNorm:      {lower: norm.Rows},
		catalogue.RMSNormBackward:   {lower: norm.Rows},
		catalogue.LayerNormBackward: {lower: norm.Rows},

		catalogue.MatMul:        {lower: gemm.MatMul, epilogue: true},
		catalogue.MatVec:        {lower: gemm.MatMul, epilogue: true},
		catalogue.VecMat:        {lower: gemm.MatMul, epilogue: true},
		catalogue.RMSNormMatVec: {lower: gemm.Fused},
		catalogue.QKV:           {lower: gemm.Fused},
		catalogue.GateUpSwiGLU:  {lower: gemm.Fused},

		catalogue.QuantMatMulRowMajor: {lower: quantised.MatMul},
		catalogue.QuantRMSNormMatVec:  {lower: quantised.MatMul},
		catalogue.QuantQKV:            {lower: quantised.MatMul},
		catalogue.QuantGateUpSwiGLU:   {lower: quantised.MatMul},
		catalogue.QuantMatMulColMajor: {lower: quantised.ColumnMajor},
		catalogue.Dequantize:          {lower: quantised.Dequantize},

		catalogue.Conv1D:    {lower: conv.Conv1D, epilogue: true},
		catalogue.Conv2D:    {lower: conv.Conv2D, epilogue: true},
		catalogue.MaxPool2D: {lower: conv.MaxPool2D},
		catalogue.AvgPool2D: {lower: conv.AvgPool2D},

		catalogue.Attention:         {lower: attention.Attention},
		catalogue.AttentionLSE:      {lower: attention.Attention},
		catalogue.PagedAttention:    {lower: attention.Paged},
		catalogue.AttentionBackward: {lower: attention.Backward},
		catalogue.Rope:              {lower: rope.Rope},
		catalogue.RopeBackward:      {lower: rope.RopeBackward},
		catalogue.KVAppend:          {lower: cache.KVAppend},
		catalogue.KVAppendPaged:     {lower: cache.KVAppendPaged},

		catalogue.SwiGLUBackward: {lower: elementwise.SwiGLUBackward},
		catalogue.Adam:           {lower: elementwise.Adam},

		catalogue.LZ4Compress:   {lower: lz4.LZ4Compress},
		catalogue.LZ4Decompress: {lower: lz4.LZ4Decompress},
	}
	for e := range scalar.Functions {
		t[e] = lowering{lower: elementwise.Elementwise, inPlace: everyOperand}
	}
	return t
})
