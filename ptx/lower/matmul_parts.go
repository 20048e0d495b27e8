package lower

import "github.com/wavelane/wavelane/ptx"

// partThreads of a block.
const partThreads = 256

// matmulSum adds up the splits of products.
var matmulSum = register(Kernel{Family: "matmul", Name: "matmul_sum", Block: [3]int{partThreads, 1, 1},
	Doc: "c[i] = act(Σ parts[s][i] + bias), in order of the splits. Parameters: u32 sizes[] (elements of c, splits, flags, " +
		"activation; as divisors m, n), f32* parts, f32* bias, f32* c.",
	build: func(k *ptx.Kernel) {
		sizes := ptx.ParamArray[uint32](k, "sizes", 4+2*divisorWords)
		parts, bias := ptx.PointerParam[float32](k, "parts"), ptx.PointerParam[float32](k, "bias")
		c := ptx.PointerParam[float32](k, "c")
		total, flags := sizes.At(k, 0), sizes.At(k, 2)
		i := k.GlobalID(ptx.X)
		k.ReturnIf(ptx.Ge(k, i, total))
		sum := ptx.VarOf(k, ptx.Imm(float32(0)))
		from := ptx.PtrVarOf(k, ptx.At(k, parts, i))
		ptx.For(k, u32(0), sizes.At(k, 1), u32(1), func(ptx.Reg[uint32]) {
			sum.Set(ptx.Add(k, sum.Get(), ptx.Load(k, from.Get())))
			from.Set(ptx.At(k, from.Get(), total))
		}, ptx.UnrollBy(8))
		y := finishElement(k, i, divisorAt(k, sizes, 4), divisorAt(k, sizes, 4+divisorWords), flags, sizes.At(k, 3), bias, sum.Get())
		ptx.Store(k, ptx.At(k, c, i), y)
	}})

// finishElement is act(x + bias) for element i of products of m × n.
func finishElement(k *ptx.Kernel, i ptx.Reg[uint32], m, n divisor, flags, act ptx.Reg[uint32],
	bias ptx.Ptr[ptx.Global, float32], x ptx.Reg[float32]) ptx.Reg[float32] {
	row, col := n.split(k, i)
	_, row = m.split(k, row)
	ofColumns := hasFlag(k, flags, biasOfColumns)
	there := ptx.Or(k, ofColumns, hasFlag(k, flags, biasOfRows))
	b := ptx.LoadIf(k, there, ptx.At(k, bias, ptx.Select(k, ofColumns, col, row)), ptx.Imm(float32(0)))
	return activate(k, act, []ptx.Reg[float32]{ptx.Add(k, x, b)})[0]
}

// Arguments in the array sizes of matmul_small.
const (
	smallTotal = iota
	smallK
	smallAM // strides of a along m and k, of b along k and n
	smallAK
	smallBK
	smallBN
	smallFlags
	smallAct
	smallM     // a divisor
	smallN     = smallM + divisorWords
	smallWords = smallN + divisorWords
)

// matmulSmall is for many small products: what they read is in the caches.
var matmulSmall = register(Kernel{Family: "matmul", Name: "matmul_small", Block: [3]int{partThreads, 1, 1},
	Doc: "c = act(a·b + bias), a thread for each element. Parameters: u32 sizes[] (elements of c, k, strides of a along m " +
		"and k, of b along k and n, flags, activation; as divisors m, n), u64 strides of a and b from product to product, f32* " +
		"a, f32* b, f32* " +
		"bias, f32* c.",
	build: func(k *ptx.Kernel) {
		sizes := ptx.ParamArray[uint32](k, "sizes", smallWords)
		strideA, strideB := ptx.Param[uint64](k, "stride_a"), ptx.Param[uint64](k, "stride_b")
		a, b := ptx.PointerParam[float32](k, "a"), ptx.PointerParam[float32](k, "b")
		bias, c := ptx.PointerParam[float32](k, "bias"), ptx.PointerParam[float32](k, "c")
		m, n := divisorAt(k, sizes, smallM), divisorAt(k, sizes, smallN)
		i := k.GlobalID(ptx.X)
		k.ReturnIf(ptx.Ge(k, i, sizes.At(k, smallTotal)))
		row, col := n.split(k, i)
		z, row := m.split(k, row)
		wideZ := ptx.Convert[uint64](k, z)
		at := ptx.PtrVarOf(k, ptx.At(k, ptx.At(k, a, ptx.Mul(k, wideZ, strideA)), ptx.MulWideU32(k, row, sizes.At(k, smallAM))))
		bt := ptx.PtrVarOf(k, ptx.At(k, ptx.At(k, b, ptx.Mul(k, wideZ, strideB)), ptx.MulWideU32(k, col, sizes.At(k, smallBN))))
		sum := ptx.VarOf(k, ptx.Imm(float32(0)))
		ptx.For(k, u32(0), sizes.At(k, smallK), u32(1), func(ptx.Reg[uint32]) {
			sum.Set(ptx.Fma(k, ptx.Load(k, at.Get(), ptx.ReadOnly), ptx.Load(k, bt.Get(), ptx.ReadOnly), sum.Get()))
			at.Set(ptx.At(k, at.Get(), sizes.At(k, smallAK)))
			bt.Set(ptx.At(k, bt.Get(), sizes.At(k, smallBK)))
		}, ptx.UnrollBy(4))
		y := finishElement(k, i, m, n, sizes.At(k, smallFlags), sizes.At(k, smallAct), bias, sum.Get())
		ptx.Store(k, ptx.At(k, c, i), y)
	}})
