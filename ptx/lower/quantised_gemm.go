package lower

import (
	"math"

	"github.com/wavelane/wavelane/ptx"
)

// quantTile is the tile of products of many rows.
var quantTile = tile{64, 64, 16}

// Arguments in the array sizes of quant_gemm: those of gemm, whose b is the weights, then the words and the blocks of their rows.
const (
	quantGemmWords  = gemmWords
	quantGemmBlocks = quantGemmWords + 1
	quantGemmSizes  = quantGemmBlocks + 1
)

var quantGemmKernels = ofFormats(func(f *blockFormat) tiled {
	return tiled{quantTile, register(Kernel{Family: "quant_" + f.name(), Name: "quant_gemm_" + f.name(),
		Block: [3]int{gemmThreads, 1, 1},
		Doc: "c[split] = x·w + bias over a split of the depth, of weights that lie along the depth, as rows of k, or across. Parameters: " +
			"u32 sizes[] (as gemm's; words and blocks of a row of weights), f32* x, u32* weights of the first and of the second product, " +
			"f32* bias, f32* c.",
		build: func(k *ptx.Kernel) { newQuantProduct(k, f).build() }})}
})

func newQuantProduct(k *ptx.Kernel, f *blockFormat) *product {
	sizes := ptx.ParamArray[uint32](k, "sizes", quantGemmSizes)
	x := ptx.PointerParam[float32](k, "x")
	weights, other := ptx.PointerParam[uint8](k, "w0", ptx.Align(16)), ptx.PointerParam[uint8](k, "w1", ptx.Align(16))
	bias, c := ptx.PointerParam[float32](k, "bias"), ptx.PointerParam[float32](k, "c")
	k.MinBlocks(2) // what ptxas needs to know lest it saves registers and spills
	p := productOf(k, quantTile, sizes)
	p.bias = bias
	p.places = p.placesIn(c)
	p.a = newSide(k, "a", p.tile.m, p.tile.k, x, sizes.At(k, gemmLDA), p.has(alongA), p.has(vectorA), p.top, p.m, p.first)
	of := ptx.Select(k, ptx.Eq(k, p.z, u32(0)), ptx.Address(k, weights), ptx.Address(k, other))
	p.b = newQuantSide(k, f, sizes, p, ptx.PtrAt[ptx.Global, uint8](k, of))
	return p
}

// quantSide is packed weights as an operand of a product. Threads bring four neighbours in a row of weights.
type quantSide struct {
	tileMemory
	*blockFormat
	along       ptx.Reg[bool]
	weights     ptx.Ptr[ptx.Global, uint8]
	words       ptx.Reg[uint32] // of a row
	blocks      ptx.Reg[uint32] // likewise, see blockFormat.blocksAt
	row, col    *ptx.Var[uint32]
	from        ptx.Reg[int32] // there are values while more of the depth than this is left
	to          ptx.Reg[uint32]
	held        variables[float32]
	down, right ptx.Reg[uint32] // from tile to tile
}

func newQuantSide(k *ptx.Kernel, f *blockFormat, sizes ptx.Array[uint32], p *product, weights ptx.Ptr[ptx.Global, uint8]) *quantSide {
	size, depth := p.tile.n, p.tile.k
	s := &quantSide{tileMemory: newTileMemory(k, "b", size, depth), blockFormat: f, along: p.has(alongB), weights: weights,
		words: sizes.At(k, quantGemmWords), blocks: f.blocksAt(k, sizes, quantGemmBlocks)}
	id := k.Tid(ptx.X)
	either := func(a, b ptx.Reg[uint32]) ptx.Reg[uint32] { return ptx.Select(k, s.along, a, b) }
	// Either four of the depth in one column of the result, or four columns at one depth.
	column := either(ptx.Shr(k, id, u32(2)), ptx.Shl(k, ptx.And(k, id, u32(size/4-1)), u32(2)))
	d := either(ptx.Shl(k, ptx.And(k, id, u32(depth/4-1)), u32(2)), ptx.Shr(k, id, u32(log2(size/4))))
	s.to = s.place(column, d)
	column = ptx.Add(k, p.left, column)
	s.from = ptx.Bitcast[int32](k, ptx.Select(k, ptx.Lt(k, column, p.n), d, u32(math.MaxInt32)))
	d = ptx.Add(k, p.first, d)
	s.row, s.col = ptx.VarOf(k, either(column, d)), ptx.VarOf(k, either(d, column))
	s.down, s.right = either(u32(0), u32(depth)), either(u32(depth), u32(0))
	for range 4 {
		s.held = append(s.held, ptx.NewVar[float32](k))
	}
	return s
}

