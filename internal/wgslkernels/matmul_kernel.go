package wgslkernels

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/wgsl"
)

// product describes one specialisation of the matmul kernels; see product.wgsl for the names.
type product struct {
	A, B           compute.DType // of lhs and rhs; those of 16 bits lie in pairs in words
	TransA, TransB bool
	VecA, VecB     bool                // rows of the operand start at multiples of four elements
	Tail           bool                // the depth is no multiple of four
	F16            bool                // operands of type f16 are bound as such; else as words
	Format         compute.BlockFormat // of rhs, if it is quantised; its offsets and row lengths count vectors of four words
	finish         epilogue
}

// tile is the shape of a workgroup's work in matmul.wgsl.
type tile struct {
	WX, WY int // invocations across and down
	TM, TN int // rows and columns of one invocation; columns are a multiple of four
	KT     int // depth of the tiles in workgroup memory; 0 reads operands straight into registers
}

func (t tile) BM() int    { return t.WY * t.TM }
func (t tile) BN() int    { return t.WX * t.TN }
func (t tile) Lanes() int { return t.WX * t.WY }

func (t tile) shared(p product) int {
	if t.KT == 0 {
		return 0
	}
	d := productText{product: p, tile: t}
	return 16 * (d.SizeA() + d.SizeB())
}

// productText is what the templates of the matmul kernels see.
type productText struct {
	product
	tile
	RHS, Uniform   int // bindings; an RHS of 0 means there is none
	Finish         finishText
	Lanes, Vectors int  // of the kernels that are not tiled
	Subgroups      bool // matmul_rows adds up in subgroups first
	Swap           bool // matmul_rows: lhs is the right operand, so rows of lhs are columns of the result
}

// field has what the template takes of the methods.
func (d productText) field(name string) any {
	switch name {
	case "WideA":
		return d.WideA()
	case "WideB":
		return d.WideB()
	case "PitchA":
		return d.PitchA()
	case "PitchB":
		return d.PitchB()
	case "VecsA":
		return d.VecsA()
	case "VecsB":
		return d.VecsB()
	case "SizeA":
		return d.SizeA()
	case "SizeB":
		return d.SizeB()
	case "BM":
		return d.BM()
	case "BN":
		return d.BN()
	case "VecC":
		return d.VecC()
	case "Apart":
		return d.Apart()
	case "FragA":
		return d.FragA()
	case "TypeA":
		return d.TypeA()
	case "TypeB":
		return d.TypeB()
	case "Half":
		return d.Half()
	case "Blocks":
		return d.Blocks()
	case "HalfA":
		return d.HalfA()
	case "HalfB":
		return d.HalfB()
	}
	return nil
}

// Tiles lie in workgroup memory as the operands lie in theirs: WideA vectors of four to a row. One more keeps the rows that
// neighbouring invocations read in different banks.

func (d productText) wide(alongDepth bool, across int) int {
	if alongDepth {
		return d.KT / 4
	}
	return across / 4
}

func (d productText) pitch(alongDepth bool, across int) int {
	if alongDepth {
		return d.KT/4 + 1
	}
	return across / 4
}

func (d productText) tall(alongDepth bool, across int) int {
	if alongDepth {
		return across
	}
	return d.KT
}

func (d productText) WideA() int  { return d.wide(!d.TransA, d.BM()) }
func (d productText) WideB() int  { return d.wide(d.TransB, d.BN()) }
func (d productText) PitchA() int { return d.pitch(!d.TransA, d.BM()) }
func (d productText) PitchB() int { return d.pitch(d.TransB, d.BN()) }
func (d productText) VecsA() int  { return d.WideA() * d.tall(!d.TransA, d.BM()) }
func (d productText) VecsB() int  { return d.WideB() * d.tall(d.TransB, d.BN()) }
func (d productText) SizeA() int  { return d.PitchA() * d.tall(!d.TransA, d.BM()) }
func (d productText) SizeB() int  { return d.PitchB() * d.tall(d.TransB, d.BN()) }

// VecC: whether results are stored as vectors of four.
func (d productText) VecC() bool { return d.KT+d.TM > 0 && d.VecB && !d.TransB }

// Apart is the distance of the columns in a vector of results.
func (d productText) Apart() int {
	if d.TransB {
		return d.WX
	}
	return 1
}

func (p product) HalfA() bool { return p.A.Size() == 2 }
func (p product) HalfB() bool { return p.B.Size() == 2 }

