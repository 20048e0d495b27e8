package site

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/browser"
)

const pictureWidth = 240

// settings are the controls of the picture panel. A threshold of 0 is none.
type settings struct {
	brightness, contrast float32
	blur, edges          bool
	threshold            float32
}

// native is the site's pipeline on this machine's CPU: from pixels to pixels, red, green, blue and alpha.
func native(t *testing.T, pixels []byte, w, h int, s settings) []byte {
	dev, err := cpu.Open(context.Background())
	require.NoError(t, err)
	defer dev.Close()
	margin := 0
	if s.blur {
		margin += 2
	}
	if s.edges {
		margin++
	}
	planes := make([]float32, 0, 3*(w+2*margin)*(h+2*margin))
	for c := range 3 {
		for y := -margin; y < h+margin; y++ {
			for x := -margin; x < w+margin; x++ {
				at := min(max(y, 0), h-1)*w + min(max(x, 0), w-1)
				planes = append(planes, float32(pixels[4*at+c])/255)
			}
		}
	}

	b := batch.New(dev)
	x := b.Upload(planes, 1, 3, h+2*margin, w+2*margin)
	x = b.Clip(b.Add(b.Mul(x, b.Scalar(s.contrast)), b.Scalar(0.5-0.5*s.contrast+s.brightness)), 0, 1)
	if s.blur {
		var weights []float32
		for range 3 {
			for _, p := range []float32{1, 4, 6, 4, 1} {
				for _, q := range []float32{1, 4, 6, 4, 1} {
					weights = append(weights, p*q/256)
				}
			}
		}
		x = b.Conv2D(x, b.Upload(weights, 3, 1, 5, 5), compute.Conv2DOptions{Groups: 3})
	}
	grey := s.edges || s.threshold > 0
	if grey {
		x = b.Conv2D(x, b.Upload([]float32{0.299, 0.587, 0.114}, 1, 3, 1, 1))
	}
	if s.edges {
		dx := b.Conv2D(x, b.Upload([]float32{-1, 0, 1, -2, 0, 2, -1, 0, 1}, 1, 1, 3, 3))
		dy := b.Conv2D(x, b.Upload([]float32{-1, -2, -1, 0, 0, 0, 1, 2, 1}, 1, 1, 3, 3))
		x = b.Sqrt(b.Add(b.Mul(dx, dx), b.Mul(dy, dy)))
	}
	result := b.Read(x)
	require.NoError(t, b.Run(t.Context()))
	values := result.Float32s()

	out := make([]byte, 4*w*h)
	for i := range w * h {
		for c := range 3 {
			v := values[i]
			if !grey {
				v = values[c*w*h+i]
			}
			if s.threshold > 0 {
				if v > s.threshold {
					v = 1
				} else {
					v = 0
				}
			}
			out[4*i+c] = byte(min(max(v, 0), 1)*255 + 0.5)
		}
		out[4*i+3] = 255
	}
	return out
}

// differing is the share of bytes that differ by more than a tolerance.
func differing(a, b []byte, tolerance int) float64 {
	if len(a) != len(b) {
		return 1
	}
	n := 0
	for i := range a {
		if d := int(a[i]) - int(b[i]); d > tolerance || -d > tolerance {
			n++
		}
	}
	return float64(n) / float64(len(a))
}

// checkPicture sets the controls, waits for a frame that was computed with them, and compares it.
func checkPicture(s site, want settings) {
	s.t.Helper()
	s.set("picture-brightness", want.brightness)
	s.set("picture-contrast", want.contrast)
	s.set("picture-blur", want.blur)
	s.set("picture-edges", want.edges)
	s.set("picture-binary", want.threshold > 0)
	label := fmt.Sprintf("brightness %v, contrast %v", want.brightness, want.contrast)
	if want.blur {
		label += ", blur"
	}
	if want.edges {
		label += ", edges"
	}
	if want.threshold > 0 {
		s.set("picture-threshold", want.threshold)
		label += fmt.Sprintf(", threshold %v", want.threshold)
	}
	s.Wait(s.t, fmt.Sprintf(`document.getElementById("picture-result").ariaLabel.endsWith(%q) && document.getElementById("picture-result").width === %d`, ": "+label, pictureWidth))
	source, result := s.pixels("picture-source"), s.pixels("picture-result")
	h := len(source) / 4 / pictureWidth
	expected := native(s.t, source, pictureWidth, h, want)
	if want.threshold > 0 { // what lies on the threshold may fall to either side
		require.Less(s.t, differing(result, expected, 0), 0.002, "%+v", want)
	} else {
		require.Zero(s.t, differing(result, expected, 1), "%+v", want)
	}
	require.Greater(s.t, spread(result), 40, "there is something to see: %+v", want)
}

