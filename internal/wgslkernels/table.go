package wgslkernels

import (
	"sync"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
)

type entry = lowering.Entry[*step]

// table has the code of every entry of the catalogue.
var table = sync.OnceValue(func() map[*program.Entry]entry {
	t := map[*program.Entry]entry{
		program.Fused:            {Lower: fused},
		catalogue.BiasActivation: {Lower: biasActivation},
		catalogue.Adam:           {Lower: adam},
		catalogue.SwiGLUBackward: {Lower: swiGLUBackward},
		catalogue.RandomUniform:  {Lower: random},
		catalogue.RandomNormal:   {Lower: random},

		catalogue.Copy:              {Lower: copyAll},
		catalogue.Reshape:           {Lower: copyAll},
		catalogue.Fill:              {Lower: fill},
		catalogue.Cast:              {Lower: cast},
		catalogue.Transpose:         {Lower: transpose},
		catalogue.Slice:             {Lower: slice},
		catalogue.Pad:               {Lower: pad},
		catalogue.Concat:            {Lower: concat},
		catalogue.Embedding:         {Lower: func(s *step) error { return s.take(catalogue.GatherRows(s.Operands[0].Shape, s.Operands[1].Shape)) }},
		catalogue.Gather:            {Lower: gather},
		catalogue.TakeAlong:         {Lower: takeAlong},
		catalogue.Scatter:           {Lower: func(s *step) error { return s.eachScatter(s.scatterLast) }},
		catalogue.ScatterAdd:        {Lower: func(s *step) error { return s.eachScatter(s.scatterAdd) }},
		catalogue.EmbeddingBackward: {Lower: embeddingBackward},

		catalogue.CumSum:               {Lower: cumSum},
		catalogue.TopK:                 {Lower: topK},
		catalogue.CrossEntropy:         {Lower: crossEntropy},
		catalogue.CrossEntropyBackward: {Lower: crossEntropyBackward},
		catalogue.SoftmaxBackward:      {Lower: softmaxBackward},
		catalogue.AddRMSNorm:           {Lower: addNorm},
		catalogue.AddLayerNorm:         {Lower: addNorm},
		catalogue.RMSNormBackward:      {Lower: normBackward},
		catalogue.LayerNormBackward:    {Lower: normBackward},

		catalogue.MatMul:        {Lower: matmulStep, Epilogue: true},
		catalogue.MatVec:        {Lower: matmulStep, Epilogue: true},
		catalogue.VecMat:        {Lower: matmulStep, Epilogue: true},
		catalogue.RMSNormMatVec: {Lower: fusedMatmul},
		catalogue.QKV:           {Lower: fusedMatmul},
		catalogue.GateUpSwiGLU:  {Lower: fusedMatmul},

		catalogue.QuantMatMulRowMajor: {Lower: quantMatMulRowMajor},
		catalogue.QuantMatMulColMajor: {Lower: quantMatMulColMajor},
		catalogue.QuantRMSNormMatVec:  {Lower: quantRMSNormMatVec},
		catalogue.QuantQKV:            {Lower: quantQKV},
		catalogue.QuantGateUpSwiGLU:   {Lower: quantGateUpSwiGLU},
		catalogue.Dequantize:          {Lower: dequantize},
		catalogue.MatMulExperts:       {Lower: func(s *step) error { return s.Experts() }},

		catalogue.Conv1D:    {Lower: conv1D, Epilogue: true},
		catalogue.Conv2D:    {Lower: conv2D, Epilogue: true},
		catalogue.MaxPool2D: {Lower: func(s *step) error { return pool2d(s, true) }},
		catalogue.AvgPool2D: {Lower: func(s *step) error { return pool2d(s, false) }},

		catalogue.Attention:         {Lower: attention},
		catalogue.AttentionLSE:      {Lower: attention},
		catalogue.PagedAttention:    {Lower: pagedAttention},
		catalogue.AttentionBackward: {Lower: attentionBackward},
		catalogue.Rope:              {Lower: func(s *step) error { return s.rope(1) }},
		catalogue.RopeBackward:      {Lower: func(s *step) error { return s.rope(-1) }},
		catalogue.KVAppend:          {Lower: kvAppend},
		catalogue.KVAppendPaged:     {Lower: kvAppendPaged},

		catalogue.LZ4Compress:   {Lower: func(s *step) error { return s.lz4("lz4_compress.wgsl", 3*catalogue.LZ4Page+16, s.caps.CountedLoops) }},
		catalogue.LZ4Decompress: {Lower: func(s *step) error { return s.lz4("lz4_decompress.wgsl", 2*catalogue.LZ4Page+16, false) }},
	}
	for e := range expressions {
		t[e] = entry{Lower: elementwise}
	}
	for e := range reductions {
		t[e] = entry{Lower: reduce, Prologue: true, Epilogue: true}
	}
	for e, s := range statistics {
		switch s.second {
		case "":
			t[e] = entry{Lower: rowwise, Prologue: true, Epilogue: true}
		case gate:
			t[e] = entry{Lower: rowwise}
		}
	}
	return t
})
