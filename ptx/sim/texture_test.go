package sim_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

// point is what one thread asks for.
type point struct {
	x, y, z float32
	layer   uint32
}

// fetches runs an instruction on %rd1, the handle, with coordinates in %f1, %f2, %f3 and a layer in %r1, once for each point. The four
// words that it leaves in %r5 … %r8 come back.
func fetches(t testing.TB, g *sim.GPU, code string, handle uint64, points []point) ([]uint32, error) {
	m, err := g.Load(module(t, `.version 8.1
		.target sm_90
		.address_size 64
		.entry k(.param .u64 out, .param .u64 handle, .param .u64 points) {
		.reg .pred %p<4>; .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .f32 %f<12>;
		mov.u32 %r15, %tid.x; mov.u32 %r16, %ctaid.x; shl.b32 %r16, %r16, 6; add.u32 %r15, %r15, %r16;
		ld.param.u64 %rd8, [points]; mad.wide.u32 %rd8, %r15, 16, %rd8;
		ld.global.v4.b32 {%f1, %f2, %f3, %r1}, [%rd8];
		ld.param.u64 %rd1, [handle]; mov.b32 %r2, %f1; mov.b32 %r3, %f2; mov.b32 %r4, %f3;
		mov.u32 %r5, 0; mov.u32 %r6, 0; mov.u32 %r7, 0; mov.u32 %r8, 0;
		`+code+`
		ld.param.u64 %rd8, [out]; mad.wide.u32 %rd8, %r15, 16, %rd8; st.global.v4.u32 [%rd8], {%r5, %r6, %r7, %r8}; }`))
	require.NoError(t, err)
	k, err := m.Kernel("k")
	require.NoError(t, err)
	list := make([]uint32, 0, 4*len(points))
	for _, p := range points {
		list = append(list, math.Float32bits(p.x), math.Float32bits(p.y), math.Float32bits(p.z), p.layer)
	}
	in := upload(t, g, list)
	out := upload(t, g, make([]uint32, len(list)))
	l := sim.Launch{Grid: sim.Dim3{X: len(points) / 64}, Block: sim.Dim3{X: 64}}
	l.Params, err = k.Pack(out, handle, in)
	require.NoError(t, err)
	if _, err = g.Run(context.Background(), k, l); err != nil {
		return nil, err
	}
	return words(t, g, out, len(list)), nil
}

// image makes an image of random texels.
func image(t testing.TB, g *sim.GPU, rng *rand.Rand, m sim.Image) sim.Image {
	b := make([]byte, m.Size())
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	if m.Type == ir.F32 {
		for i := 0; i < len(b); i += 4 {
			binary.LittleEndian.PutUint32(b[i:], math.Float32bits(float32(rng.NormFloat64())))
		}
	}
	var err error
	m.Addr, err = g.Alloc(len(b))
	require.NoError(t, err)
	require.NoError(t, g.Write(m.Addr, b))
	return m
}

// contents reads channel c of a texel back.
func contents(t testing.TB, g *sim.GPU, m sim.Image, layer, z, y, x, c int) float64 {
	n := m.Type.Size()
	pitch := max(m.Pitch, m.Width*n*m.Channels)
	b := make([]byte, 8)
	require.NoError(t, g.Read(b[:n], m.Addr+uint64(((layer*max(1, m.Depth)+z)*max(1, m.Height)+y)*pitch+(x*m.Channels+c)*n)))
	switch m.Type {
	case ir.F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case ir.S16:
		return float64(int16(binary.LittleEndian.Uint16(b)))
	}
	return float64(binary.LittleEndian.Uint64(b))
}

func randomPoints(rng *rand.Rand, from, to float64) []point {
	list := make([]point, 128)
	at := func() float32 { return float32(from + (to-from)*rng.Float64()) }
	for i := range list {
		list[i] = point{at(), at(), at(), uint32(rng.IntN(6)) - 1}
	}
	return list
}

