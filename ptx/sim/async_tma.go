package sim

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/eval"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// tile is the operand of a bulk tensor copy: a tensor map and coordinates.
type tile struct {
	desc    address
	op      *memOp
	coords  []ref
	im2col  bool  // the map is one of pixels
	offsets []ref // of those
}

// tilePlace is where a lane's copy begins.
type tilePlace struct {
	at      [tensormap.MaxRank]int64
	offsets [tensormap.MaxRank - 2]int64
}

// tile is the i-th argument, [map, {coordinates}].
func (c *compiler) tile(in *ir.Instr, i int) (*tile, error) {
	rank := 0
	if _, err := fmt.Sscanf(string(in.First("1d", "2d", "3d", "4d", "5d")), "%dd", &rank); err != nil || i >= len(in.Args) {
		return nil, c.unsupported(in)
	}
	for _, m := range in.Mods {
		if strings.HasPrefix(string(m), "im2col::") || strings.HasPrefix(string(m), "tile::") {
			return nil, c.unsupported(in)
		}
		if strings.HasPrefix(string(m), "cta_group") {
			return nil, c.errorf(in, compute.ErrUnsupported, "tensor copies of a pair of blocks are not supported")
		}
	}
	t := &tile{op: c.memOp(in, 32, false), im2col: in.Has("im2col") || in.Has("im2col_no_offs")}
	t.op.space, t.op.align = ir.NoSpace, 1
	var err error
	if t.desc, err = c.addr(in, &in.Args[i]); err != nil {
		return nil, err
	}
	elems := in.Args[i].Elems
	if len(elems) == 1 && elems[0].Kind == ir.VecOperand {
		elems = elems[0].Elems
	}
	for j := range elems {
		r, err := c.src(in, &elems[j], ir.S32)
		if err != nil {
			return nil, err
		}
		t.coords = append(t.coords, r)
	}
	if len(t.coords) != rank {
		return nil, c.errorf(in, compute.ErrArgument, "%d coordinates, want %d", len(t.coords), rank)
	}
	if !in.Has("im2col") {
		return t, nil
	}
	for j := i + 1; j < len(in.Args) && t.offsets == nil; j++ {
		if in.Args[j].Kind == ir.VecOperand {
			if t.offsets, err = c.list(in, &in.Args[j], ir.U16); err != nil {
				return nil, err
			}
		}
	}
	if len(t.offsets) != rank-2 {
		return nil, c.errorf(in, compute.ErrArgument, "%d offsets of pixels, want %d", len(t.offsets), rank-2)
	}
	return t, nil
}

// decode reads a lane's tensor map and coordinates.
func (t *tile) decode(w *warp, lane int) (*tensormap.Map, tilePlace) {
	addr := t.desc.of(w, lane)
	w.alignedTo(lane, ir.NoSpace, addr, tensormap.Align)
	var b [tensormap.Size]byte
	for i := 0; i < len(b); i += t.op.size {
		p, undef := w.bytes(lane, t.op, addr+uint64(i), 0)
		if undef != 0 {
			w.fault(Uninitialized, lane, ir.NoSpace, addr+uint64(i), "bytes of the tensor map have never been written")
		}
		copy(b[i:], p)
	}
	m, err := tensormap.Decode(b[:])
	switch {
	case err != nil:
		w.fault(BadOperand, lane, ir.NoSpace, addr, "%v", err)
	case m.Rank != len(t.coords):
		w.fault(BadOperand, lane, ir.NoSpace, addr, "the tensor map has rank %d, the instruction %d", m.Rank, len(t.coords))
	case t.im2col != (m.Pixels > 0):
		w.fault(BadOperand, lane, ir.NoSpace, addr, "the tensor map is one of %s, the instruction copies %s", kindOfMap(m.Pixels > 0),
			kindOfMap(t.im2col))
	case m.Interleave != tensormap.NoInterleave:
		w.fault(BadOperand, lane, ir.NoSpace, addr, "interleaved tensors: the software GPU does not copy them")
	}
	var p tilePlace
	for i, r := range t.coords {
		p.at[i] = int64(int32(w.get(r, lane)))
	}
	for i, r := range t.offsets {
		p.offsets[i] = int64(uint16(w.get(r, lane)))
		if bits := 16 / len(t.offsets); p.offsets[i]>>bits != 0 {
			w.fault(BadOperand, lane, ir.NoSpace, addr, "an offset of %d pixels, want less than %d", p.offsets[i], 1<<bits)
		}
	}
	if err := m.Begins(p.at); err != nil {
		w.fault(BadOperand, lane, ir.NoSpace, addr, "%v", err)
	}
	return &m, p
}

func kindOfMap(pixels bool) string {
	if pixels {
		return "columns of pixels (im2col)"
	}
	return "tiles"
}

// tensorAlign is what a tile in shared memory is aligned to. The swizzle looks at address bits, so that the pattern does not
// move with a tile that is not aligned to its period.
const tensorAlign = 128

