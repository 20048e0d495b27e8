//go:build !js

package main

import (
	"image"
	"math"
)

// bitmap is a picture as three planes of numbers from 0 to 255: blue, green, red, as the models take them.
type bitmap struct {
	w, h   int
	planes [3][]float32
}

func newBitmap(w, h int) *bitmap {
	b := &bitmap{w: w, h: h}
	for c := range b.planes {
		b.planes[c] = make([]float32, w*h)
	}
	return b
}

// bitmapOf is a picture on white.
func bitmapOf(p image.Image) *bitmap {
	r := p.Bounds()
	b := newBitmap(r.Dx(), r.Dy())
	for y := range b.h {
		for x := range b.w {
			red, green, blue, alpha := p.At(r.Min.X+x, r.Min.Y+y).RGBA()
			rest := 0xffff - alpha
			for c, v := range [3]uint32{blue, green, red} {
				b.planes[c][y*b.w+x] = float32(v+rest) / 257
			}
		}
	}
	return b
}

// at is the colour between pixels; beyond the edge it is that of the edge.
func (b *bitmap) at(x, y float64, colour *[3]float32) {
	x, y = min(max(x, 0), float64(b.w-1)), min(max(y, 0), float64(b.h-1))
	x0, y0 := int(x), int(y)
	x1, y1 := min(x0+1, b.w-1), min(y0+1, b.h-1)
	fx, fy := float32(x-float64(x0)), float32(y-float64(y0))
	for c := range colour {
		p := b.planes[c]
		top := p[y0*b.w+x0]*(1-fx) + p[y0*b.w+x1]*fx
		bottom := p[y1*b.w+x0]*(1-fx) + p[y1*b.w+x1]*fx
		colour[c] = top*(1-fy) + bottom*fy
	}
}

// sampled makes a picture of another whose pixels are where the function says. Where pixels are farther apart than one, it takes the mean of
// several.
func (b *bitmap) sampled(w, h int, where func(x, y float64) point, apart float64) *bitmap {
	out := newBitmap(w, h)
	n := max(1, min(8, int(math.Round(apart))))
	var colour, sum [3]float32
	for y := range h {
		for x := range w {
			sum = [3]float32{}
			for sy := range n {
				for sx := range n {
					p := where(float64(x)+(float64(sx)+0.5)/float64(n), float64(y)+(float64(sy)+0.5)/float64(n))
					b.at(p.x-0.5, p.y-0.5, &colour)
					for c := range sum {
						sum[c] += colour[c]
					}
				}
			}
			for c := range sum {
				out.planes[c][y*w+x] = sum[c] / float32(n*n)
			}
		}
	}
	return out
}

// resized is the picture in another size.
func (b *bitmap) resized(w, h int) *bitmap {
	sx, sy := float64(b.w)/float64(w), float64(b.h)/float64(h)
	return b.sampled(w, h, func(x, y float64) point { return point{x * sx, y * sy} }, max(sx, sy))
}

// turned is the picture upside down.
func (b *bitmap) turned() *bitmap {
	out := newBitmap(b.w, b.h)
	for c, p := range b.planes {
		for i, v := range p {
			out.planes[c][len(p)-1-i] = v
		}
	}
	return out
}

// input is the picture as models take it, from −1 to 1, in a frame of width w whose rest is 0.
func (b *bitmap) input(w int) []float32 {
	out := make([]float32, 3*b.h*w)
	for c, p := range b.planes {
		for y := range b.h {
			for x := range min(w, b.w) {
				out[(c*b.h+y)*w+x] = p[y*b.w+x]/127.5 - 1
			}
		}
	}
	return out
}

// crop is the part of the picture in a rectangle; one that is much higher than wide is text that runs down, and is turned.
func (b *bitmap) crop(r rectangle) *bitmap {
	w, h := max(1, int(math.Round(r.w))), max(1, int(math.Round(r.h)))
	u, v := r.axis, point{-r.axis.y, r.axis.x}
	if r.h >= 1.5*r.w { // from the bottom up
		w, h = h, w
		u, v = point{-v.x, -v.y}, u
	}
	return b.sampled(w, h, func(x, y float64) point {
		x, y = x-float64(w)/2, y-float64(h)/2
		return point{r.center.x + x*u.x + y*v.x, r.center.y + x*u.y + y*v.y}
	}, 1)
}