// axis is a coordinate as the programming guide of CUDA has it: brought into the texture first, then two texels and a fraction.
func axis(x float64, n int, mode sim.AddressMode, normalized bool) (low, high int, part float64) {
	if normalized {
		switch whole := math.Floor(x); mode {
		case sim.Wrap:
			x -= whole
		case sim.Mirror:
			if x -= whole; int(whole)%2 != 0 {
				x = 1 - x
			}
		}
		x *= float64(n)
	} else if mode != sim.Border {
		mode = sim.Clamp
	}
	x -= 0.5
	low = int(math.Floor(x))
	part = math.Floor((x-math.Floor(x))*256+0.5) / 256
	fix := func(i int) int {
		switch {
		case i >= 0 && i < n:
			return i
		case mode == sim.Border:
			return -1
		case mode == sim.Wrap && i < 0:
			return n - 1
		case mode == sim.Wrap:
			return 0
		case i < 0:
			return 0
		}
		return n - 1
	}
	return fix(low), fix(low + 1), part
}

// Linear filtering of two dimensions, in all address modes, against the formulas of the programming guide.
func TestTextureLinear(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 19))
	for mode := sim.Wrap; mode <= sim.Border; mode++ {
		for _, normalized := range []bool{false, true} {
			g := sim.New(sim.Config{Checks: sim.AllChecks})
			m := image(t, g, rng, sim.Image{Width: 5, Height: 7, Pitch: 32, Type: ir.F32, Channels: 1})
			border := [4]float32{3, 4, 5, 6}
			h, err := g.Texture(m, sim.Sampler{Linear: true, Normalized: normalized, Address: [3]sim.AddressMode{mode, mode}, Border: border})
			require.NoError(t, err)
			points := randomPoints(rng, -9, 16)
			if normalized {
				points = randomPoints(rng, -2.5, 3)
			}
			got, err := fetches(t, g, "tex.2d.v4.f32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%f1, %f2}];", h, points)
			require.NoError(t, err)
			texel := func(x, y int) float64 {
				if x < 0 || y < 0 {
					return 3
				}
				return contents(t, g, m, 0, 0, y, x, 0)
			}
			for i, p := range points {
				x0, x1, a := axis(float64(p.x), m.Width, mode, normalized)
				y0, y1, b := axis(float64(p.y), m.Height, mode, normalized)
				want := (1-a)*(1-b)*texel(x0, y0) + a*(1-b)*texel(x1, y0) + (1-a)*b*texel(x0, y1) + a*b*texel(x1, y1)
				v := math.Float32frombits(got[4*i])
				// Products with n may round the eighth bit of the fraction the other way.
				require.InDelta(t, want, v, 1e-6+normalizedSlack(normalized), "mode %d normalized %v at %v", mode, normalized, p)
			}
		}
	}
}

func normalizedSlack(normalized bool) float64 {
	if normalized {
		return 0.05
	}
	return 0
}

// Nearest texels of one, two and three dimensions, with layers and of integers.
func TestTextureNearest(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 19))
	clamp := func(v, n int) int { return min(max(0, v), max(1, n)-1) }
	floor := func(v float32) int { return int(math.Floor(float64(v))) }
	for _, c := range []struct {
		code   string
		m      sim.Image
		s      sim.Sampler
		scale  float64
		float  bool
		around bool // zeros around it
	}{
		{"tex.1d.v4.u32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%f1}];", sim.Image{Width: 9, Type: ir.U32, Channels: 2}, sim.Sampler{}, 1, false, false},
		{"tex.2d.v4.f32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%f1, %f2}];", sim.Image{Width: 5, Height: 6, Type: ir.F32, Channels: 4}, sim.Sampler{}, 1, true, false},
		{"tex.3d.v4.f32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%f1, %f2, %f3, %f3}];", sim.Image{Width: 3, Height: 4, Depth: 5, Type: ir.U8, Channels: 4}, sim.Sampler{Fractions: true}, 1.0 / 255, true, false},
		{"tex.a1d.v4.f32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r1, %f1}];", sim.Image{Width: 8, Layers: 4, Type: ir.F32, Channels: 1}, sim.Sampler{}, 1, true, false},
		{"tex.level.a2d.v4.s32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r1, %f1, %f2, %f2}], %f3;", sim.Image{Width: 8, Height: 2, Layers: 3, Type: ir.S16, Channels: 2}, sim.Sampler{}, 1, false, false},
		{"cvt.rmi.s32.f32 %r2, %f1; tex.1d.v4.u32.s32 {%r5, %r6, %r7, %r8}, [%rd1, {%r2}];", sim.Image{Width: 8, Type: ir.U8, Channels: 1}, sim.Sampler{}, 1, false, true},
	} {
		g := sim.New(sim.Config{Checks: sim.AllChecks})
		m := image(t, g, rng, c.m)
		c.s.Address = [3]sim.AddressMode{sim.Clamp, sim.Clamp, sim.Clamp}
		h, err := g.Texture(m, c.s)
		require.NoError(t, err)
		points := randomPoints(rng, -3, 12)
		got, err := fetches(t, g, c.code, h, points)
		require.NoError(t, err)
		for i, p := range points {
			for ch := range 4 {
				want := [4]float64{0, 0, 0, 1}[ch]
				if ch < m.Channels {
					want = contents(t, g, m, clamp(int(int32(p.layer)), m.Layers), clamp(floor(p.z), m.Depth), clamp(floor(p.y), m.Height), clamp(floor(p.x), m.Width), ch) * c.scale
				}
				if c.around && (p.x < 0 || floor(p.x) >= m.Width) {
					want = 0
				}
				v := float64(int32(got[4*i+ch]))
				switch {
				case c.float:
					v = float64(math.Float32frombits(got[4*i+ch]))
				case m.Type == ir.U32:
					v = float64(got[4*i+ch])
				}
				require.InDelta(t, want, v, 1e-7*math.Abs(want), "%s channel %d at %v", c.code, ch, p)
			}
		}
	}
}

