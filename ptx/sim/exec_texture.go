package sim

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/eval"
	"github.com/wavelane/wavelane/ptx/ir"
)

// textured is an instruction on a texture or surface.
type textured struct {
	in      *ir.Instr
	object  handleRef
	sampler *handleRef // nil: the texture has it
	layer   ref
	coords  []ref // without layer
	integer bool  // coordinates count texels, or bytes in a surface's x
	op      *memOp
	data    []ref
	size    int // bytes of an element of a surface access
}

// handleRef is where an instruction has a handle from: a register, a variable, or a parameter of the kernel.
type handleRef struct {
	reg   ref
	kind  ir.Type
	param int // offset in the parameters; -1: none
}

func (c *compiler) handleRef(in *ir.Instr, o *ir.Operand, kind ir.Type) (handleRef, error) {
	h := handleRef{reg: none, kind: kind, param: -1}
	if o.Reg != 0 {
		h.reg = c.fn.regs[o.Reg]
		return h, nil
	}
	v, err := c.symbol(in, o.Sym, o.Off)
	if err != nil {
		return h, err
	}
	if c.variable(o.Sym) == nil && c.fn.ir.Entry {
		h.param = int(v)
		return h, nil
	}
	h.reg = c.constant(ir.B64, v)
	return h, nil
}

// of is the object that a lane's handle stands for. A handle may also be the address of a variable that has been bound.
func (h *handleRef) of(w *warp, lane int) *texture {
	handle := w.get(h.reg, lane)
	if h.param >= 0 {
		handle = load(w.block.grid.params.data[h.param:], 8)
	}
	g := w.block.grid.gpu
	t := g.texture(handle)
	if t == nil {
		if s := g.mem.find(handle); s != nil && s.opaque && handle == s.base {
			if t = g.texture(load(s.data, 8)); t == nil {
				w.fault(BadOperand, lane, 0, 0, "%s has not been bound", s.name)
			}
		}
	}
	if t == nil || t.kind != h.kind {
		w.fault(BadOperand, lane, 0, 0, "%#x is no handle of a .%s", handle, h.kind)
	}
	return t
}

// textured collects the address operand i.
func (c *compiler) textured(in *ir.Instr, i int, kind ir.Type) (*textured, error) {
	if i >= len(in.Args) || in.Args[i].Kind != ir.AddrOperand {
		return nil, c.unsupported(in)
	}
	o := &in.Args[i]
	x := &textured{in: in, op: c.memOp(in, 4, false), layer: none}
	x.op.space, x.op.sem, x.op.scope = ir.GlobalSpace, "", ""
	var err error
	if x.object, err = c.handleRef(in, o, kind); err != nil {
		return nil, err
	}
	elems := o.Elems
	if len(elems) == 2 {
		s, err := c.handleRef(in, &elems[0], ir.SamplerRef)
		if err != nil {
			return nil, err
		}
		x.sampler, elems = &s, elems[1:]
	}
	if len(elems) == 0 {
		return x, nil
	}
	t := ir.S32
	if kind == ir.TexRef {
		t = in.Type(1)
	}
	x.integer = !t.IsFloat()
	if x.coords, err = c.list(in, &elems[0], t); err != nil {
		return nil, err
	}
	geometry := in.Geometry()
	if geometry[0] == 'a' {
		first := &elems[0]
		if first.Kind == ir.VecOperand {
			first = &first.Elems[0]
		}
		if x.layer, err = c.src(in, first, ir.U32); err != nil {
			return nil, err
		}
		x.coords, geometry = x.coords[1:], geometry[1:]
	}
	n := map[ir.Mod]int{"1d": 1, "2d": 2}[geometry]
	if n == 0 {
		n = 3
	}
	x.coords = x.coords[:n]
	return x, nil
}

// fits ends the launch if the object has not the instruction's geometry.
func (x *textured) fits(w *warp, lane int, m *Image) {
	want := x.in.Geometry()
	layered, cube := want[0] == 'a', want == "cube" || want == "acube"
	dims := len(x.coords)
	if cube {
		layered, dims = true, 2
	}
	if has := 1 + b2i(m.Height > 0) + b2i(m.Depth > 0); has != dims || layered != (m.Layers > 0) || cube && !m.Cube {
		w.fault(BadOperand, lane, 0, 0, ".%s of an image of %d × %d × %d texels in %d layers", want, m.Width, m.Height, m.Depth, m.Layers)
	}
}

