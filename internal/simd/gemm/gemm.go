package gemm

import "github.com/wavelane/wavelane/internal/simd/kernels"

// Product is a product of matrices, or of a batch of them, without the data. Strides are in elements and not negative.
//
// Element (i, p) of A is at i*AM + p*AK, (p, j) of B at p*BK + j*BN, (i, j) of C at i*LDC + j. Successive matrices of a batch
// are StrideA, StrideB and StrideC apart; 0 for an operand that the batch shares, never for C unless Batch = 1.
type Product struct {
	M, N, K                   int
	AM, AK                    int
	BK, BN                    int
	LDC                       int
	Batch                     int
	StrideA, StrideB, StrideC int
	Alpha, Beta               float32 // Beta = 0: C is not read. Alpha = 0: A and B are not read
	Epilogue
}

// Operands are the data of a product. C must not overlap the others.
type Operands struct {
	A, B, C []float32
	Bias    []float32 // per column or row as the epilogue says; nil for none
	// HalfA and HalfB stand for A or B, which are nil then, in plans that allow it; see [Plan.Halves].
	HalfA, HalfB Half
	Context      any // of the epilogue
}

// Epilogue is what is done to elements of C when their sums are complete: first the bias is added, then they are finished.
type Epilogue struct {
	BiasRows bool // Bias has an element per row of C, not per column
	// Finish changes y in place: part of a row of C, or of its only column, from element at of C on. It may run on several
	// parts at a time. Nil for nothing.
	Finish   func(context any, y []float32, at int)
	FinishNS float64 // what an element of it costs
}

// apply finishes rows of C: m×n elements from row i and column j on, where c begins, which goes to the end of C.
func (p *Product) apply(o *Operands, c []float32, i, j, m, n int) {
	if o.Bias == nil && p.Finish == nil {
		return
	}
	at := len(o.C) - len(c)
	for r := range m {
		y := c[r*p.LDC:][:n]
		switch {
		case o.Bias == nil:
		case p.BiasRows:
			kernels.AddScalar(y, y, o.Bias[i+r])
		default:
			kernels.Add(y, y, o.Bias[j:][:n])
		}
		if p.Finish != nil {
			p.Finish(o.Context, y, at+r*p.LDC)
		}
	}
}

// scale computes C = beta·C and finishes it: what is left of a product without summands.
func (p *Product) scale(o *Operands, item, lo, hi int) {
	for i := lo; i < hi; i++ {
		c := o.C[item*p.StrideC+i*p.LDC:]
		y := c[:p.N]
		if p.Beta == 0 {
			clear(y)
		} else if p.Beta != 1 {
			kernels.Scale(y, y, p.Beta)
		}
		p.apply(o, c, i, 0, 1, p.N)
	}
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func roundUp(a, b int) int { return ceilDiv(a, b) * b }