// Three dimensions of fractions, linearly: eight texels.
func TestTextureLinear3D(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 19))
	g := sim.New(sim.Config{})
	m := image(t, g, rng, sim.Image{Width: 4, Height: 3, Depth: 5, Type: ir.S16, Channels: 1})
	h, err := g.Texture(m, sim.Sampler{Linear: true, Fractions: true, Address: [3]sim.AddressMode{sim.Clamp, sim.Clamp, sim.Border}})
	require.NoError(t, err)
	points := randomPoints(rng, -1, 6)
	got, err := fetches(t, g, "tex.3d.v4.f32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%f1, %f2, %f3, %f3}];", h, points)
	require.NoError(t, err)
	for i, p := range points {
		x0, x1, a := axis(float64(p.x), 4, sim.Clamp, false)
		y0, y1, b := axis(float64(p.y), 3, sim.Clamp, false)
		z0, z1, c := axis(float64(p.z), 5, sim.Border, false)
		at := func(x, y, z int) float64 {
			if z < 0 {
				return 0
			}
			return max(-1, contents(t, g, m, 0, z, y, x, 0)/32767)
		}
		plane := func(z int) float64 {
			return (1-b)*((1-a)*at(x0, y0, z)+a*at(x1, y0, z)) + b*((1-a)*at(x0, y1, z)+a*at(x1, y1, z))
		}
		require.InDelta(t, (1-c)*plane(z0)+c*plane(z1), math.Float32frombits(got[4*i]), 1e-6, "%v", p)
	}
}

func TestTextureGather(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 19))
	g := sim.New(sim.Config{Checks: sim.AllChecks})
	m := image(t, g, rng, sim.Image{Width: 6, Height: 5, Type: ir.F32, Channels: 2})
	h, err := g.Texture(m, sim.Sampler{Address: [3]sim.AddressMode{sim.Clamp, sim.Clamp}})
	require.NoError(t, err)
	points := randomPoints(rng, -1, 7)
	got, err := fetches(t, g, "tld4.g.2d.v4.f32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%f1, %f2}];", h, points)
	require.NoError(t, err)
	for i, p := range points {
		x0, x1, _ := axis(float64(p.x), 6, sim.Clamp, false)
		y0, y1, _ := axis(float64(p.y), 5, sim.Clamp, false)
		for j, at := range [4][2]int{{x0, y1}, {x1, y1}, {x1, y0}, {x0, y0}} {
			require.Equal(t, float32(contents(t, g, m, 0, 0, at[1], at[0], 1)), math.Float32frombits(got[4*i+j]))
		}
	}
}