// chunks calls f with the pieces of a tile at shared address base: 16 bytes of a row of the box, as far as the tensor has them.
func chunks(m *tensormap.Map, p tilePlace, base uint64, load bool, f func(piece)) {
	size := m.Type.Bytes()
	per := bulkChunk / size
	fill := m.FillBits()
	for s := size; s < 8; s *= 2 {
		fill |= fill << (8 * s)
	}
	off := uint64(0)
	for e := range m.Rows(p.at, p.offsets) {
		first := e[0]
		for x := 0; x < m.RowLength(); x += per {
			from := min(max(0, -(first+int64(x))), int64(per))
			to := max(from, min(int64(per), int64(m.Dims[0])-first-int64(x)))
			e[0] = first + int64(x) + from
			addr, ok := m.Element(e)
			if !ok {
				to = from
			}
			q := piece{dst: m.Swizzle.Apply(base + off), src: addr, n: bulkChunk, from: int(from) * size, to: int(to) * size, fill: fill}
			off += bulkChunk
			switch {
			case load:
				f(q)
			case to > from:
				f(piece{dst: addr, src: q.dst + uint64(q.from), n: q.to - q.from, to: q.to - q.from})
			}
		}
	}
}

// compileTensor compiles bulk tensor copies: [dst], [map, coordinates], [mbar] and perhaps offsets of pixels to shared memory,
// [map, coordinates], [src] from there.
func compileTensor(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) < 2 {
		return nil, c.unsupported(in)
	}
	toShared := in.Has("mbarrier::complete_tx::bytes")
	tileAt, sharedAt := 0, 1
	if toShared {
		tileAt, sharedAt = 1, 0
	}
	tl, err := c.tile(in, tileAt)
	if err != nil {
		return nil, err
	}
	// The type of a reduction is that of the tensor map, so it is looked up when the instruction runs.
	plain := *in
	plain.Op = "cp.async.bulk.tensor"
	t, err := c.transfer(&plain, 2)
	if err != nil {
		return nil, err
	}
	var reductions map[tensormap.DataType]func(dst, src []byte)
	if strings.HasPrefix(string(in.Op), "cp.reduce") {
		reductions = map[tensormap.DataType]func(dst, src []byte){}
		for dt, typ := range elementTypes {
			if r, err := c.reduction(in, typ); err == nil {
				reductions[dt] = r
			}
		}
	}
	shared, err := c.addr(in, &in.Args[sharedAt])
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			lane := first(m)
			desc, begin := tl.decode(w, lane)
			base := shared.of(w, lane)
			w.alignedTo(lane, ir.SharedSpace, base, tensorAlign)
			u := *t
			if toShared {
				u.convert = conversions[desc.Type]
			}
			if reductions != nil {
				if u.reduce = reductions[desc.Type]; u.reduce == nil {
					w.fault(BadOperand, lane, 0, 0, "there is no such reduction of elements of type %v", desc.Type)
				}
			}
			u.start(w, lane, desc.BoxBytes(), func(f func(piece)) { chunks(desc, begin, base, toShared, f) })
		}
	}, err
}

// elementTypes are PTX's names of the types of tensors.
var elementTypes = map[tensormap.DataType]ir.Type{
	tensormap.U8: ir.U8, tensormap.U16: ir.U16, tensormap.U32: ir.U32, tensormap.S32: ir.S32, tensormap.U64: ir.U64,
	tensormap.S64: ir.S64,
	tensormap.F16: ir.F16, tensormap.F32: ir.F32, tensormap.F64: ir.F64, tensormap.BF16: ir.BF16, tensormap.F32FTZ: ir.F32,
	tensormap.TF32: ir.F32, tensormap.TF32FTZ: ir.F32,
}

// conversions are what copies to shared memory do to elements of some types. An H100 rounds to TF32 as cvt.rna does, subnormal numbers
// too.
var conversions = map[tensormap.DataType]func(b []byte){
	tensormap.F32FTZ: eachF32(flushed),
	tensormap.TF32:   eachF32(eval.F32ToTF32),
	tensormap.TF32FTZ: eachF32(func(x float32) float32 {
		return eval.F32ToTF32(flushed(x))
	}),
}

func flushed(x float32) float32 {
	if math.Abs(float64(x)) < 0x1p-126 {
		return float32(math.Copysign(0, float64(x)))
	}
	return x
}

func eachF32(f func(float32) float32) func(b []byte) {
	return func(b []byte) {
		for i := 0; i < len(b); i += 4 {
			x := math.Float32frombits(binary.LittleEndian.Uint32(b[i:]))
			binary.LittleEndian.PutUint32(b[i:], math.Float32bits(f(x)))
		}
	}
}

// compileTensorPrefetch checks the tensor map; there is no cache to fill.
func compileTensorPrefetch(c *compiler, in *ir.Instr) (step, error) {
	t, err := c.tile(in, 0)
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			t.decode(w, first(m))
		}
	}, err
}
