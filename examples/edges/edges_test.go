//go:build !js

package main

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// square is white on black, with edges at known places.
func square() image.Image {
	img := image.NewGray(image.Rect(5, 7, 45, 37)) // an origin other than 0, 0
	for y := 17; y < 27; y++ {
		for x := 20; x < 30; x++ {
			img.SetGray(x, y, color.Gray{Y: 255})
		}
	}
	return img
}

func write(t *testing.T, name string, data []byte) string {
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, data, 0o600))
	return file
}

func TestEdgesOfASquare(t *testing.T) {
	var asPNG, asJPEG, asGIF bytes.Buffer
	require.NoError(t, png.Encode(&asPNG, square()))
	require.NoError(t, jpeg.Encode(&asJPEG, square(), &jpeg.Options{Quality: 95}))
	require.NoError(t, gif.Encode(&asGIF, square(), nil))
	for name, data := range map[string][]byte{"a.png": asPNG.Bytes(), "a.jpg": asJPEG.Bytes(), "a.gif": asGIF.Bytes()} {
		for _, software := range []bool{false, true} {
			out := filepath.Join(t.TempDir(), "out.png")
			var text bytes.Buffer
			require.NoError(t, run(t.Context(), options{file: write(t, name, data), out: out, software: software, runs: 1}, &text))
			require.Contains(t, text.String(), "40 × 30 pixels")
			require.Contains(t, text.String(), "one submit per operation")

			img, err := load(out)
			require.NoError(t, err)
			require.Equal(t, image.Rect(0, 0, 40, 30), img.Bounds())
			grey := func(x, y int) uint8 { return color.GrayModel.Convert(img.At(x, y)).(color.Gray).Y }
			require.Greater(t, grey(15, 15), uint8(200), "the square's left edge")
			require.Greater(t, grey(20, 10), uint8(200), "the square's top edge")
			require.Less(t, grey(20, 15), uint8(60), "the square's middle")
			for _, corner := range [][2]int{{0, 0}, {39, 0}, {0, 29}, {39, 29}} {
				require.Less(t, grey(corner[0], corner[1]), uint8(20), "the frame is no edge")
			}
		}
	}
}

func TestUniformPicture(t *testing.T) {
	var data bytes.Buffer
	require.NoError(t, png.Encode(&data, image.NewGray(image.Rect(0, 0, 1, 1))))
	out := filepath.Join(t.TempDir(), "out.png")
	require.NoError(t, run(t.Context(), options{file: write(t, "one.png", data.Bytes()), out: out, runs: 1}, &bytes.Buffer{}))
	img, err := load(out)
	require.NoError(t, err)
	require.Equal(t, color.Gray{}, img.At(0, 0), "nothing is divided by zero")
}

func TestBadFiles(t *testing.T) {
	var data bytes.Buffer
	require.NoError(t, png.Encode(&data, square()))
	for _, file := range []string{
		filepath.Join(t.TempDir(), "missing.png"),
		t.TempDir(),
		write(t, "empty.png", nil),
		write(t, "text.jpg", []byte("not a picture")),
		write(t, "cut.png", data.Bytes()[:data.Len()/2]),
	} {
		err := run(t.Context(), options{file: file, out: filepath.Join(t.TempDir(), "out.png"), runs: 1}, &bytes.Buffer{})
		require.ErrorContains(t, err, file)
	}
	good := write(t, "good.png", data.Bytes())
	require.Error(t, run(t.Context(), options{file: good, out: filepath.Join(t.TempDir(), "no", "out.png"), runs: 1}, &bytes.Buffer{}))
}

func TestParse(t *testing.T) {
	for _, args := range [][]string{{"in.jpg", "-o", "x.png"}, {"-o", "x.png", "in.jpg"}} {
		o, err := parse(args)
		require.NoError(t, err)
		require.Equal(t, "in.jpg", o.file)
		require.Equal(t, "x.png", o.out)
	}
	for _, args := range [][]string{{"a", "b"}, {"-runs", "0"}, {"-nonsense"}, {"-o"}, {"a", "-input", "b"}} {
		_, err := parse(args)
		require.Error(t, err, "%v", args)
	}
}
