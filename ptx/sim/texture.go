package sim

import (
	"fmt"
	"strings"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

// Image is memory that textures and surfaces see as an array of texels: what CUDA calls an array, or linear memory bound to a
// texture. Texels lie in rows from x = 0, rows in slices, slices in layers, each after the one before.
type Image struct {
	Addr uint64 // from Alloc; see Size
	// Width, Height and Depth are in texels; 0 where the image has no such dimension.
	Width, Height, Depth int
	// Layers is 0 for an image without layers. The faces of a cube are six layers: +x, -x, +y, -y, +z, -z.
	Layers int
	Cube   bool
	Pitch  int // bytes from row to row; 0: no gaps
	// Type is that of a channel: U8, S8, U16, S16, U32, S32, F16 or F32. There are 1, 2 or 4 channels.
	Type     ir.Type
	Channels int
}

// texel is the number of bytes of one.
func (m *Image) texel() int { return m.Type.Size() * m.Channels }

func (m *Image) pitch() int {
	if m.Pitch != 0 {
		return m.Pitch
	}
	return m.Width * m.texel()
}

// Size is the number of bytes of the image.
func (m *Image) Size() int { return m.pitch() * max(1, m.Height) * max(1, m.Depth) * max(1, m.Layers) }

// AddressMode says what lies outside of a texture.
type AddressMode uint8

// The modes. Wrap and Mirror are for normalized coordinates only and stand for Clamp otherwise.
const (
	Wrap   AddressMode = iota // the texture again and again
	Clamp                     // its last texel
	Mirror                    // the texture again and again, every second one mirrored
	Border                    // a fixed color
)

// Sampler is how a texture is read. Its zero value reads the nearest texel, by coordinates that count texels.
type Sampler struct {
	Linear     bool           // interpolates between the nearest texels, with 8 bits of the fraction as GPUs do
	Address    [3]AddressMode // of x, y and z
	Normalized bool           // coordinates go from 0 to 1
	// Fractions makes integers of 8 and 16 bits numbers from 0 to 1, or from -1 to 1.
	Fractions bool
	Border    [4]float32
}

// texture is what a handle stands for.
type texture struct {
	kind    ir.Type // TexRef, SamplerRef or SurfRef
	image   Image
	sampler Sampler
}

// textures are those of a GPU, by handle.
type textures struct {
	mu   sync.RWMutex
	all  map[uint64]*texture
	next uint64
}

// textureWindow is where handles begin: no memory is there.
const textureWindow = 5 << 40

// Texture returns the handle of a texture object: what kernels take as cudaTextureObject_t, and what [Module.Bind] takes. The
// memory has to stay allocated as long as kernels use the handle. Errors wrap [compute.ErrArgument].
func (g *GPU) Texture(m Image, s Sampler) (uint64, error) {
	if err := m.check(); err != nil {
		return 0, fmt.Errorf("sim: Texture: %w", err)
	}
	if integer := !m.Type.IsFloat(); integer && (s.Linear && !s.Fractions || s.Fractions && m.Type.Bits() > 16) {
		return 0, fmt.Errorf("sim: Texture: .%s texels cannot be interpolated, or made fractions: %w", m.Type, compute.ErrArgument)
	}
	return g.handle(&texture{ir.TexRef, m, s}), nil
}

// Surface returns the handle of a surface object.
func (g *GPU) Surface(m Image) (uint64, error) {
	if err := m.check(); err != nil {
		return 0, fmt.Errorf("sim: Surface: %w", err)
	}
	return g.handle(&texture{kind: ir.SurfRef, image: m}), nil
}

// Sampler returns the handle of a sampler, for kernels in texmode_independent, which name texture and sampler apart.
func (g *GPU) Sampler(s Sampler) uint64 { return g.handle(&texture{kind: ir.SamplerRef, sampler: s}) }

// Release ends the use of a handle.
func (g *GPU) Release(handle uint64) error {
	g.tex.mu.Lock()
	defer g.tex.mu.Unlock()
	if g.tex.all[handle] == nil {
		return fmt.Errorf("sim: Release of %#x, which is no texture, surface or sampler: %w", handle, compute.ErrArgument)
	}
	delete(g.tex.all, handle)
	return nil
}

func (g *GPU) handle(t *texture) uint64 {
	g.tex.mu.Lock()
	defer g.tex.mu.Unlock()
	if g.tex.all == nil {
		g.tex.all = map[uint64]*texture{}
	}
	g.tex.next++
	h := textureWindow + g.tex.next
	g.tex.all[h] = t
	return h
}

func (m *Image) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), compute.ErrArgument)
	}
	switch m.Type {
	case ir.U8, ir.S8, ir.U16, ir.S16, ir.U32, ir.S32, ir.F16, ir.F32:
	default:
		return bad("texels of .%s", m.Type)
	}
	const most = 1 << 27
	switch {
	case m.Channels != 1 && m.Channels != 2 && m.Channels != 4:
		return bad("%d channels, want 1, 2 or 4", m.Channels)
	case m.Width < 1 || m.Height < 0 || m.Depth < 0 || m.Layers < 0 || m.Depth > 0 && m.Height == 0 ||
		max(m.Width, m.Height, m.Depth, m.Layers) > most || float64(m.Width)*float64(max(1, m.Height))*float64(max(1, m.Depth))*float64(max(1, m.Layers)) > 1<<34:
		return bad("an image of %d × %d × %d texels in %d layers", m.Width, m.Height, m.Depth, m.Layers)
	case m.Depth > 0 && m.Layers > 0:
		return bad("layers of three dimensions")
	case m.Cube && (m.Height != m.Width || m.Layers == 0 || m.Layers%6 != 0):
		return bad("a cube of %d × %d texels in %d layers, want squares and a multiple of 6 layers", m.Width, m.Height, m.Layers)
	case m.Pitch != 0 && m.Pitch < m.Width*m.texel() || m.Pitch%m.texel() != 0:
		return bad("rows of %d texels of %d bytes every %d bytes", m.Width, m.texel(), m.Pitch)
	case m.Addr%uint64(m.texel()) != 0:
		return bad("address %#x is no multiple of the texel's %d bytes", m.Addr, m.texel())
	}
	return nil
}

