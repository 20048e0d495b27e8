package exec

import (
	"github.com/wavelane/wavelane/batch"
	"math"
	"sync"
)

func sqrt(x float64) float64 { return math.Sqrt(x) }

// operators is the table of operators by domain and name.
var operators = sync.OnceValue(func() map[opKey]*operator {
	t := map[opKey]*operator{}
	add := func(f func(c *call) ([]*Value, error), names ...string) {
		for _, n := range names {
			t[opKey{"", n}] = &operator{run: f, since: 1}
		}
	}
	add(unary, "Abs", "Neg", "Sqrt", "Exp", "Log", "Reciprocal", "Floor", "Ceil", "Round", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan",
		"Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh", "Erf", "Sign", "Sigmoid", "Relu", "Softplus")
	add(float(func(c *call, b *batch.Batch, x batch.Value) batch.Value { return deviceUnary[c.Op](b, x) }), "HardSwish", "Mish", "Softsign")
	add(binaryOp, "Add", "Sub", "Mul", "Div", "PRelu")
	add(fold("Add", false), "Sum")
	add(fold("Add", true), "Mean")
	add(fold("Max", false), "Max")
	add(fold("Min", false), "Min")
	add(mod, "Mod")
	add(pow, "Pow")
	add(compare, "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")
	add(logic, "And", "Or", "Xor", "Not")
	add(integers, "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift")
	add(isNaN, "IsNaN")
	add(isInf, "IsInf")
	add(where, "Where")
	add(clip, "Clip")
	add(leakyRelu, "LeakyRelu")
	add(elu, "Elu")
	add(celu, "Celu")
	add(selu, "Selu")
	add(gelu, "Gelu")
	add(hardSigmoid, "HardSigmoid")
	add(thresholdedRelu, "ThresholdedRelu")
	add(shrink, "Shrink")
	add(swish, "Swish")
	add(cast, "Cast", "CastLike")

	add(reshape, "Reshape")
	add(flatten, "Flatten")
	add(squeeze, "Squeeze")
	add(unsqueeze, "Unsqueeze")
	add(shapeOf, "Shape")
	add(sizeOf, "Size")
	add(identity, "Identity")
	add(constantNode, "Constant")
	add(constantOfShape, "ConstantOfShape")
	add(rangeOf, "Range")
	add(eyeLike, "EyeLike")

	add(transpose, "Transpose")
	add(slice, "Slice")
	add(concat, "Concat")
	add(split, "Split")
	add(expand, "Expand")
	add(tile, "Tile")
	add(pad, "Pad")
	add(gather, "Gather")
	add(gatherElements, "GatherElements")
	add(gatherND, "GatherND")
	add(scatterElements, "ScatterElements", "Scatter")
	add(scatterND, "ScatterND")
	add(depthToSpace, "DepthToSpace")
	add(spaceToDepth, "SpaceToDepth")
	add(trilu, "Trilu")
	add(reverseSequence, "ReverseSequence")
	add(compress, "Compress")
	add(oneHot, "OneHot")
	add(nonZero, "NonZero")

	for _, op := range []string{"Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"} {
		add(reduce(op), "Reduce"+op)
	}
	add(argReduce, "ArgMax", "ArgMin")
	add(topK, "TopK")
	add(cumulative("Add"), "CumSum")
	add(cumulative("Mul"), "CumProd")

	add(matmul, "MatMul")
	add(gemm, "Gemm")
	add(softmax, "Softmax", "LogSoftmax", "Hardmax")
	add(conv, "Conv")
	add(convTranspose, "ConvTranspose")
	add(pool, "MaxPool", "AveragePool", "LpPool")
	add(globalPool, "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
	add(batchNorm, "BatchNormalization")
	add(instanceNorm, "InstanceNormalization")
	add(groupNorm, "GroupNormalization")
	add(layerNorm, "LayerNormalization")
	add(rmsNorm, "RMSNormalization")
	add(lpNorm, "LpNormalization")
	add(meanVariance, "MeanVarianceNormalization")
	add(lrn, "LRN")

	add(resize, "Resize", "Upsample")
	add(recurrent, "LSTM", "GRU", "RNN")
	add(einsum, "Einsum")
	add(nllLoss, "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
	add(attention, "Attention")
	add(rotary, "RotaryEmbedding")
	add(linearAttention, "LinearAttention")
	add(causalConv, "CausalConvWithState")
	add(swiglu, "SwiGLU")
	add(tensorScatter, "TensorScatter")
	t[opKey{"ai.onnx.preview", "FlexAttention"}] = &operator{run: flexAttention}

	add(quantize, "QuantizeLinear")
	add(dequantize, "DequantizeLinear")
	add(dynamicQuantize, "DynamicQuantizeLinear")
	add(matmulInteger, "MatMulInteger")
	add(convInteger, "ConvInteger")
	add(qlinearMatMul, "QLinearMatMul")
	add(qlinearConv, "QLinearConv")

	for name, f := range map[string]func(c *call) ([]*Value, error){"FusedMatMul": fusedMatMul, "SkipLayerNormalization": skipNorm(false),
		"SkipSimplifiedLayerNormalization": skipNorm(true), "SimplifiedLayerNormalization": rmsNorm, "BiasGelu": biasGelu, "FastGelu": fastGeluBias, "Gelu": gelu,
		"QuickGelu": quickGelu, "RotaryEmbedding": rotary, "MatMulNBits": matMulNBits, "GroupQueryAttention": groupQueryAttention} {
		t[opKey{"com.microsoft", name}] = &operator{run: f}
	}
	t[opKey{"", "SimplifiedLayerNormalization"}] = &operator{run: rmsNorm, since: 1} // as older exporters write it

	add(dropout, "Dropout")
	for _, n := range []string{"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"} {
		t[opKey{"", n}] = &operator{run: random, since: 1, impure: true}
	}
	add(unique, "Unique")
	add(bitCast, "BitCast")
	add(centerCropPad, "CenterCropPad")
	add(col2Im, "Col2Im")
	add(affineGrid, "AffineGrid")
	add(maxUnpool, "MaxUnpool")
	add(det, "Det")
	add(dft, "DFT")
	add(stft, "STFT")
	add(cosineWindow(0.5, -0.5), "HannWindow")
	add(cosineWindow(25.0/46, -21.0/46), "HammingWindow")
	add(cosineWindow(0.42, -0.5, 0.08), "BlackmanWindow")
	add(melWeightMatrix, "MelWeightMatrix")
	add(gridSample, "GridSample")
	add(roiAlign, "RoiAlign")
	add(nonMaxSuppression, "NonMaxSuppression")
	add(deformConv, "DeformConv")
	for _, n := range []string{"Adagrad", "Adam", "Momentum"} {
		t[opKey{"ai.onnx.preview.training", n}] = &operator{run: optimizer}
	}

	add(sequenceConstruct, "SequenceConstruct")
	add(sequenceEmpty, "SequenceEmpty")
	add(sequenceLength, "SequenceLength")
	add(sequenceAt, "SequenceAt")
	add(sequenceInsert, "SequenceInsert")
	add(sequenceErase, "SequenceErase")
	add(splitToSequence, "SplitToSequence")
	add(concatFromSequence, "ConcatFromSequence")
	add(sequenceMap, "SequenceMap")
	add(optionalOf, "Optional")
	add(optionalHas, "OptionalHasElement")
	add(optionalGet, "OptionalGetElement")

	add(ifNode, "If")
	add(loop, "Loop")
	add(scan, "Scan")
	return t
})