// TypeA and TypeB are what the operands' bindings are arrays of.
func (p product) TypeA() string { return p.element(p.HalfA(), p.VecA) }
func (p product) TypeB() string {
	if p.Format != 0 {
		return "vec4<u32>"
	}
	return p.element(p.HalfB(), p.VecB)
}

func (p product) element(half, vec bool) string {
	switch {
	case half && p.F16 && vec:
		return "vec4<f16>"
	case half && p.F16:
		return "f16"
	case half && vec:
		return "vec2<u32>"
	case half:
		return "u32"
	case vec:
		return "vec4<f32>"
	}
	return "f32"
}

// Half names the element type of 16 bits, of which a product has at most one; "" for none.
func (p product) Half() string {
	switch {
	case p.HalfA():
		return p.A.String()
	case p.HalfB():
		return p.B.String()
	}
	return ""
}

// Blocks describes quantised weights.
func (d productText) Blocks() *blocks { return blocksOf(d.Format, false, "rhs") }

// FragA is the number of vectors that hold an invocation's rows of a transposed lhs.
func (d productText) FragA() int { return d.TM / 4 }

const productWords = 20 // of struct Params, before the scalars

// kernel finishes a description: text from the template file, made once per key.
func (d productText) kernel(name, file string, workgroup [3]uint32, shared int) *wgsl.Kernel {
	key := fmt.Sprintf("matmul/%s/%s", name, d.product.key())
	return cached(key, func() *wgsl.Kernel {
		d.Finish = d.finish.text(d.RHS+1, 0, d.VecC(), "p.row0 + row", "p.col0 + col")
		k := &wgsl.Kernel{Uniform: roundUniform(productWords + len(d.finish.words())), Workgroup: workgroup, Shared: shared}
		for range d.Uniform - 1 {
			k.Bindings = append(k.Bindings, wgsl.Read)
		}
		k.Bindings = append(k.Bindings, wgsl.ReadWrite)
		var enable []string
		if d.F16 {
			enable = append(enable, "f16")
		}
		if d.Subgroups {
			enable = append(enable, "subgroups")
		}
		k.Source = render(file, d, enable...)
		return k
	})
}

func (p product) key() string {
	flag := func(on bool, name string) string {
		if on {
			return name
		}
		return "-"
	}
	types := ""
	if p.A != p.B || p.A != compute.Float32 {
		types = fmt.Sprintf("%v*%v/", p.A, p.B)
	}
	if p.F16 {
		types += "native/"
	}
	if p.Format != 0 {
		types += p.Format.String() + "/"
	}
	return types + flag(p.TransA, "t") + flag(p.TransB, "t") + flag(p.VecA, "4") + flag(p.VecB, "4") + flag(p.Tail, "r") +
		"/" + p.finish.key()
}

// text numbers the bindings of a kernel with a number of operands besides those of the epilogue.
func (p product) text(operands int) productText {
	return productText{product: p, RHS: operands - 1, Uniform: operands + len(p.finish.reaches) + 1}
}

func (p product) tiled(t tile) *wgsl.Kernel {
	d := p.text(2)
	d.tile, d.Lanes = t, t.Lanes()
	name := fmt.Sprintf("tile/%dx%d/%dx%d/%d", t.WX, t.WY, t.TM, t.TN, t.KT)
	return d.kernel(name, "matmul.wgsl", [3]uint32{uint32(t.WX), uint32(t.WY), 1}, t.shared(p))
}

func (p product) naive(lanes int) *wgsl.Kernel {
	p.VecA, p.VecB, p.Tail = false, false, false
	d := p.text(2)
	d.Lanes = lanes
	return d.kernel(fmt.Sprint("naive/", lanes), "matmul_naive.wgsl", [3]uint32{uint32(lanes), 1, 1}, 0)
}

func (p product) rows(lanes, vectors int, swap, subgroups bool) *wgsl.Kernel {
	p.TransA, p.TransB, p.Tail = false, false, false
	d := p.text(2)
	d.Lanes, d.Vectors, d.Swap, d.Subgroups = lanes, vectors, swap, subgroups
	name := fmt.Sprintf("rows/%d/%d/%v", lanes, vectors, swap)
	if subgroups {
		name += "/subgroups"
	}
	return d.kernel(name, "matmul_rows.wgsl", [3]uint32{uint32(lanes), 1, 1}, 16*lanes*vectors)
}

func (p product) sum(lanes int) *wgsl.Kernel {
	d := product{finish: p.finish}.text(1)
	d.Lanes = lanes
	return d.kernel(fmt.Sprint("sum/", lanes), "matmul_sum.wgsl", [3]uint32{uint32(lanes), 1, 1}, 0)
}
