package quantised

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

var dequantizeKernels = ofFormats(func(f *blockFormat) *kit.Kernel {
	return kit.Register(kit.Kernel{Family: "quant_" + f.name(), Name: "dequantize_" + f.name(), Block: [3]int{tiling.PartThreads, 1, 1},
		Doc:    "y is the values of rows of weights, four for each thread; of those that are named, or of all.",
		Params: dequantizeParams{},
		Build:  func(k *ptx.Kernel) { buildDequantize(k, f) }})
})

// dequantizeParams are those of dequantize.
type dequantizeParams struct {
	Total int `array:"sizes"` // fours of the result
	packedRow
	Count         int           // rows of the weights
	Named, Halves int           // 1 if rows are named, and if y is of halves
	Fours         scalar.Divide // of a row
	Weights       kit.Buffer    `of:"u32"`
	Rows          kit.Buffer    `of:"s32"` // those that are named
	Y             kit.Buffer    `of:"f32 or f16"`
}

func buildDequantize(k *ptx.Kernel, f *blockFormat) {
	var of dequantizeParams
	p := kit.NewParams(k, &of)
	weights, names := kit.Ptr[uint8](p, &of.Weights, ptx.Align(16)), kit.Ptr[uint32](p, &of.Rows)
	y := kit.Ptr[uint8](p, &of.Y, ptx.Align(16))
	i := k.GlobalID(ptx.X)
	k.ReturnIf(i.Ge(p.U32(&of.Total)))
	row, four := p.Divisor(&of.Fours).Split(k, i)
	row = ptx.LoadIf(p.U32(&of.Named).Ne(0), names.At(row), row)
	there := row.Lt(p.U32(&of.Count)) // as unsigned numbers: negative ones are beyond it, too
	var v scalar.Variables[float32]
	for range 4 {
		v = append(v, ptx.VarOf(k, ptx.F32(math.NaN())))
	}
	k.If(there, func() {
		at := weights.Bytes(row.MulWide(p.U32(&of.Words)).Shl(2))
		v.Set(f.Four(k, f.blocksOf(p, &of.Blocks), at, four.Shl(2)))
	})
	k.If(p.U32(&of.Halves).Ne(0), func() {
		var h [4]ptx.Reg[ptx.F16]
		for i, x := range v.Get() {
			h[i] = scalar.FromFloat32[ptx.F16](k, x)
		}
		ptx.Cast[ptx.F16](y).At(ptx.Convert[uint64](i).Shl(2)).Store4(h)
	}, func() {
		ptx.Cast[float32](y).At(ptx.Convert[uint64](i).Shl(2)).Store4([4]scalar.Float(v.Get()))
	})
}

// Four are values c to c+3 of the packed row at p, as quant.Dequantize has them to the bit.
func (f *blockFormat) Four(k *ptx.Kernel, blocks ptx.Reg[uint32], p ptx.Ptr[ptx.Global, uint8], c ptx.Reg[uint32]) []scalar.Float {
	unit, run, word := f.unitOf(k, c)
	r := f.readWords(k, blocks, unit, word, run)
	x := r.Load(p, c.Shr(scalar.Log2(f.len())))
	scale, minimum := r.scale(x)
	v := f.integers(k, r.quants(x, 0)[0])
	for i := range v {
		v[i] = v[i].Mul(scale[0])
		if f.affine {
			v[i] = v[i].Sub(minimum[0])
		}
	}
	return v[:]
}

// Dequantize lowers the values of packed rows, of all or of those that are named.
func Dequantize(s *kit.Step) error {
	o := s.Attr.Options.(compute.DequantizeOptions)
	n, cols, err := catalogue.PackedShape(s.Operands[0], o.Format)
	if err != nil {
		return err
	}
	rows := s.Result.Len() / max(cols, 1)
	names, named := kit.In(0), 0 // without names nobody reads them
	if len(s.Operands) == 2 {
		names, named = kit.In(1), 1
	}
	f := blockFormatOf(o.Format)
	most := max(1, 1<<30/max(cols/4, 1)) // rows of a launch, whose fours a divisor can count
	for first := 0; first < rows; first += most {
		now := min(most, rows-first)
		weights, of, row := kit.In(0), names, packedRowOf(f, s.Operands[0], cols)
		if named == 1 {
			of = of.Plus(4 * first)
		} else {
			weights = weights.Plus(4 * first * row.Words)
		}
		s.Launch(dequantizeKernels[f], [3]int{kit.CeilDiv(now*cols/4, tiling.PartThreads), 1, 1}, dequantizeParams{Total: now * cols / 4, packedRow: row,
			Count: n, Named: named, Halves: int(kit.FlagIf(1, s.Result.DType == compute.Float16)), Fours: scalar.Divide(cols / 4),
			Weights: weights, Rows: of, Y: kit.Out.Plus(first * cols * s.Result.DType.Size())})
	}
	return nil
}
