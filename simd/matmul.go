package simd

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
	"github.com/wavelane/wavelane/simd/internal/kernels"
)

// product is a matrix product as all its kernels see it. Element (i, k) of a is at i*am + k*ak, (k, j) of b at k*bk + j*bn.
type product struct {
	op.MatMulDims
	am, ak, bk, bn int
	bias           bool
	epilogue
}

func matmul(c *call) work {
	o := c.attr.Options.(compute.MatMulOptions)
	d, _ := op.MatMulShape(c.in[0].Shape, c.in[1].Shape, o) // checked
	p := &product{MatMulDims: d, am: d.K, ak: 1, bk: d.N, bn: 1, bias: len(c.in) == 3}
	if o.TransA {
		p.am, p.ak = 1, d.M
	}
	if o.TransB {
		p.bk, p.bn = 1, d.K
	}
	p.act, p.actNS = activation(o.Act)
	return p.lower()
}

func matvec(c *call) work {
	m, k := c.in[0].Shape[0], c.in[0].Shape[1]
	p := &product{MatMulDims: op.MatMulDims{Batch: 1, M: m, K: k, N: 1}, am: k, ak: 1, bk: 1, bn: 1}
	return p.lower()
}

// lower chooses a kernel by shape.
func (p *product) lower() work {
	switch {
	case p.K == 0:
		return p.small()
	case p.M == 1 || p.N == 1:
		return p.vector()
	case p.M*p.N*p.K <= 16*1024 && p.K <= 512:
		return p.small()
	}
	return p.packed()
}

// biasAt returns the bias of columns lo to hi.
func (p *product) biasAt(a *args, lo, hi int) []float32 {
	if !p.bias {
		return nil
	}
	return a.in[2].f32()[lo:hi]
}

// operands returns the matrices of one item of the batch.
func (p *product) operands(a *args, item int) (x, y, out []float32) {
	return a.in[0].f32()[item*p.StrideA:], a.in[1].f32()[item*p.StrideB:], a.out.f32()[item*p.M*p.N:][:p.M*p.N]
}

// small multiplies without packing, one item of the batch after the other.
func (p *product) small() work {
	return one(p.Batch, 20+float64(p.M*p.N)*(2+float64(p.K)+p.actNS), func(a *args, lo, hi int) {
		for item := lo; item < hi; item++ {
			x, y, out := p.operands(a, item)
			for i := range p.M {
				row := out[i*p.N : (i+1)*p.N]
				if p.bk == 1 {
					for j := range row {
						s := float32(0)
						for k, v := range y[j*p.bn:][:p.K] {
							s += x[i*p.am+k*p.ak] * v
						}
						row[j] = s
					}
				} else {
					clear(row)
					for k := range p.K {
						axpy(row, y[k*p.bk:], x[i*p.am+k*p.ak])
					}
				}
				p.apply(row, p.biasAt(a, 0, p.N))
			}
		}
	})
}

// axpy adds f·x to y.
func axpy(y, x []float32, f float32) {
	x = x[:len(y)]
	for i, v := range x {
		y[i] += f * v
	}
}

// Tiles of the packed kernel: small ones where that makes enough of them for many workers.
const (
	tileRows    = 64
	tileCols    = 256
	enoughTiles = 64
)

// packed packs b as a whole, then computes the result tile by tile, each packing its own rows of a. Where there are few
// tiles the inner dimension is split as well, and the parts are added afterwards.
func (p *product) packed() work {
	rows, cols := min(tileRows, padded(p.M, mr)), min(tileCols, padded(p.N, nr))
	for p.Batch*ceilDiv(p.M, rows)*ceilDiv(p.N, cols) < enoughTiles && (rows > 16 || cols > 64) {
		if cols > 64 {
			cols = padded(cols/2, nr)
		} else {
			rows = padded(rows/2, mr)
		}
	}
	down, across, blocks := ceilDiv(p.M, rows), ceilDiv(p.N, cols), ceilDiv(p.K, kc)
	tiles := p.Batch * down * across
	splits := min(blocks, max(1, 16/tiles))
	perSplit := ceilDiv(blocks, splits)
	splits = ceilDiv(blocks, perSplit)

	wide := padded(p.N, nr)
	batchB := 1
	if p.StrideB > 0 {
		batchB = p.Batch
	}
	sizeB := p.K * wide // of one packed matrix
	size := p.M * p.N * p.Batch
	words := batchB * sizeB
	partials := words // offset of the parts, when split
	if splits > 1 {
		words += splits * size
	}
	groups := ceilDiv(wide, tileCols)

	w := work{scratch: (words + 1) / 2 * 8}
	w.phases = append(w.phases, phase{units: batchB * blocks * groups, ns: float64(min(kc, p.K) * min(wide, tileCols)),
		do: func(a *args, lo, hi int) {
			for u := lo; u < hi; u++ {
				item, block, j := u/(blocks*groups), u/groups%blocks, u%groups*tileCols
				k := block * kc
				steps, lanes := min(kc, p.K-k), min(tileCols, p.N-j)
				_, y, _ := p.operands(a, item)
				pack(words32(a)[item*sizeB+k*wide+j*steps:], y[k*p.bk+j*p.bn:], p.bn, p.bk, lanes, steps, nr)
			}
		}})
	w.phases = append(w.phases, phase{units: tiles * splits, ns: 0.25 * float64(rows*cols) * float64(min(perSplit*kc, p.K)),
		do: func(a *args, lo, hi int) {
			left := borrow(rows * kc)
			defer scratch.Put(left)
			for u := lo; u < hi; u++ {
				split, tile := u%splits, u/splits
				item, i, j := tile/(down*across), tile/across%down*rows, tile%across*cols
				m, n := min(rows, p.M-i), min(cols, p.N-j)
				x, _, out := p.operands(a, item)
				if splits > 1 {
					out = words32(a)[partials+split*size+item*p.M*p.N:]
				}
				b := words32(a)
				if p.StrideB > 0 {
					b = b[item*sizeB:]
				}
				for block := split * perSplit; block < min(blocks, (split+1)*perSplit) && !a.stop.Load(); block++ {
					k := block * kc
					steps := min(kc, p.K-k)
					pack(*left, x[i*p.am+k*p.ak:], p.am, p.ak, m, steps, mr)
					gemmTile(out[i*p.N+j:], p.N, m, n, steps, *left, b[k*wide+j*steps:], block > split*perSplit)
				}
				if splits == 1 {
					for r := range m {
						p.apply(out[(i+r)*p.N+j:][:n], p.biasAt(a, j, j+n))
					}
				}
			}
		}})
	if splits > 1 {
		w.phases = append(w.phases, p.gather(splits, partials))
	}
	return w
}

// gather adds the parts of a split inner dimension and finishes rows of the result. Parts lie in scratch memory from an
// offset on, each like the result.
func (p *product) gather(splits, partials int) phase {
	size := p.Batch * p.M * p.N
	return phase{units: p.Batch * p.M, ns: float64(p.N) * (0.5*float64(splits) + 1 + p.actNS), do: func(a *args, lo, hi int) {
		for r := lo; r < hi; r++ {
			y := a.out.f32()[r*p.N : (r+1)*p.N]
			for s := range splits {
				from := words32(a)[partials+s*size+r*p.N:][:p.N]
				if s == 0 {
					copy(y, from)
				} else {
					kernels.Add(y, y, from)
				}
			}
			p.apply(y, p.biasAt(a, 0, p.N))
		}
	}}
}

// words32 is the scratch memory as float32.
func words32(a *args) []float32 { return view{a.scratch.p, 2 * a.scratch.n}.f32() }