// compileTex compiles tex and tld4. There is one level of detail, so that levels and gradients do not matter.
func compileTex(c *compiler, in *ir.Instr) (step, error) {
	x, err := c.textured(in, 1, ir.TexRef)
	if err != nil {
		return nil, err
	}
	t := in.Type(0)
	if x.data, err = c.list(in, &in.Args[0], t); err != nil {
		return nil, err
	}
	component := -1
	if in.Op == "tld4" {
		component = map[ir.Mod]int{"r": 0, "g": 1, "b": 2, "a": 3}[in.Mods[0]]
	}
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			l := first(m)
			tex := x.object.of(w, l)
			s := &tex.sampler
			if x.sampler != nil {
				s = &x.sampler.of(w, l).sampler
			}
			x.fits(w, l, &tex.image)
			f := fetch{w: w, lane: l, op: *x.op, m: &tex.image, s: s, fractions: s.Fractions || tex.sampler.Fractions}
			if float := f.fractions || f.m.Type.IsFloat(); float != t.IsFloat() {
				w.fault(BadOperand, l, 0, 0, "texels of .%s as .%s", f.m.Type, t)
			}
			v := x.sample(&f, component)
			if f.undef {
				for e := range x.data {
					w.poison[e] |= 1 << l
				}
			}
			if t == ir.F16x2 {
				for e, r := range x.data {
					w.set(r, l, uint64(eval.F32ToF16(float32(v[2*e])))|uint64(eval.F32ToF16(float32(v[2*e+1])))<<16)
				}
				continue
			}
			for e, r := range x.data {
				switch t {
				case ir.F16:
					w.set(r, l, uint64(eval.F32ToF16(float32(v[e]))))
				case ir.F32:
					w.set(r, l, uint64(math.Float32bits(float32(v[e]))))
				default:
					w.set(r, l, uint64(int64(v[e])))
				}
			}
		}
	}, nil
}

// fetch reads texels for one lane.
type fetch struct {
	w         *warp
	lane      int
	op        memOp
	m         *Image
	s         *Sampler
	fractions bool
	undef     bool
	layer     int
}

// sample is a texel or an interpolation of some, in float64, which holds all of them.
func (x *textured) sample(f *fetch, component int) (out [4]float64) {
	w, l := f.w, f.lane
	if f.m.Layers > 0 {
		f.layer = int(min(max(0, int64(int32(w.get(x.layer, l)))), int64(f.m.Layers-1)))
	}
	if x.integer {
		var at [3]int
		for i, r := range x.coords {
			at[i] = int(int32(w.get(r, l)))
		}
		if g := x.in.Geometry(); g == "1d" { // linear memory, with zeros around it
			if at[0] < 0 || at[0] >= f.m.Width {
				return out
			}
		}
		return f.texel(at, false)
	}
	var at [3]float64
	for i, r := range x.coords {
		at[i] = float64(math.Float32frombits(uint32(w.get(r, l))))
	}
	s := *f.s
	if f.m.Cube && (x.in.Geometry() == "cube" || x.in.Geometry() == "acube") {
		var face int
		face, at = cubeFace(at)
		if x.in.Geometry() == "acube" {
			f.layer = min(max(0, int(int32(w.get(x.layer, l)))), f.m.Layers/6-1) * 6
		} else {
			f.layer = 0
		}
		f.layer += face
		s.Normalized, s.Address = true, [3]AddressMode{Clamp, Clamp, Clamp}
		f.s = &s
	}
	size := [3]int{f.m.Width, f.m.Height, f.m.Depth}
	dims := 1 + b2i(f.m.Height > 0) + b2i(f.m.Depth > 0)
	var low [3]int
	var part [3]float64
	for i := range dims {
		v := at[i]
		if s.Normalized {
			v *= float64(size[i])
		}
		if math.IsNaN(v) {
			v = 0
		}
		if component >= 0 || s.Linear {
			v -= 0.5
		}
		v = min(max(v, -1<<30), 1<<30)
		whole := math.Floor(v)
		low[i] = int(whole)
		part[i] = math.Round((v-whole)*256) / 256
	}
	if component >= 0 { // counterclockwise from the lower left, in rows that grow downwards
		for i, d := range [4][2]int{{0, 1}, {1, 1}, {1, 0}, {0, 0}} {
			out[i] = f.texel([3]int{low[0] + d[0], low[1] + d[1]}, s.Normalized)[component]
		}
		return out
	}
	if !s.Linear {
		return f.texel(low, s.Normalized)
	}
	for corner := range 1 << dims {
		at, weight := low, 1.0
		for i := range dims {
			if corner>>i&1 != 0 {
				at[i]++
				weight *= part[i]
			} else {
				weight *= 1 - part[i]
			}
		}
		if weight == 0 {
			continue
		}
		for k, v := range f.texel(at, s.Normalized) {
			out[k] += weight * v
		}
	}
	return out
}

