//go:build !js

package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"github.com/wavelane/wavelane"
)

// models is the folder into which scripts/setup has the models installed for the tests of package onnx.
func models(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("scripts/setup installs the models on linux/amd64")
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	found, err := filepath.Glob(filepath.Join(cache, "wavelane", "onnx-*", "lib", "python*", "site-packages", "rapidocr_onnxruntime", "models"))
	require.NoError(t, err)
	require.NotEmpty(t, found, "scripts/setup test installs the models")
	return found[0]
}

// page is a picture of text that the test paints.
type page struct {
	name  string
	lines []string
	size  float64
	ttf   []byte
	turn  float64 // degrees, to the right
	ink   color.Color
	paper color.Color
}

var pages = []page{
	{"plain", []string{"The quick brown fox", "jumps over the lazy dog", "1234567890"}, 32, goregular.TTF, 0, color.Black, color.White},
	{"small", []string{"Invoice No. 20417", "Total amount: 318.50 EUR", "Payable within 30 days"}, 18, goregular.TTF, 0, color.Black, color.White},
	{"German", []string{"Guten Morgen, liebe Leute", "Heute scheint die Sonne", "und morgen kommt Regen"}, 28, goregular.TTF, 0, color.RGBA{20, 20, 90, 255}, color.RGBA{250, 245, 220, 255}},
	{"aslant", []string{"This page was scanned", "a little bit aslant"}, 30, goregular.TTF, 6, color.Black, color.White},
	{"upside down", []string{"Turn me around", "and read me again"}, 36, gomono.TTF, 180, color.White, color.RGBA{40, 60, 40, 255}},
}

func (p page) paint(t *testing.T) image.Image {
	t.Helper()
	f, err := opentype.Parse(p.ttf)
	require.NoError(t, err)
	face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: p.size, DPI: 72, Hinting: font.HintingNone})
	require.NoError(t, err)
	width := 0
	for _, l := range p.lines {
		width = max(width, font.MeasureString(face, l).Ceil())
	}
	margin, step := int(2*p.size), int(1.8*p.size)
	flat := image.NewRGBA(image.Rect(0, 0, width+2*margin, len(p.lines)*step+2*margin))
	draw.Draw(flat, flat.Bounds(), image.NewUniform(p.paper), image.Point{}, draw.Src)
	for i, l := range p.lines {
		d := font.Drawer{Dst: flat, Src: image.NewUniform(p.ink), Face: face, Dot: fixed.P(margin, margin+i*step+int(p.size))}
		d.DrawString(l)
	}
	if p.turn == 0 {
		return flat
	}
	b := bitmapOf(flat)
	s, c := math.Sincos(p.turn * math.Pi / 180)
	out := image.NewRGBA(flat.Bounds())
	cx, cy := float64(b.w)/2, float64(b.h)/2
	var colour [3]float32
	for y := range b.h {
		for x := range b.w {
			dx, dy := float64(x)+0.5-cx, float64(y)+0.5-cy
			b.at(cx+c*dx+s*dy-0.5, cy-s*dx+c*dy-0.5, &colour)
			out.Set(x, y, color.RGBA{uint8(colour[2]), uint8(colour[1]), uint8(colour[0]), 255})
		}
	}
	return out
}

// distance is the number of characters to change, insert or remove.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		last := row[0]
		row[0] = i + 1
		for j := range y {
			cost := last
			if x[i] != y[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(y)]
}

// read reads a page on a device.
func (p page) read(t *testing.T, r *reader) string {
	t.Helper()
	lines, err := r.read(context.Background(), p.paint(t))
	require.NoError(t, err)
	var text []string
	for _, l := range lines {
		text = append(text, l.text)
	}
	return strings.Join(text, "\n")
}

func openOn(t *testing.T, opts ...wavelane.Option) *reader {
	t.Helper()
	dev, err := wavelane.Open(t.Context(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { dev.Close() })
	r, err := openReader(t.Context(), dev, models(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.close()) })
	return r
}

// withoutSpaces is a text as it is compared: the model leaves out some of the spaces between words.
func withoutSpaces(s string) string { return strings.ReplaceAll(s, " ", "") }

// Of the characters on five pages, 99 of a hundred are read.
func TestPages(t *testing.T) {
	r := openOn(t, wavelane.WithDevice("cpu"))
	wrong, all := 0, 0
	for _, p := range pages {
		want, got := withoutSpaces(strings.Join(p.lines, "\n")), withoutSpaces(p.read(t, r))
		d := distance(got, want)
		t.Logf("%s: %d of %d characters wrong:\n%s", p.name, d, len(want), got)
		wrong, all = wrong+d, all+len(want)
	}
	t.Logf("%d of %d characters wrong", wrong, all)
	require.LessOrEqual(t, wrong*100, all)
}

// WebGPU reads what the CPU reads: one page, all of them in make proofs.
func TestWebGPU(t *testing.T) {
	onCPU, onGPU := openOn(t, wavelane.WithDevice("cpu")), openOn(t, wavelane.WithDevice("gpu"), wavelane.WithSoftware())
	some := pages[:1]
	if os.Getenv("WAVELANE_PROOFS") == "all" {
		some = pages
	}
	for _, p := range some {
		require.Equal(t, p.read(t, onCPU), p.read(t, onGPU))
	}
}

// CUDA's software GPU, which takes its time, reads one word.
func TestCUDA(t *testing.T) {
	onCPU, onGPU := openOn(t, wavelane.WithDevice("cpu")), openOn(t, wavelane.WithDevice("cuda"), wavelane.WithSoftware())
	p := page{"word", []string{"Wave 42"}, 20, goregular.TTF, 0, color.Black, color.White}
	want := p.read(t, onCPU)
	require.Equal(t, "Wave42", withoutSpaces(want))
	require.Equal(t, want, p.read(t, onGPU))
}

func TestCommand(t *testing.T) {
	folder := models(t)
	var file bytes.Buffer
	require.NoError(t, png.Encode(&file, pages[0].paint(t)))
	path := filepath.Join(t.TempDir(), "page.png")
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o600))
	var out, errOut bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-device", "cpu", "-models", folder, "-places", path}, &out, &errOut))
	require.Equal(t, len(pages[0].lines), strings.Count(out.String(), "\n"), out.String())
	require.Contains(t, errOut.String(), fmt.Sprintf("%d lines", len(pages[0].lines)))
	require.Error(t, run(t.Context(), nil, &out, &errOut))
	require.ErrorContains(t, run(t.Context(), []string{"-device", "cpu", "-models", t.TempDir(), path}, &out, &errOut), "fetch")
	require.Error(t, run(t.Context(), []string{"-device", "cpu", "-models", folder, "nothing.png"}, &out, &errOut))
}