// A direction meets the face of the cube that its largest part names.
func TestTextureCube(t *testing.T) {
	g := sim.New(sim.Config{})
	m := sim.Image{Width: 2, Height: 2, Layers: 12, Cube: true, Type: ir.U8, Channels: 1}
	texels := make([]byte, m.Size())
	for i := range texels {
		texels[i] = byte(i)
	}
	var err error
	m.Addr, err = g.Alloc(len(texels))
	require.NoError(t, err)
	require.NoError(t, g.Write(m.Addr, texels))
	h, err := g.Texture(m, sim.Sampler{})
	require.NoError(t, err)
	points := make([]point, 64)
	want := make([]uint32, 64)
	for i, c := range []struct {
		p    point
		want uint32
	}{ // face, row, column
		{point{2, 1, -1, 0}, 0*4 + 0*2 + 1}, {point{-2, 1, -1, 0}, 1*4 + 0*2 + 0}, {point{1, 2, 1, 0}, 2*4 + 1*2 + 1}, {point{1, -2, 1, 0}, 3*4 + 0*2 + 1},
		{point{-1, -1, 2, 0}, 4*4 + 1*2 + 0}, {point{-1, 1, -2, 1}, 24 + 5*4 + 0*2 + 1}, {point{2, -1, 1, 9}, 24 + 0*4 + 1*2 + 0},
	} {
		points[i], want[i] = c.p, c.want
	}
	for i := 7; i < 64; i++ {
		points[i], want[i] = points[0], want[0]
	}
	got, err := fetches(t, g, "tex.acube.v4.u32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%r1, %f1, %f2, %f3}];", h, points)
	require.NoError(t, err)
	for i := range want {
		require.Equal(t, want[i], got[4*i], "%v", points[i])
	}
	got, err = fetches(t, g, "tex.cube.v4.u32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%f1, %f2, %f3, %f3}];", h, points)
	require.NoError(t, err)
	for i := range want {
		require.Equal(t, want[i]%24, got[4*i], "%v", points[i])
	}
}

func TestSurfaces(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 19))
	g := sim.New(sim.Config{Checks: sim.AllChecks})
	m := image(t, g, rng, sim.Image{Width: 8, Height: 8, Type: ir.U32, Channels: 1})
	h, err := g.Surface(m)
	require.NoError(t, err)
	points := make([]point, 64)
	for i := range points {
		points[i] = point{x: float32(i%8 - 1), y: float32(i/8 - 1)}
	}
	const at = "cvt.rzi.s32.f32 %r2, %f1; cvt.rzi.s32.f32 %r3, %f2; shl.b32 %r2, %r2, 2;"
	for _, mode := range []string{"clamp", "zero"} {
		got, err := fetches(t, g, at+"suld.b.2d.b32."+mode+" {%r5}, [%rd1, {%r2, %r3}];", h, points)
		require.NoError(t, err)
		for i, p := range points {
			want := uint32(contents(t, g, m, 0, 0, max(0, int(p.y)), max(0, int(p.x)), 0))
			if mode == "zero" && (p.x < 0 || p.y < 0) {
				want = 0
			}
			require.Equal(t, want, got[4*i], "%s %v", mode, p)
		}
	}
	_, err = fetches(t, g, at+"suld.b.2d.b32.trap {%r5}, [%rd1, {%r2, %r3}];", h, points)
	require.Contains(t, faults(t, err, sim.OutOfBounds).Detail, "of an image of 8 × 8 × 0 texels")
	_, err = fetches(t, g, "mov.u32 %r2, 2; suld.b.2d.b32.trap {%r5}, [%rd1, {%r2, %r2}];", h, points)
	faults(t, err, sim.Misaligned)

	// Writes: those outside are left out, and each cell has its own value.
	_, err = fetches(t, g, at+"mad.lo.u32 %r9, %r3, 100, %r2; sust.b.2d.b32.zero [%rd1, {%r2, %r3}], {%r9};", h, points)
	require.NoError(t, err)
	for y := range 7 {
		for x := range 7 {
			require.Equal(t, float64(100*y+4*x), contents(t, g, m, 0, 0, y, x, 0))
		}
	}
	// All threads add to the same cell.
	_, err = fetches(t, g, "mov.u32 %r2, 4; mov.u32 %r3, 0; sured.b.add.2d.u32.trap [%rd1, {%r2, %r3}], 3;", h, points)
	require.NoError(t, err)
	require.Equal(t, float64(4+3*64), contents(t, g, m, 0, 0, 0, 1, 0))
	// They store different values to one cell.
	_, err = fetches(t, g, "mov.u32 %r2, 4; mov.u32 %r3, 0; sust.b.2d.b32.trap [%rd1, {%r2, %r3}], {%r15};", h, points)
	faults(t, err, sim.Race)

	bytes := image(t, g, rng, sim.Image{Width: 64, Layers: 2, Type: ir.U8, Channels: 4})
	h, err = g.Surface(bytes)
	require.NoError(t, err)
	got, err := fetches(t, g, `shl.b32 %r2, %r15, 2; mov.u32 %r1, 1; cvt.u16.u32 %h1, %r15; mov.u16 %h2, 7; mov.u16 %h3, 8; mov.u16 %h4, 9;
		sust.b.a1d.v4.b8.trap [%rd1, {%r1, %r2}], {%h1, %h2, %h3, %h4}; suld.b.a1d.b32.trap %r5, [%rd1, {%r1, %r2}];
		suq.width.b32 %r6, [%rd1]; suq.array_size.b32 %r7, [%rd1]; istypep.surfref %p1, %rd1; selp.u32 %r8, 1, 0, %p1;`, h, points)
	require.NoError(t, err)
	for i := range points {
		require.Equal(t, []uint32{uint32(i) | 7<<8 | 8<<16 | 9<<24, 64, 2, 1}, got[4*i:4*i+4])
	}
	flat := image(t, g, rng, sim.Image{Width: 64, Type: ir.S8, Channels: 2})
	h, err = g.Surface(flat)
	require.NoError(t, err)
	got, err = fetches(t, g, `mov.u32 %r3, -300; sust.p.1d.v2.b32.trap [%rd1, {%r15}], {%r15, %r3}; shl.b32 %r2, %r15, 1;
		suld.b.1d.b16.trap %h1, [%rd1, {%r2}]; cvt.u32.u16 %r5, %h1;`, h, points)
	require.NoError(t, err)
	for i := range points {
		require.Equal(t, uint32(i)|0x80<<8, got[4*i])
	}
}