// cubeFace is the face that a direction points to, and where on it, from 0 to 1.
func cubeFace(d [3]float64) (face int, at [3]float64) {
	x, y, z := d[0], d[1], d[2]
	ax, ay, az := math.Abs(x), math.Abs(y), math.Abs(z)
	var m, s, t float64
	switch {
	case ax > ay && ax >= az && x >= 0:
		face, m, s, t = 0, ax, -z, -y
	case ax > ay && ax >= az:
		face, m, s, t = 1, ax, z, -y
	case ay >= ax && ay >= az && y >= 0:
		face, m, s, t = 2, ay, x, z
	case ay >= ax && ay >= az:
		face, m, s, t = 3, ay, x, -z
	case z >= 0:
		face, m, s, t = 4, az, x, -y
	default:
		face, m, s, t = 5, az, -x, -y
	}
	return face, [3]float64{(s/m + 1) / 2, (t/m + 1) / 2}
}

// texel reads one, as the address modes say.
func (f *fetch) texel(at [3]int, normalized bool) (out [4]float64) {
	m := f.m
	size := [3]int{m.Width, max(1, m.Height), max(1, m.Depth)}
	for i, n := range size {
		switch mode := f.s.Address[i]; {
		case at[i] >= 0 && at[i] < n:
		case mode == Border:
			for k := range out {
				out[k] = float64(f.s.Border[k])
			}
			return out
		case mode == Wrap && normalized:
			at[i] = ((at[i] % n) + n) % n
		case mode == Mirror && normalized:
			if at[i] = ((at[i] % (2 * n)) + 2*n) % (2 * n); at[i] >= n {
				at[i] = 2*n - 1 - at[i]
			}
		default:
			at[i] = min(max(0, at[i]), n-1)
		}
	}
	f.op.size, f.op.align = m.texel(), m.Type.Size()
	b, undef := f.w.bytes(f.lane, &f.op, m.at(f.layer, at, at[0]*m.texel()), 0)
	f.undef = f.undef || undef != 0
	out[3] = 1
	n := m.Type.Size()
	for k := range m.Channels {
		out[k] = f.channel(load(b[k*n:], n))
	}
	return out
}

// at is the address of byte x of a row.
func (m *Image) at(layer int, at [3]int, x int) uint64 {
	row := (layer*max(1, m.Depth)+at[2])*max(1, m.Height) + at[1]
	return m.Addr + uint64(row*m.pitch()+x)
}

// channel is the number that bits of a channel stand for.
func (f *fetch) channel(bits uint64) float64 {
	t := f.m.Type
	switch {
	case t == ir.F32:
		return float64(math.Float32frombits(uint32(bits)))
	case t == ir.F16:
		return float64(eval.F16ToF32(uint16(bits)))
	case t.IsSigned():
		v := float64(int64(bits<<(64-t.Bits())) >> (64 - t.Bits()))
		if f.fractions {
			return max(-1, v/float64(int64(1)<<(t.Bits()-1)-1))
		}
		return v
	case f.fractions:
		return float64(bits) / float64(uint64(1)<<t.Bits()-1)
	}
	return float64(bits)
}

