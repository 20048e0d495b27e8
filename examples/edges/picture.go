//go:build !js

package main

import (
	"errors"
	"fmt"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	"image/png"
	"os"
)

// margin is how far the blur and the Sobel filters reach around a pixel, together.
const margin = 3

// planes is a picture as the pipeline takes it: red, green and blue one after the other, each h+2·margin rows of w+2·margin
// bytes. The margin repeats the outermost pixels, so that the frame of the picture is no edge.
type planes struct {
	pix  []uint8
	w, h int // without the margin
}

func load(name string) (image.Image, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	img, _, err := image.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: not a PNG, JPEG or GIF picture: %w", name, err)
	}
	if img.Bounds().Empty() {
		return nil, fmt.Errorf("%s: the picture has no pixels", name)
	}
	return img, nil
}

func toPlanes(img image.Image) planes {
	r := img.Bounds()
	p := planes{w: r.Dx(), h: r.Dy()}
	w, h := p.w+2*margin, p.h+2*margin
	p.pix = make([]uint8, 3*w*h)
	for y := range h {
		sy := r.Min.Y + min(max(y-margin, 0), p.h-1)
		for x := range w {
			sx := r.Min.X + min(max(x-margin, 0), p.w-1)
			red, green, blue, _ := img.At(sx, sy).RGBA()
			for c, v := range [3]uint32{red, green, blue} {
				p.pix[(c*h+y)*w+x] = uint8(v >> 8)
			}
		}
	}
	return p
}

// save writes a grey picture.
func save(name string, pix []uint8, w int) error {
	return encode(name, &image.Gray{Pix: pix, Stride: w, Rect: image.Rect(0, 0, w, len(pix)/w)})
}

func encode(name string, img image.Image) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(png.Encode(f, img), f.Close())
}
