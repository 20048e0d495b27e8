//go:build !js

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

// texture is how a VALUE says that a buffer is a texture or a surface.
type texture struct {
	surface                bool
	layers, cube, channels bool // what the shape has besides the extents
	sampler                sim.Sampler
}

// parseImage reads texture+linear:ARRAY by its words before the colon and what follows.
func parseImage(words []string, rest, dir string, rng *rand.Rand) (value, error) {
	m := &texture{surface: words[0] == "surface"}
	modes := map[string]sim.AddressMode{"wrap": sim.Wrap, "clamp": sim.Clamp, "mirror": sim.Mirror, "border": sim.Border}
	flags := map[string]*bool{"layers": &m.layers, "cube": &m.cube, "channels": &m.channels, "linear": &m.sampler.Linear,
		"normalized": &m.sampler.Normalized, "fractions": &m.sampler.Fractions}
	m.sampler.Address = [3]sim.AddressMode{sim.Clamp, sim.Clamp, sim.Clamp}
	for _, w := range words[1:] {
		mode, isMode := modes[w]
		switch flag := flags[w]; {
		case isMode:
			m.sampler.Address = [3]sim.AddressMode{mode, mode, mode}
		case flag != nil:
			*flag = true
		default:
			return value{}, fmt.Errorf("there is no %q of a %s: 'wavelane ptx run --help' lists what there is", w, words[0])
		}
	}
	if m.surface && m.sampler != (sim.Sampler{Address: m.sampler.Address}) {
		return value{}, errors.New("a surface is read as it is, without a sampler")
	}
	v, err := parseValue(rest, dir, rng)
	switch {
	case err != nil:
		return value{}, err
	case !v.array && v.buffer == "" || v.image != nil:
		return value{}, fmt.Errorf("%q is no array, such as zeros:f32:64x64 or x.npy, and no name of a buffer", rest)
	}
	v.image = m
	return v, nil
}

// of is the image that a buffer at an address is.
func (m *texture) of(address uint64, b *value) (sim.Image, error) {
	shape, texels := b.shape, sim.Image{Addr: address, Type: b.typ, Channels: 1, Cube: m.cube}
	bad := fmt.Errorf("an array of shape %v is no such image", b.shape)
	if m.channels {
		if len(shape) < 2 {
			return sim.Image{}, bad
		}
		shape, texels.Channels = shape[:len(shape)-1], shape[len(shape)-1]
	}
	if m.layers || m.cube {
		if len(shape) < 2 {
			return sim.Image{}, bad
		}
		texels.Layers, shape = shape[0], shape[1:]
	}
	switch len(shape) {
	case 1:
		texels.Width = shape[0]
	case 2:
		texels.Height, texels.Width = shape[0], shape[1]
	case 3:
		texels.Depth, texels.Height, texels.Width = shape[0], shape[1], shape[2]
	default:
		return sim.Image{}, bad
	}
	return texels, nil
}

// memory is where a plan's buffers are on a GPU.
type memory struct {
	plan      *plan
	gpu       *sim.GPU
	addresses map[string]uint64
}

// pointer is what a kernel gets for a buffer: its address, or the handle of an image of it.
func (m *memory) pointer(v *value) (uint64, error) {
	a, ok := m.addresses[v.buffer]
	if !ok {
		return 0, m.plan.noBuffer(v.buffer)
	}
	if v.image == nil {
		return a, nil
	}
	b := m.plan.values[v.buffer]
	texels, err := v.image.of(a, &b)
	switch {
	case err != nil:
		return 0, err
	case v.image.surface:
		return m.gpu.Surface(texels)
	}
	return m.gpu.Texture(texels, v.image.sampler)
}

// bind makes a .texref or .surfref of a module stand for an image.
func (m *memory) bind(module *sim.Module, name string, v *value) error {
	if v.image == nil || v.buffer == "" {
		return errors.New("want an image of a named buffer, such as texture+linear:x, see --buffer")
	}
	handle, err := m.pointer(v)
	if err != nil {
		return err
	}
	return module.Bind(name, handle)
}

// isReference tells whether a module's variable is a .texref or .surfref.
func isReference(m *ir.Module, name string) bool {
	for i := range m.Vars {
		if m.Vars[i].Name == name {
			return m.Vars[i].Type.IsOpaque()
		}
	}
	return false
}
