package lower

import (
	"sync"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// lowering says how the steps of an entry become code.
type lowering struct {
	lower              func(s *step) error
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
	rows := lowering{lower: rowwise, prologue: true, inPlace: firstOperand}
	reduction := lowering{lower: reduceRows, prologue: true, epilogue: true}
	places := lowering{lower: reduceRows, prologue: true} // results are no float32 numbers
	t := map[*program.Entry]lowering{
		program.Fused:            {lower: fusedStep, inPlace: everyOperand},
		catalogue.BiasActivation: {lower: biasActivationStep, inPlace: everyOperand},
		catalogue.RandomUniform:  {lower: RandomUniform},
		catalogue.RandomNormal:   {lower: RandomNormal},

		catalogue.Copy:              {lower: copyStep},
		catalogue.Reshape:           {lower: copyStep},
		catalogue.Fill:              {lower: fillStep},
		catalogue.Cast:              {lower: castStep},
		catalogue.Transpose:         {lower: Transpose},
		catalogue.Slice:             {lower: Slice},
		catalogue.Pad:               {lower: pad},
		catalogue.Concat:            {lower: Concat},
		catalogue.Embedding:         {lower: Embedding},
		catalogue.Gather:            {lower: Gather},
		catalogue.TakeAlong:         {lower: TakeAlong},
		catalogue.Scatter:           {lower: scatter},
		catalogue.ScatterAdd:        {lower: scatterAdd},
		catalogue.EmbeddingBackward: {lower: EmbeddingBackward},

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
		catalogue.CumSum:               {lower: CumSum},
		catalogue.TopK:                 {lower: topK},
		catalogue.CrossEntropy:         {lower: CrossEntropy},
		catalogue.CrossEntropyBackward: {lower: CrossEntropyBackward},
		catalogue.SoftmaxBackward:      {lower: SoftmaxBackward},

		catalogue.Softmax:           rows,
		catalogue.LogSoftmax:        rows,
		catalogue.LayerNorm:         rows,
		catalogue.RMSNorm:           rows,
		catalogue.L2Normalize:       rows,
		catalogue.GatedRMSNorm:      {lower: rowwise},
		catalogue.AddRMSNorm:        {lower: rowwise},
		catalogue.AddLayerNorm:      {lower: rowwise},
		catalogue.RMSNormBackward:   {lower: rowwise},
		catalogue.LayerNormBackward: {lower: rowwise},

		catalogue.MatMul:        {lower: matmulStep, epilogue: true},
		catalogue.MatVec:        {lower: matmulStep, epilogue: true},
		catalogue.VecMat:        {lower: matmulStep, epilogue: true},
		catalogue.RMSNormMatVec: {lower: fusedMatmul},
		catalogue.QKV:           {lower: fusedMatmul},
		catalogue.GateUpSwiGLU:  {lower: fusedMatmul},

		catalogue.QuantMatMulRowMajor: {lower: quantised},
		catalogue.QuantRMSNormMatVec:  {lower: quantised},
		catalogue.QuantQKV:            {lower: quantised},
		catalogue.QuantGateUpSwiGLU:   {lower: quantised},
		catalogue.QuantMatMulColMajor: {lower: quantisedColumns},
		catalogue.Dequantize:          {lower: dequantize},

		catalogue.Conv1D:    {lower: Conv1D, epilogue: true},
		catalogue.Conv2D:    {lower: Conv2D, epilogue: true},
		catalogue.MaxPool2D: {lower: MaxPool2D},
		catalogue.AvgPool2D: {lower: AvgPool2D},

		catalogue.Attention:         {lower: attention},
		catalogue.AttentionLSE:      {lower: attention},
		catalogue.PagedAttention:    {lower: pagedAttention},
		catalogue.AttentionBackward: {lower: attentionBackward},
		catalogue.Rope:              {lower: Rope},
		catalogue.RopeBackward:      {lower: RopeBackward},
		catalogue.KVAppend:          {lower: KVAppend},
		catalogue.KVAppendPaged:     {lower: KVAppendPaged},

		catalogue.SwiGLUBackward: {lower: SwiGLUBackward},
		catalogue.Adam:           {lower: Adam},

		catalogue.LZ4Compress:   {lower: LZ4Compress},
		catalogue.LZ4Decompress: {lower: LZ4Decompress},
	}
	for e := range functions {
		t[e] = lowering{lower: elementwiseStep, inPlace: everyOperand}
	}
	return t
})