// Textures and samplers as variables of the module and as parameters.
func TestTextureVariables(t *testing.T) {
	g := sim.New(sim.Config{Checks: sim.AllChecks})
	m := sim.Image{Width: 4, Type: ir.F32, Channels: 1}
	data := upload(t, g, []uint32{math.Float32bits(1), math.Float32bits(2), math.Float32bits(4), math.Float32bits(8)})
	m.Addr = data
	load := func(src string) *sim.Module {
		mod, err := g.Load(module(t, src))
		require.NoError(t, err)
		return mod
	}
	run := func(mod *sim.Module, args ...any) ([]uint32, error) {
		k, err := mod.Kernel("k")
		require.NoError(t, err)
		out := upload(t, g, make([]uint32, 4))
		l := threads(1)
		l.Params, err = k.Pack(append([]any{out}, args...)...)
		require.NoError(t, err)
		if _, err := g.Run(context.Background(), k, l); err != nil {
			return nil, err
		}
		return words(t, g, out, 4), nil
	}
	h, err := g.Texture(m, sim.Sampler{Address: [3]sim.AddressMode{sim.Clamp}})
	require.NoError(t, err)
	const take = `.reg .f32 %f<9>; .reg .b32 %r<9>; .reg .b64 %o; ld.param.u64 %o, [out]; `
	unified := load(header + `.tex .u32 old; .global .texref tx;
		.entry k(.param .u64 out, .param .texref arg) {` + take + `
		tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [tx, {0f3FC00000}]; tex.1d.v4.f32.f32 {%f5, _, _, _}, [arg, 0f40600000];
		txq.width.b32 %r1, [tx]; txq.addr_mode_0.b32 %r2, [tx]; st.global.v2.f32 [%o], {%f1, %f5}; st.global.v2.u32 [%o+8], {%r1, %r2}; ret; }`)
	_, err = run(unified, h)
	require.Contains(t, faults(t, err, sim.BadOperand).Detail, "tx has not been bound")
	require.ErrorIs(t, unified.Bind("none", h), compute.ErrArgument)
	require.ErrorIs(t, unified.Bind("tx", h+99), compute.ErrArgument)
	require.NoError(t, unified.Bind("tx", h))
	got, err := run(unified, h)
	require.NoError(t, err)
	require.Equal(t, []uint32{math.Float32bits(2), math.Float32bits(8), 4, 1}, got)
	_, err = run(unified, uint64(77))
	require.Contains(t, faults(t, err, sim.BadOperand).Detail, "0x4d is no handle of a .texref")

	apart := load(".version 8.0\n.target sm_90, texmode_independent\n.address_size 64\n" + `.global .texref tx;
		.global .samplerref sa = {addr_mode_0 = clamp_to_edge, filter_mode = linear, force_unnormalized_coords = 1};
		.entry k(.param .u64 out, .param .u64 s) {` + take + `.reg .b64 %s; ld.param.u64 %s, [s];
		tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [tx, sa, {0f3F800000}]; tex.1d.v4.f32.f32 {%f5, _, _, _}, [tx, %s, {0f3F000000}];
		txq.filter_mode.b32 %r1, [sa]; txq.force_unnormalized_coords.b32 %r2, [sa];
		st.global.v2.f32 [%o], {%f1, %f5}; st.global.v2.u32 [%o+8], {%r1, %r2}; ret; }`)
	require.NoError(t, apart.Bind("tx", h))
	s := g.Sampler(sim.Sampler{Normalized: true})
	got, err = run(apart, s)
	require.NoError(t, err)
	require.Equal(t, []uint32{math.Float32bits(1.5), math.Float32bits(4), 1, 1}, got)
	require.NoError(t, g.Release(s))
	require.ErrorIs(t, g.Release(s), compute.ErrArgument)
	_, err = run(apart, s)
	faults(t, err, sim.BadOperand)
}

