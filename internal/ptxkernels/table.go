package ptxkernels

import (
	"sync"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/lowering"
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

type entry = lowering.Entry[*kit.Step]

// table has the code of every entry of the catalogue.
var table = sync.OnceValue(func() map[*program.Entry]entry {
	// Kernels of rows and reductions compute their first operand by a prologue. Those of rows take no Epilogue: ptxas spills kilobytes
	// where one with functions is unrolled over the elements that a thread keeps in registers.
	rows := entry{Lower: norm.Rows, Prologue: true, InPlace: lowering.FirstOperand}
	reduction := entry{Lower: reduce.Reduce, Prologue: true, Epilogue: true}
	places := entry{Lower: reduce.Reduce, Prologue: true} // results are no float32 numbers
	t := map[*program.Entry]entry{
		program.Fused:            {Lower: elementwise.Fused, InPlace: lowering.EveryOperand},
		catalogue.BiasActivation: {Lower: elementwise.BiasActivation, InPlace: lowering.EveryOperand},
		catalogue.RandomUniform:  {Lower: elementwise.RandomUniform},
		catalogue.RandomNormal:   {Lower: elementwise.RandomNormal},

		catalogue.Copy:              {Lower: move.Copy},
		catalogue.Reshape:           {Lower: move.Copy},
		catalogue.Fill:              {Lower: move.Fill},
		catalogue.Cast:              {Lower: move.Cast},
		catalogue.Transpose:         {Lower: move.Transpose},
		catalogue.Slice:             {Lower: move.Slice},
		catalogue.Pad:               {Lower: move.Pad},
		catalogue.Concat:            {Lower: move.Concat},
		catalogue.Embedding:         {Lower: move.Embedding},
		catalogue.Gather:            {Lower: move.Gather},
		catalogue.TakeAlong:         {Lower: move.TakeAlong},
		catalogue.Scatter:           {Lower: move.Scatter},
		catalogue.ScatterAdd:        {Lower: move.ScatterAdd},
		catalogue.EmbeddingBackward: {Lower: move.EmbeddingBackward},

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
		catalogue.CumSum:               {Lower: reduce.CumSum},
		catalogue.TopK:                 {Lower: reduce.TopK},
		catalogue.CrossEntropy:         {Lower: reduce.CrossEntropy},
		catalogue.CrossEntropyBackward: {Lower: reduce.CrossEntropyBackward},
		catalogue.SoftmaxBackward:      {Lower: reduce.SoftmaxBackward},

		catalogue.Softmax:           rows,
		catalogue.LogSoftmax:        rows,
		catalogue.LayerNorm:         rows,
		catalogue.RMSNorm:           rows,
		catalogue.L2Normalize:       rows,
		catalogue.GatedRMSNorm:      {Lower: norm.Rows},
		catalogue.AddRMSNorm:        {Lower: norm.Rows},
		catalogue.AddLayerNorm:      {Lower: norm.Rows},
		catalogue.RMSNormBackward:   {Lower: norm.Rows},
		catalogue.LayerNormBackward: {Lower: norm.Rows},

		catalogue.MatMul:        {Lower: gemm.MatMul, Epilogue: true},
		catalogue.MatVec:        {Lower: gemm.MatMul, Epilogue: true},
		catalogue.VecMat:        {Lower: gemm.MatMul, Epilogue: true},
		catalogue.RMSNormMatVec: {Lower: gemm.Fused},
		catalogue.QKV:           {Lower: gemm.Fused},
		catalogue.GateUpSwiGLU:  {Lower: gemm.Fused},

		catalogue.QuantMatMulRowMajor: {Lower: quantised.MatMul},
		catalogue.QuantRMSNormMatVec:  {Lower: quantised.MatMul},
		catalogue.QuantQKV:            {Lower: quantised.MatMul},
		catalogue.QuantGateUpSwiGLU:   {Lower: quantised.MatMul},
		catalogue.QuantMatMulColMajor: {Lower: quantised.ColumnMajor},
		catalogue.Dequantize:          {Lower: quantised.Dequantize},
		catalogue.MatMulExperts:       {Lower: func(s *kit.Step) error { return s.Experts() }},

		catalogue.Conv1D:    {Lower: conv.Conv1D, Epilogue: true},
		catalogue.Conv2D:    {Lower: conv.Conv2D, Epilogue: true},
		catalogue.MaxPool2D: {Lower: conv.MaxPool2D},
		catalogue.AvgPool2D: {Lower: conv.AvgPool2D},

		catalogue.Attention:         {Lower: attention.Attention},
		catalogue.AttentionLSE:      {Lower: attention.Attention},
		catalogue.PagedAttention:    {Lower: attention.Paged},
		catalogue.AttentionBackward: {Lower: attention.Backward},
		catalogue.Rope:              {Lower: rope.Rope},
		catalogue.RopeBackward:      {Lower: rope.RopeBackward},
		catalogue.KVAppend:          {Lower: cache.KVAppend},
		catalogue.KVAppendPaged:     {Lower: cache.KVAppendPaged},

		catalogue.SwiGLUBackward: {Lower: elementwise.SwiGLUBackward},
		catalogue.Adam:           {Lower: elementwise.Adam},

		catalogue.LZ4Compress:   {Lower: lz4.LZ4Compress},
		catalogue.LZ4Decompress: {Lower: lz4.LZ4Decompress},
	}
	for e := range scalar.Functions {
		t[e] = entry{Lower: elementwise.Elementwise, InPlace: lowering.EveryOperand}
	}
	return t
})
