//go:build !js

package main

import (
	"fmt"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"os"
	"slices"

	"golang.org/x/image/draw"

	"github.com/wavelane/wavelane/onnx"
)

// pictureFlags say how bytes of pictures become a model's floats.
type pictureFlags struct {
	scale     float64
	mean, std []float64
}

// tensor is a picture file as an input of the model: one or three channels, which come before the pixels or after them. Shape is
// that of --shape, or nil; dimensions that neither it nor the model gives are the picture's.
func (f *pictureFlags) tensor(file string, v onnx.Value, shape []int) (onnx.Tensor, error) {
	r, err := os.Open(file)
	if err != nil {
		return onnx.Tensor{}, err
	}
	defer r.Close()
	img, _, err := image.Decode(r)
	if err != nil {
		return onnx.Tensor{}, fmt.Errorf("%s: neither a .npy file nor a PNG, JPEG or GIF picture: %w", file, err)
	}
	if v.Type != onnx.Float32 && v.Type != onnx.Uint8 {
		return onnx.Tensor{}, usagef("input %q takes %v: a picture can be float32 or uint8", v.Name, v.Type)
	}
	if shape == nil {
		shape = v.Sizes()
	}
	shape = slices.Clone(shape)
	n := len(shape)
	few := func(axis int) bool { return shape[axis] == 1 || shape[axis] == 3 }
	if n != 3 && n != 4 || n == 4 && shape[0] > 1 || !few(n-3) && !few(n-1) {
		return onnx.Tensor{}, usagef("input %q is %v: a picture can be 1 × 3 × height × width or 1 × height × width × 3, or have 1 channel; "+
			"--shape says which if the model does not", v.Name, v.Shape)
	}
	if n == 4 {
		shape[0] = 1
	}
	channel, height, width := n-3, n-2, n-1
	if !few(channel) {
		channel, height, width = n-1, n-3, n-2
	}
	for axis, d := range map[int]int{height: img.Bounds().Dy(), width: img.Bounds().Dx()} {
		if shape[axis] <= 0 {
			shape[axis] = d
		}
	}
	channels, w, h := shape[channel], shape[width], shape[height]
	for name, list := range map[string][]float64{"--mean": f.mean, "--std": f.std} {
		if len(list) != 0 && len(list) != 1 && len(list) != channels {
			return onnx.Tensor{}, usagef("%s has %d numbers: give one for all channels, or %d", name, len(list), channels)
		}
		if name == "--std" && slices.Contains(list, 0) {
			return onnx.Tensor{}, usagef("--std is 0")
		}
	}
	pixels := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.CatmullRom.Scale(pixels, pixels.Bounds(), img, img.Bounds(), draw.Src, nil)

	bytes := make([]uint8, channels*w*h)
	perPixel, perChannel := 1, w*h
	if channel == n-1 {
		perPixel, perChannel = channels, 1
	}
	for i := range w * h {
		p := pixels.Pix[4*i : 4*i+3]
		if channels == 1 {
			p = []uint8{uint8((299*uint32(p[0]) + 587*uint32(p[1]) + 114*uint32(p[2]) + 500) / 1000)} // ITU-R BT.601
		}
		for c, v := range p {
			bytes[i*perPixel+c*perChannel] = v
		}
	}
	if v.Type == onnx.Uint8 {
		return onnx.Of(bytes, shape...), nil
	}
	of := func(list []float64, c int, otherwise float64) float64 {
		switch len(list) {
		case 0:
			return otherwise
		case 1:
			c = 0
		}
		return list[c]
	}
	data := make([]float32, len(bytes))
	for i, x := range bytes {
		c := i / perChannel % channels
		data[i] = float32((float64(x)*f.scale - of(f.mean, c, 0)) / of(f.std, c, 1))
	}
	return onnx.Of(data, shape...), nil
}