func TestTextureMistakes(t *testing.T) {
	g := sim.New(sim.Config{Checks: sim.AllChecks})
	addr, err := g.Alloc(64)
	require.NoError(t, err)
	good := sim.Image{Addr: addr, Width: 4, Type: ir.F32, Channels: 4}
	h, err := g.Texture(good, sim.Sampler{})
	require.NoError(t, err)
	points := make([]point, 64)
	_, err = fetches(t, g, "tex.1d.v4.f32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%f1}]; setp.eq.u32 %p1, %r5, 0; @%p1 mov.u32 %r5, 1;", h, points)
	require.Contains(t, faults(t, err, sim.Uninitialized).Error(), "nothing has written")
	for code, want := range map[string]string{
		"tex.2d.v4.f32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%f1, %f2}];": ".2d of an image of 4 × 0 × 0 texels",
		"tex.1d.v4.u32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%f1}];":      "texels of .f32 as .u32",
		"suld.b.1d.b32.trap {%r5}, [%rd1, {%r1}];":                    "is no handle of a .surfref",
	} {
		_, err = fetches(t, g, code, h, points)
		require.Contains(t, faults(t, err, sim.BadOperand).Detail, want)
	}
	for i, m := range []sim.Image{
		{Addr: addr, Width: 4, Type: ir.F64, Channels: 1}, {Addr: addr, Width: 4, Type: ir.F32, Channels: 3}, {Addr: addr, Type: ir.F32, Channels: 1},
		{Addr: addr, Width: 4, Depth: 2, Type: ir.F32, Channels: 1}, {Addr: addr, Width: 4, Height: 4, Layers: 5, Cube: true, Type: ir.U8, Channels: 1},
		{Addr: addr, Width: 4, Height: 4, Pitch: 8, Type: ir.F32, Channels: 1}, {Addr: addr + 2, Width: 4, Type: ir.F32, Channels: 1},
	} {
		_, err := g.Texture(m, sim.Sampler{})
		require.ErrorIs(t, err, compute.ErrArgument, fmt.Sprint(i))
		_, err = g.Surface(m)
		require.ErrorIs(t, err, compute.ErrArgument, fmt.Sprint(i))
	}
	_, err = g.Texture(sim.Image{Addr: addr, Width: 4, Type: ir.U8, Channels: 1}, sim.Sampler{Linear: true})
	require.ErrorIs(t, err, compute.ErrArgument)
	// An image that is larger than its memory.
	h, err = g.Texture(sim.Image{Addr: addr, Width: 4, Height: 9, Type: ir.F32, Channels: 1}, sim.Sampler{Address: [3]sim.AddressMode{1, 1}})
	require.NoError(t, err)
	_, err = fetches(t, g, "mov.f32 %f2, 0f41000000; tex.2d.v4.f32.f32 {%r5, %r6, %r7, %r8}, [%rd1, {%f1, %f2}];", h, points)
	faults(t, err, sim.OutOfBounds)
}
