package sim

import (
	"strings"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/tensorcore"
)

// sparseOf is how an instruction mma.sp finds the elements of A.
func sparseOf(in *ir.Instr) tensorcore.Sparse {
	_, _, k, _ := in.Shape()
	return tensorcore.Sparse{K: k, Type: in.Type(1), Selector: int(in.Args[5].Bits), Ordered: strings.HasSuffix(string(in.Op), "ordered_metadata")}
}

// compileSparse compiles mma.sp. Each row of A has its own choice of the rows of B: those are gathered, and multiplied as a matrix of one
// row. What A does not have is not read in B, so that an infinity there does not matter.
func compileSparse(c *compiler, in *ir.Instr) (step, error) {
	m, n, k, ok := in.Shape()
	td, ta, tb, tc := in.Type(0), in.Type(1), in.Type(2), in.Type(3)
	if !ok || len(in.Args) != 6 || !tensorcore.HasSparse(m, n, k, ta) {
		return nil, c.unsupported(in)
	}
	row, err := tensorcore.NewProduct(1, n, k/2, td, ta, tb, tc)
	if err != nil {
		return nil, c.errorf(in, compute.ErrUnsupported, "%v", err)
	}
	row.Saturate = in.Has("satfinite")
	operands, err := c.fragments(in, m, n, k/2, k)
	if err != nil {
		return nil, err
	}
	metadata, err := c.src(in, &in.Args[4], ir.B32)
	if err != nil {
		return nil, err
	}
	sparse := sparseOf(in)
	type buffers struct {
		a, b, c, chosen []uint64
		columns         []int
	}
	pool := sync.Pool{New: func() any {
		return &buffers{make([]uint64, m*k/2), make([]uint64, n*k), make([]uint64, m*n), make([]uint64, n*k/2), make([]int, k/2)}
	}}
	return c.warpwide(func(w *warp, _ uint32) {
		t := pool.Get().(*buffers)
		defer pool.Put(t)
		operands.a.gather(w, t.a)
		operands.b.gather(w, t.b)
		operands.c.gather(w, t.c)
		var words [warpSize]uint32
		for lane := range words {
			words[lane] = uint32(w.get(metadata, lane))
		}
		for i := range m {
			if lane, ok := sparse.Columns(t.columns, &words, i); !ok {
				w.fault(BadOperand, lane, 0, 0, "the metadata 0x%08x of row %d has indices that mean nothing%s", words[lane], i, order(sparse))
			}
			for col := range n {
				for j, at := range t.columns {
					t.chosen[col*k/2+j] = t.b[col*k+at]
				}
			}
			sum := t.c[i*n : (i+1)*n]
			row.Compute(sum, sum, t.a[i*k/2:(i+1)*k/2], t.chosen)
		}
		operands.d.scatter(w, t.c)
	}), nil
}

func order(s tensorcore.Sparse) string {
	if s.Ordered {
		return ", or not in ascending order"
	}
	return ""
}

// chosenBy is the wrapper of mma.sp, whose metadata has to have a value in the lanes that the selector says.
func (c *compiler) chosenBy(in *ir.Instr, s step) step {
	metadata := c.fn.regs[in.Args[4].Reg]
	sparse := sparseOf(in)
	lanes := sparse.Lanes()
	return func(w *warp, m uint32) {
		w.demand(metadata, lanes, "the metadata")
		s(w, m)
	}
}
