//go:build !js

package main

import (
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the README's picture")

// The README shows the demo's picture and what the demo makes of it, reduced.
func TestReadmePicture(t *testing.T) {
	const file, part, width, height = "../../docs/edges.png", 4, 384, 256
	dir := t.TempDir()
	o := options{input: filepath.Join(dir, "in.png"), out: filepath.Join(dir, "out.png"), device: "cpu", runs: 1}
	require.NoError(t, run(t.Context(), o, t.Output()))
	want := image.NewRGBA(image.Rect(0, 0, 2*width, height))
	for i, name := range []string{o.input, o.out} {
		img, err := load(name)
		require.NoError(t, err)
		require.Equal(t, image.Pt(part*width, part*height), img.Bounds().Size())
		for y := range height {
			for x := range width {
				var sum [3]uint32
				for k := range part * part {
					r, g, b, _ := img.At(x*part+k%part, y*part+k/part).RGBA()
					for c, v := range []uint32{r, g, b} {
						sum[c] += v >> 8
					}
				}
				const n = part * part
				want.SetRGBA(i*width+x, y, color.RGBA{R: uint8(sum[0] / n), G: uint8(sum[1] / n), B: uint8(sum[2] / n), A: 255})
			}
		}
	}
	if *update {
		f, err := os.Create(file)
		require.NoError(t, err)
		require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(f, want))
		require.NoError(t, f.Close())
	}
	stored, err := load(file)
	require.NoError(t, err)
	got := image.NewRGBA(want.Bounds())
	draw.Draw(got, got.Bounds(), stored, image.Point{}, draw.Src)
	most := 0
	for i, v := range want.Pix {
		most = max(most, int(v)-int(got.Pix[i]), int(got.Pix[i])-int(v))
	}
	require.LessOrEqual(t, most, 2, "stale: go test ./examples/edges -run TestReadmePicture -update") // instruction sets round differently
}