// Bind makes a variable of type .texref, .samplerref or .surfref stand for the object of a handle, which has to be of that kind.
func (m *Module) Bind(name string, handle uint64) error {
	v := moduleVar(m.ir, name)
	s := m.globals[name]
	t := m.gpu.texture(handle)
	if v == nil || s == nil || !v.Type.IsOpaque() || t == nil || t.kind != v.Type {
		return fmt.Errorf("sim: Bind of %q to %#x: want a .texref, .samplerref or .surfref of the module, and a handle of its kind: %w",
			name, handle, compute.ErrArgument)
	}
	m.gpu.mu.Lock()
	defer m.gpu.mu.Unlock()
	store(s.data, 8, handle)
	return nil
}

func (g *GPU) texture(handle uint64) *texture {
	g.tex.mu.RLock()
	defer g.tex.mu.RUnlock()
	return g.tex.all[handle]
}

// samplerOf is what the declaration of a sampler says.
func samplerOf(fields []string) (Sampler, error) {
	var s Sampler
	for _, f := range fields {
		name, value, _ := strings.Cut(f, " = ")
		switch {
		case name == "filter_mode":
			s.Linear = value == "linear"
		case strings.HasPrefix(name, "addr_mode_") && len(name) == 11 && name[10] >= '0' && name[10] <= '2':
			mode, ok := map[string]AddressMode{"wrap": Wrap, "mirror": Mirror, "clamp_ogl": Clamp, "clamp_to_edge": Clamp,
				"clamp_to_border": Border}[value]
			if !ok {
				return s, fmt.Errorf("%s: %w", f, compute.ErrArgument)
			}
			s.Address[name[10]-'0'] = mode
		case name == "normalized_coords":
			s.Normalized = value != "0"
		case name == "force_unnormalized_coords":
			s.Normalized = value == "0"
		}
	}
	return s, nil
}