// spread is between the darkest and the brightest red.
func spread(pixels []byte) int {
	low, high := 255, 0
	for i := 0; i < len(pixels); i += 4 {
		low, high = min(low, int(pixels[i])), max(high, int(pixels[i]))
	}
	return high - low
}

func testPicture(s site) {
	s.set("picture-width", pictureWidth)
	for _, want := range []settings{
		{contrast: 1, blur: true, edges: true},
		{contrast: 1.4, brightness: 0.1},
		{contrast: 1, brightness: -0.2, blur: true},
		{contrast: 1, edges: true},
		{contrast: 1, threshold: 0.5},
		{contrast: 0.8, blur: true, edges: true, threshold: 0.2},
	} {
		checkPicture(s, want)
	}
	require.Regexp(s.t, `240 × 160, 17 operations in one batch: frame [\d.,]+ ms`, s.text("#picture-time"))

	still := s.pixels("picture-source")
	s.set("picture-move", true)
	s.Wait(s.t, `/median of ([5-9]|\d\d)/.test(document.getElementById("picture-time").textContent)`)
	s.set("picture-move", false)
	require.NotEqual(s.t, still, s.pixels("picture-source"))
	checkPicture(s, settings{contrast: 1.1, blur: true, edges: true})
	require.Equal(s.t, still, s.pixels("picture-source"), "it is where it was")
}

func testCamera(s site) {
	s.Click(s.t, "#picture-camera") // the browser makes up a camera
	s.wait("picture-camera", "Stop the camera")
	before := s.pixels("picture-source")
	s.Wait(s.t, `/median of ([3-9]|\d\d)/.test(document.getElementById("picture-time").textContent)`)
	require.NotEqual(s.t, before, s.pixels("picture-source"), "it moves")
	s.Click(s.t, "#picture-camera")
	s.wait("picture-camera", "^Camera$")

	s.Exec(s.t, `navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("Permission denied", "NotAllowedError"))`)
	s.Click(s.t, "#picture-camera")
	s.wait("picture-status", "may not use the camera: allow it")
	s.Exec(s.t, `delete navigator.mediaDevices.getUserMedia`)
	s.Click(s.t, "#picture-builtin")
	require.Equal(s.t, "", s.text("#picture-status"))
}

func testFile(s site) {
	img := image.NewGray(image.Rect(0, 0, 60, 80))
	for y := range 80 {
		for x := 30; x < 60; x++ {
			img.SetGray(x, y, color.Gray{Y: 200})
		}
	}
	file := filepath.Join(s.t.TempDir(), "halves.png")
	f, err := os.Create(file)
	require.NoError(s.t, err)
	require.NoError(s.t, png.Encode(f, img))
	require.NoError(s.t, f.Close())
	require.NoError(s.t, chromedp.Do(s.Context(), chromedp.SetUploadFiles(chromedp.CSS("#picture-file"), []string{file})))
	s.wait("picture-status", "halves.png, 60 × 80")
	s.Wait(s.t, `document.getElementById("picture-result").height === 320`)
	checkPicture(s, settings{contrast: 1, blur: true, edges: true})

	bad := filepath.Join(s.t.TempDir(), "text.png")
	require.NoError(s.t, os.WriteFile(bad, []byte("no picture"), 0o600))
	require.NoError(s.t, chromedp.Do(s.Context(), chromedp.SetUploadFiles(chromedp.CSS("#picture-file"), []string{bad})))
	s.wait("picture-status", "text.png is no picture")

	s.Exec(s.t, `{
		const data = new DataTransfer();
		data.items.add(new File(["no picture"], "dropped.txt"));
		document.getElementById("picture-drop").dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
	}`)
	s.wait("picture-status", "dropped.txt is no picture")
	s.Click(s.t, "#picture-builtin")
	s.Wait(s.t, `document.getElementById("picture-result").height === 160`)
	require.Equal(s.t, "true", strings.TrimSpace(browser.Eval[string](s.t, s.Page, `document.getElementById("picture-builtin").ariaPressed`)))
}

// mandelbrot is the playground's example.
func mandelbrot(size int) []byte {
	out := make([]byte, 4*size*size)
	for i := range size * size {
		cx := 2.6*float32(i%size)/float32(size) - 1.95
		cy := 2.6*float32(i/size)/float32(size) - 1.3
		var x, y float32
		n := 0
		for n < 120 && x*x+y*y < 4 {
			x, y = x*x-y*y+cx, 2*x*y+cy
			n++
		}
		v := byte(255*math.Sqrt(float64(n)/120) + 0.5)
		out[4*i], out[4*i+1], out[4*i+2], out[4*i+3] = v, v, v, 255
	}
	return out
}
