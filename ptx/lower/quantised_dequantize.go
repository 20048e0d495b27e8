package lower

import (
	"math"
	"math/bits"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/ptx"
)

var dequantizeKernels = ofFormats(func(f *blockFormat) *Kernel {
	return register(Kernel{Family: "quant_" + f.name(), Name: "dequantize_" + f.name(), Block: [3]int{partThreads, 1, 1},
		Doc: "y is the values of rows of weights, four for each thread; of those that are named, or of all. Parameters: u32 sizes[] " +
			"(fours of the result, words and blocks of a row, rows of the weights, whether rows are named, whether y is of " +
			"halves; as a divisor fours of a row), u32* weights, s32* rows, f32* or f16* y.",
		build: func(k *ptx.Kernel) { buildDequantize(k, f) }})
})

// Arguments in the array sizes of dequantize.
const (
	dequantTotal = iota
	dequantWords
	dequantBlocks
	dequantRows
	dequantNamed
	dequantHalves
	dequantFours // a divisor
	dequantSizes = dequantFours + divisorWords
)

func buildDequantize(k *ptx.Kernel, f *blockFormat) {
	sizes := ptx.ParamArray[uint32](k, "sizes", dequantSizes)
	weights := ptx.PointerParam[uint8](k, "weights", ptx.Align(16))
	names := ptx.PointerParam[uint32](k, "rows")
	y := ptx.PointerParam[uint8](k, "y", ptx.Align(16))
	i := k.GlobalID(ptx.X)
	k.ReturnIf(ptx.Ge(k, i, sizes.At(k, dequantTotal)))
	row, four := divisorAt(k, sizes, dequantFours).split(k, i)
	row = ptx.LoadIf(k, ptx.Ne(k, sizes.At(k, dequantNamed), u32(0)), ptx.At(k, names, row), row)
	there := ptx.Lt(k, row, sizes.At(k, dequantRows)) // as unsigned numbers: negative ones are beyond it, too
	var v variables[float32]
	for range 4 {
		v = append(v, ptx.VarOf(k, num(math.NaN())))
	}
	k.If(there, func() {
		at := ptx.AtByte(k, weights, ptx.Shl(k, ptx.MulWideU32(k, row, sizes.At(k, dequantWords)), u32(2)))
		v.set(f.four(k, f.blocksAt(k, sizes, dequantBlocks), at, ptx.Shl(k, four, u32(2))))
	})
	k.If(ptx.Ne(k, sizes.At(k, dequantHalves), u32(0)), func() {
		var h [4]ptx.Reg[ptx.F16]
		for i, x := range v.get() {
			h[i] = fromFloat32[ptx.F16](k, x)
		}
		ptx.Store4(k, ptx.At(k, ptx.Cast[ptx.F16](y), ptx.Shl(k, ptx.Convert[uint64](k, i), u32(2))), h)
	}, func() {
		ptx.Store4(k, ptx.At(k, ptx.Cast[float32](y), ptx.Shl(k, ptx.Convert[uint64](k, i), u32(2))), [4]float(v.get()))
	})
}

// four are values c to c+3 of the packed row at p, as quant.Dequantize has them to the bit.
func (f *blockFormat) four(k *ptx.Kernel, blocks ptx.Reg[uint32], p ptx.Ptr[ptx.Global, uint8], c ptx.Reg[uint32]) []float {
	unit, run, word := f.unitOf(k, c)
	r := f.readWords(k, blocks, unit, word, run)
	x := r.load(p, ptx.Shr(k, c, u32(log2(f.len()))))
	scale, minimum := r.scale(x)
	v := f.integers(k, r.quants(x, 0)[0])
	for i := range v {
		v[i] = ptx.Mul(k, v[i], scale[0])
		if f.affine {
			v[i] = ptx.Sub(k, v[i], minimum[0])
		}
	}
	return v[:]
}

func dequantize(s *step) error {
	o := s.Attr.Options.(compute.DequantizeOptions)
	n, cols, err := catalogue.PackedShape(s.in[0], o.Format)
	if err != nil {
		return err
	}
	rows := s.out.Len() / max(cols, 1)
	names, named := operand(0), uint32(0) // without names nobody reads them
	if len(s.in) == 2 {
		names, named = operand(1), 1
	}
	f := blockFormatOf(o.Format)
	most := max(1, 1<<30/max(cols/4, 1)) // rows of a launch, whose fours a divisor can count
	for first := 0; first < rows; first += most {
		now := min(most, rows-first)
		weights, of, sizes := operand(0), names, packedSizes(f, s.in[0], cols)
		if named == 1 {
			of = of.Plus(4 * first)
		} else {
			weights = weights.Plus(4 * first * int(sizes[0]))
		}
		arguments := append([]uint32{uint32(now * cols / 4)}, sizes...)
		arguments = append(arguments, uint32(n), named, flagIf(1, s.out.DType == compute.Float16))
		s.launch(dequantizeKernels[f], [3]int{ceilDiv(now*cols/4, partThreads), 1, 1}, append(arguments, divisorOf(cols/4)...),
			weights, of, result.Plus(first*cols*s.out.DType.Size()))
	}
	return nil
}

// packedSizes are the words and the blocks of a row of weights.
func packedSizes(f *blockFormat, w program.Type, cols int) []uint32 {
	return []uint32{uint32(w.Shape[1]), uint32(cols / f.len())}
}

func log2Up(n int) int { return bits.Len(uint(max(1, n) - 1)) }
