package catalogue

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Floating-point operations of entries that are made of dot products, see [Entry.Dots].

// matrixFlops counts those of a product whose operand i is a matrix by which each row of the other operand is multiplied.
func matrixFlops(i int) func(in, out []program.Type, _ program.Attr) float64 {
	return func(in, out []program.Type, _ program.Attr) float64 {
		_, cols := program.RowsCols(out[0].Shape)
		return 2 * float64(in[i].Len()) * float64(out[0].Len()) / float64(max(cols, 1))
	}
}

func matmulFlops(in, out []program.Type, a program.Attr) float64 {
	k := in[0].Shape[len(in[0].Shape)-1]
	if a.Options.(compute.MatMulOptions).TransA {
		k = in[0].Shape[len(in[0].Shape)-2]
	}
	return 2 * float64(out[0].Len()) * float64(k)
}

func windowFlops(in, out []program.Type, _ program.Attr) float64 {
	w := in[1]
	if len(w.Shape) > 2 { // one filter of several
		w.Shape = w.Shape[1:]
	}
	return 2 * float64(out[0].Len()) * float64(w.Len())
}

func qkvFlops(in, out []program.Type, _ program.Attr) float64 {
	_, k := program.RowsCols(in[0].Shape)
	return 2 * float64(k) * float64(out[0].Len()+out[1].Len()+out[2].Len())
}

func gateUpFlops(in, out []program.Type, a program.Attr) float64 {
	return 2 * matrixFlops(1)(in, out, a)
}

func quantGateUpFlops(in, out []program.Type, a program.Attr) float64 {
	return 2 * quantFlops(in, out, a)
}

// quantFlops is that of products whose weights' shapes are in words.
func quantFlops(in, out []program.Type, _ program.Attr) float64 {
	_, k := program.RowsCols(in[0].Shape)
	n := 0
	for _, t := range out {
		n += t.Len()
	}
	return 2 * float64(k) * float64(n)
}

// attentionFlops is n operations for each query and each element of a key that it may see.
func attentionFlops(n float64) func(in, out []program.Type, a program.Attr) float64 {
	return func(in, _ []program.Type, _ program.Attr) float64 {
		q, k := in[0], in[1]
		heads, d := k.Shape[len(k.Shape)-2], k.Shape[len(k.Shape)-1]
		keys := float64(k.Len()) / max(1, float64(heads*d)) // of all sequences
		if len(q.Shape) == 4 && len(k.Shape) == 4 && k.Shape[0] == q.Shape[0] {
			keys /= float64(max(q.Shape[0], 1))
		}
		return n * float64(q.Len()) * keys
	}
}