// compileSurface compiles suld, sust and sured. x counts bytes but for sust.p and sured.p, where it counts texels.
func compileSurface(c *compiler, in *ir.Instr) (step, error) {
	at, data := 1, 0
	if in.Op != "suld" {
		at, data = 0, 1
	}
	x, err := c.textured(in, at, ir.SurfRef)
	if err != nil {
		return nil, err
	}
	t := in.Type(0)
	if x.data, err = c.list(in, &in.Args[data], t); err != nil {
		return nil, err
	}
	if len(x.data) != in.Width() {
		return nil, c.errorf(in, compute.ErrArgument, "%d registers for %d elements", len(x.data), in.Width())
	}
	x.size = t.Size()
	x.op.size, x.op.align, x.op.write = x.size*len(x.data), x.size, in.Op != "suld"
	formatted := in.Has("p")
	outside := in.First("trap", "clamp", "zero")
	var reduce func(old, v, _ uint64) uint64
	if in.Op == "sured" {
		typ := in.First("u32", "s32", "u64", "s64", "b32")
		if formatted {
			typ = "u32" // or as the image says
		}
		red := &ir.Instr{Op: "red", Mods: []ir.Mod{in.First("add", "min", "max", "and", "or"), typ}}
		if red.Mods[0] == "and" || red.Mods[0] == "or" {
			red.Mods[1] = "b32"
		}
		if reduce, err = eval.Atom(red); err != nil {
			return nil, c.errorf(in, compute.ErrUnsupported, "%v", err)
		}
		x.op.atomic, x.op.sem, x.op.scope = true, ir.Relaxed, ir.ScopeGPU
		c.prog.strong = true
	}
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			l := first(m)
			img := &x.object.of(w, l).image
			x.fits(w, l, img)
			op := *x.op
			if formatted && in.Op == "sust" {
				op.size, op.align = img.texel(), img.Type.Size()
			}
			addr, ok := x.place(w, l, img, &op, formatted, outside)
			if !ok {
				if in.Op == "suld" {
					for _, r := range x.data {
						w.set(r, l, 0)
					}
				}
				continue
			}
			w.onSurface(x, l, &op, addr, img, formatted, reduce)
		}
	}, nil
}

// place is the address of an access; false: it is to be left out.
func (x *textured) place(w *warp, l int, m *Image, op *memOp, formatted bool, outside ir.Mod) (uint64, bool) {
	var at [3]int
	for i, r := range x.coords {
		at[i] = int(int32(w.get(r, l)))
	}
	if formatted {
		at[0] *= m.texel()
	}
	layer, layers := 0, max(1, m.Layers)
	if m.Layers > 0 {
		layer = int(int32(w.get(x.layer, l)))
	}
	row := m.Width * m.texel()
	inside := at[0] >= 0 && at[0]+op.size <= row && layer >= 0 && layer < layers
	for i, n := range [3]int{0, max(1, m.Height), max(1, m.Depth)} {
		inside = inside && (i == 0 || at[i] >= 0 && at[i] < n)
	}
	switch {
	case inside:
	case outside == "trap":
		w.fault(OutOfBounds, l, ir.GlobalSpace, m.Addr, "byte %d of row %d, slice %d, layer %d of an image of %d × %d × %d texels of %d bytes in %d layers",
			at[0], at[1], at[2], layer, m.Width, m.Height, m.Depth, m.texel(), m.Layers)
	case outside == "zero" || op.size > row:
		return 0, false
	}
	if at[0]%op.align != 0 {
		w.fault(Misaligned, l, ir.GlobalSpace, m.Addr, "byte %d of a row, want a multiple of %d", at[0], op.align)
	}
	at[0] = min(max(0, at[0]), (row-op.size)/op.size*op.size)
	at[1], at[2] = min(max(0, at[1]), max(1, m.Height)-1), min(max(0, at[2]), max(1, m.Depth)-1)
	return m.at(min(max(0, layer), layers-1), at, at[0]), true
}

