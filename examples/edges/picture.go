//go:build !js

package main

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/gif"
	_ "image/jpeg"
	"image/png"
	"os"
)

// margin is how far the blur and the Sobel filters reach around a pixel, together.
const margin = 3

// planes is a picture as the pipeline takes it: red, green and blue one after the other, each h+2·margin rows of w+2·margin
// values in [0, 1]. The margin repeats the outermost pixels, so that the frame of the picture is no edge.
type planes struct {
	pix  []float32
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
	p.pix = make([]float32, 3*w*h)
	for y := range h {
		sy := r.Min.Y + min(max(y-margin, 0), p.h-1)
		for x := range w {
			sx := r.Min.X + min(max(x-margin, 0), p.w-1)
			red, green, blue, _ := img.At(sx, sy).RGBA()
			for c, v := range [3]uint32{red, green, blue} {
				p.pix[(c*h+y)*w+x] = float32(v) / 0xffff
			}
		}
	}
	return p
}

// save writes values in [0, 1] as a grey picture.
func save(name string, pix []float32, w int) error {
	img := image.NewGray(image.Rect(0, 0, w, len(pix)/w))
	for i, v := range pix {
		img.SetGray(i%w, i/w, color.Gray{Y: uint8(min(max(v, 0), 1)*255 + 0.5)})
	}
	return encode(name, img)
}

func encode(name string, img image.Image) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(png.Encode(f, img), f.Close())
}
