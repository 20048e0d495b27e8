//go:build !js

package main

import (
	"image"
	"image/color"
	"math"
)

// scene paints a landscape, for runs without a photograph at hand: smooth gradients, noise at all scales and hard edges, as a
// camera would deliver them. It is the same on every run.
func scene(w, h int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	horizon := 0.62
	for py := range h {
		for px := range w {
			x, y := float64(px)/float64(h), float64(py)/float64(h) // units of the height
			right := float64(w) / float64(h)
			var c rgb
			if y < horizon {
				c = land(x, y, right, horizon)
			} else { // the lake mirrors the land, broken by ripples that grow towards the shore
				depth := (y - horizon) / (1 - horizon)
				ripple := noise(x*6, y*90, 3) - 0.5
				mirrored := horizon - (y-horizon)*1.5 + ripple*0.05*depth
				c = land(x+ripple*0.02, max(mirrored, 0), right, horizon).mix(rgb{0.05, 0.16, 0.22}, 0.35+0.3*depth)
				c = c.add(0.18 * depth * max(ripple, 0))
			}
			c = c.add((hash(px, py) - 0.5) * 0.02) // the sensor's own noise
			img.SetNRGBA(px, py, c.color())
		}
	}
	return img
}

// land is the scene above the water line: sky with a sun and clouds, two ridges, a shore with houses.
func land(x, y, right, horizon float64) rgb {
	c := rgb{0.30, 0.52, 0.80}.mix(rgb{0.98, 0.82, 0.62}, math.Pow(y/horizon, 1.6))
	sun := math.Hypot(x-0.72*right, y-0.2)
	if sun < 0.05 {
		c = rgb{1, 0.96, 0.85}
	}
	c = c.add(0.25 * math.Exp(-sun*7))
	cloud := fbm(x*2.2, y*6, 5)
	c = c.mix(rgb{0.97, 0.95, 0.95}, smooth(0.52, 0.72, cloud)*smooth(horizon, 0.1, y))

	if ridge := 0.20 + 0.32*(1-ridged(x*1.7, 6)); y > ridge {
		below := y - ridge
		rock := fbm(x*14+below*6, y*18, 6)
		c = rgb{0.34, 0.37, 0.46}.add(0.55 * (rock - 0.5))
		snow := smooth(0.10, 0.0, below-0.10*(rock-0.4)) * smooth(0.45, 0.3, ridge)
		c = c.mix(rgb{0.95, 0.96, 1}, snow)
		c = c.mix(rgb{0.80, 0.76, 0.74}, 0.35*y/horizon) // haze
	}
	if ridge := 0.50 - 0.10*fbm(x*3+9, 2, 5) + 0.012*noise(x*120, 4, 0); y > ridge {
		c = rgb{0.10, 0.24, 0.13}.add(0.30 * (fbm(x*40, y*40, 4) - 0.5)) // the forest
	}
	for i := range 5 {
		at := right * (0.12 + 0.19*float64(i) + 0.05*hash(i, 3))
		c = house(c, x-at, horizon-0.005-y, 0.05+0.03*hash(i, 5), hash(i, 7))
	}
	return c
}

// house draws over c a house of width 2r around x = 0 standing on y = 0, y upward.
func house(c rgb, x, y, r, tint float64) rgb {
	wall, roof := r*1.1, r*0.9
	switch {
	case y < 0 || math.Abs(x) > r*1.15:
		return c
	case y < wall && math.Abs(x) < r:
		u, v := math.Mod(x/r*2.5+5.5, 1), math.Mod(y/wall*2, 1)
		if u > 0.3 && u < 0.75 && v > 0.3 && v < 0.75 {
			return rgb{0.13, 0.16, 0.22}
		}
		return rgb{0.85, 0.78 - 0.2*tint, 0.66 - 0.3*tint}.add(0.1 * (fbm(x*90, y*90, 3) - 0.5))
	case y >= wall && y < wall+roof*(1-math.Abs(x)/(r*1.15)):
		tiles := 0.08 * math.Abs(math.Sin(y/r*30))
		return rgb{0.55 - 0.15*tint, 0.23, 0.18}.add(tiles - 0.04)
	}
	return c
}

type rgb [3]float64

func (c rgb) mix(d rgb, t float64) rgb {
	t = min(max(t, 0), 1)
	for i := range c {
		c[i] += t * (d[i] - c[i])
	}
	return c
}

func (c rgb) add(v float64) rgb {
	for i := range c {
		c[i] += v
	}
	return c
}

func (c rgb) color() color.NRGBA {
	b := func(v float64) uint8 { return uint8(min(max(v, 0), 1)*255 + 0.5) }
	return color.NRGBA{b(c[0]), b(c[1]), b(c[2]), 255}
}

// smooth rises from 0 at a to 1 at b, or falls where b < a.
func smooth(a, b, v float64) float64 {
	t := min(max((v-a)/(b-a), 0), 1)
	return t * t * (3 - 2*t)
}

// hash returns a number in [0, 1) that looks random.
func hash(x, y int) float64 {
	h := uint32(x)*0x9E3779B1 ^ uint32(y)*0x85EBCA77
	h = (h ^ h>>15) * 0x2C1B3C6D
	h = (h ^ h>>12) * 0x297A2D39
	return float64(h^h>>15) / (1 << 32)
}

// noise is value noise: hashes at integer places, smoothly interpolated. Layers are independent of each other.
func noise(x, y float64, layer int) float64 {
	fx, fy := math.Floor(x), math.Floor(y)
	u, v := smooth(0, 1, x-fx), smooth(0, 1, y-fy)
	at := func(i, j int) float64 { return hash(int(fx)+i+1009*layer, int(fy)+j) }
	top := at(0, 0) + u*(at(1, 0)-at(0, 0))
	bottom := at(0, 1) + u*(at(1, 1)-at(0, 1))
	return top + v*(bottom-top)
}

// fbm sums octaves of noise, each twice as fine and half as strong as the one before; in [0, 1).
func fbm(x, y float64, octaves int) float64 {
	sum, total, strength := 0.0, 0.0, 1.0
	for i := range octaves {
		sum += strength * noise(x, y, i)
		total += strength
		x, y, strength = 2*x, 2*y, strength/2
	}
	return sum / total
}

// ridged is noise of one dimension with sharp crests, as mountains have.
func ridged(x float64, octaves int) float64 {
	sum, total, strength := 0.0, 0.0, 1.0
	for i := range octaves {
		sum += strength * (1 - math.Abs(2*noise(x, 0.5, 20+i)-1))
		total += strength
		x, strength = 2.1*x, strength/2
	}
	return sum / total
}