// onSurface does one access.
func (w *warp) onSurface(x *textured, l int, op *memOp, addr uint64, m *Image, formatted bool, reduce func(old, v, _ uint64) uint64) {
	switch {
	case reduce != nil:
		w.locked(addr, func() {
			b, _ := w.bytes(l, op, addr, 0)
			store(b, x.size, reduce(load(b, x.size), w.get(x.data[0], l), 0))
		})
	case op.write && formatted: // the channels that the registers have, converted
		b, _ := w.bytes(l, op, addr, x.undefined(w, l, m.Type.Size(), m.Channels))
		for k := range m.Channels {
			v := uint64(0)
			if k < len(x.data) {
				v = w.get(x.data[k], l)
			}
			if m.Type == ir.F16 {
				v = uint64(eval.F32ToF16(math.Float32frombits(uint32(v))))
			}
			store(b[k*m.Type.Size():], m.Type.Size(), clampTo(m.Type, v))
		}
	case op.write:
		b, _ := w.bytes(l, op, addr, x.undefined(w, l, x.size, len(x.data)))
		for e, r := range x.data {
			store(b[e*x.size:], x.size, w.get(r, l))
		}
	default:
		b, undef := w.bytes(l, op, addr, 0)
		for e, r := range x.data {
			w.set(r, l, load(b[e*x.size:], x.size))
			if undef>>(e*x.size)&byteMask(0, x.size) != 0 {
				w.poison[e] |= 1 << l
			}
		}
	}
}

// undefined are the bytes of a store that have no value.
func (x *textured) undefined(w *warp, l, size, n int) (undef uint32) {
	for e := range min(n, len(x.data)) {
		if w.poison[e]>>l&1 != 0 {
			undef |= byteMask(e*size, size)
		}
	}
	return undef
}

// clampTo is a 32-bit integer in the range of a narrower type.
func clampTo(t ir.Type, v uint64) uint64 {
	switch bits := t.Bits(); {
	case t.IsFloat() || bits == 32:
		return v
	case t.IsSigned():
		return uint64(min(max(int64(int32(v)), -1<<(bits-1)), 1<<(bits-1)-1))
	default:
		return min(v, 1<<bits-1)
	}
}

// The numbers of OpenCL and PTX for formats of channels.
var channelTypes = map[ir.Type]uint64{ir.S8: 0x10d7, ir.S16: 0x10d8, ir.S32: 0x10d9, ir.U8: 0x10da, ir.U16: 0x10db, ir.U32: 0x10dc, ir.F16: 0x10dd, ir.F32: 0x10de}

// compileQuery compiles txq and suq.
func compileQuery(c *compiler, in *ir.Instr) (step, error) {
	kind := ir.TexRef
	if in.Op == "suq" {
		kind = ir.SurfRef
	}
	query := in.First("width", "height", "depth", "channel_data_type", "channel_order", "normalized_coords", "array_size",
		"num_mipmap_levels", "num_samples", "filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2", "force_unnormalized_coords", "memory_layout")
	if v := c.variable(in.Args[1].Sym); v != nil && v.Type.IsOpaque() {
		kind = v.Type
	}
	x, err := c.textured(in, 1, kind)
	if err != nil {
		return nil, err
	}
	d, err := c.dst(in, &in.Args[0])
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			l := first(m)
			w.set(d, l, x.object.of(w, l).query(query))
		}
	}, err
}

// query is what an object says about itself.
func (t *texture) query(what ir.Mod) uint64 {
	m, s := &t.image, &t.sampler
	n := 0
	switch what {
	case "width":
		n = m.Width
	case "height":
		n = m.Height
	case "depth":
		n = m.Depth
	case "array_size":
		if n = m.Layers; m.Cube {
			n /= 6
		}
	case "num_mipmap_levels":
		n = 1
	case "channel_data_type":
		return channelTypes[m.Type]
	case "channel_order": // CL_R, CL_RG, CL_RGBA
		return map[int]uint64{1: 0x10b0, 2: 0x10b2, 4: 0x10b5}[m.Channels]
	case "normalized_coords":
		n = b2i(s.Normalized)
	case "force_unnormalized_coords":
		n = b2i(!s.Normalized)
	case "filter_mode":
		n = b2i(s.Linear)
	case "addr_mode_0", "addr_mode_1", "addr_mode_2":
		n = int(s.Address[what[10]-'0'])
	}
	return uint64(n)
}

// compileIstypep compiles istypep: whether a handle is one of a kind.
func compileIstypep(c *compiler, in *ir.Instr) (step, error) {
	d, err := c.dst(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	a, err := c.arg(in, 1, ir.U64)
	kind := in.Type(0)
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			l := first(m)
			t := w.block.grid.gpu.texture(w.get(a, l))
			w.set(d, l, uint64(b2i(t != nil && t.kind == kind)))
		}
	}, err
}