// load brings the next tile to registers, with zeros where the matrix or the depth ends, of which so much is left.
func (s *quantSide) load(left ptx.Reg[int32]) {
	k := s.k
	s.held.set(constants(make([]float32, 4)))
	k.If(ptx.Gt(k, left, s.from), func() {
		at := ptx.AtByte(k, s.weights, ptx.Shl(k, ptx.MulWideU32(k, s.row.Get(), s.words), u32(2)))
		s.held.set(s.four(k, s.blocks, at, s.col.Get()))
	})
	s.row.Set(ptx.Add(k, s.row.Get(), s.down))
	s.col.Set(ptx.Add(k, s.col.Get(), s.right))
}

// store writes what load has brought.
func (s *quantSide) store(stage ptx.Reg[uint32]) {
	k, to := s.k, ptx.At(s.k, s.stage(stage), s.to)
	k.If(s.along, func() {
		for i, v := range s.held {
			ptx.Store(k, to.At(i*s.size), v.Get())
		}
	}, func() { ptx.Store4(k, to, [4]float(s.held.get())) })
}

// quantProduct is x, m × depth, times weights with n columns of the result, whose rows are along the depth or across.
type quantProduct struct {
	*step
	quantWeight
	m, n, depth int
	x           Buffer
	biased      bool
	along       bool
	other       *Buffer // weights of a second product, whose result follows the first one's; nil if there is none
}

func (p *quantProduct) products() int {
	if p.other != nil {
		return 2
	}
	return 1
}

// splitsOf is into how many parts the depth is cut for so many blocks, each a multiple of 256, and how deep they are.
func (p *quantProduct) splitsOf(blocks int) (parts, depth int) {
	n := splitsOf(p.step.caps.Multiprocessors, blocks, p.depth, p.products()*p.m*p.n)
	depth = ceilDiv(ceilDiv(p.depth, n), 256) * 256
	return ceilDiv(p.depth, depth), depth
}

// split has emit write so many parts of the result, and adds them up if they are several.
func (p *quantProduct) split(parts int, emit func(flags uint32, y Buffer)) {
	flags := flagIf(biasOfColumns, p.biased)
	if parts == 1 {
		emit(flags, p.y)
		return
	}
	c := p.scratch(4 * parts * p.products() * p.m * p.n)
	emit(0, c)
	addUp(p.step, uniform(parts, p.products(), p.m, p.n), flags, 0, nil, c, p.bias, p.y)
}

// exact multiplies float32.
func (p *quantProduct) exact() {
	t := quantGemmKernels[p.blockFormat]
	across := ceilDiv(p.n, t.n)
	tiles := across * ceilDiv(p.m, t.m)
	products, other := p.products(), p.w
	if p.other != nil {
		other = *p.other
	}
	parts, depth := p.splitsOf(tiles * products)
	p.split(parts, func(flags uint32, y Buffer) {
		flags |= alongA | flagIf(alongB, p.along) | flagIf(vectorA, p.depth%4 == 0) | flagIf(vectorC, p.n%4 == 0)
		sizes := words(p.m, p.n, p.depth, depth, p.depth, 0, int(flags), 0)
		for _, d := range []int{across, tiles, products} {
			sizes = append(sizes, divisorOf(d)...)
		}
		cols := p.n
		if p.along {
			cols = p.depth
		}
		p.launch(t.Kernel, [3]int{tiles * products * parts, 1, 1}, append(sizes, packedSizes(p.blockFormat, p.Type, cols)...), p.x, p.w, other, p.bias, y)
	})
}
