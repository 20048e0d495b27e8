package cpu

import (
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

var swigluOp = engine.BinaryOp("SwiGLU", engine.Cost{Scalar: 10.5, AVX512: 0.5}, swiglu)

// repeat is the longest run of elements for which swiglu needs room.
const repeat = 512

// swiglu needs memory for silu(gate), because y may be up.
func swiglu(y, gate, up []float32) {
	buffer := engine.Borrow(repeat)
	defer engine.Scratch.Put(buffer)
	for lo := 0; lo < len(y); lo += repeat {
		hi := min(lo+repeat, len(y))
		silu := (*buffer)[:hi-lo]
		kernels.SiLU(silu, gate[lo:hi])
		kernels.Mul(y[lo:hi], silu, up[lo:hi])
	}
}

func biasActivation(c *call) work {
	rows, cols := program.RowsCols(c.out.Shape)
	act, ns := engine.InPlace(c.attr.Activation())
	return one(rows, 10+(ns+engine.Cheap.Ns())*float64(cols), func(a *args, lo, hi int) {
		for r := lo; r < hi; r++ {
			y := a.out.f32()[r*cols : (r+1)*cols]
			for from := 0; from < cols; from += engine.BlockLen() { // so that the activation finds them in L1
				part := y[from:min(from+engine.BlockLen(), cols)]
				kernels.Add(part, a.in[0].f32()[r*cols+from:][:len(part)], a.in[1].f32()[from:][:len(part)])
				if act != nil {
					act(part)
				}
			}
		}
	})
}
