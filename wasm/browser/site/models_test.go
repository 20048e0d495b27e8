package site

import (
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/browser"
	"github.com/wavelane/wavelane/wasm/internal/jstest"
)

// testModels opens models and runs them, on noise and on a picture.
func testModels(s site) {
	dir := jstest.Models(s.t)
	choose := func(id, file string) {
		require.NoError(s.t, chromedp.Do(s.Context(), chromedp.SetUploadFiles(chromedp.CSS("#"+id), []string{file})))
	}
	results := func() string { return s.text("#models-results") }

	choose("models-file", filepath.Join(dir, "layer.onnx"))
	s.wait("models-status", "^layer.onnx on .*noise")
	require.Contains(s.t, s.text("#models-inputs"), "rows, 3")
	s.Exec(s.t, `{ const e = document.querySelector("#models-sizes input"); e.value = 4; }`)
	s.Click(s.t, "#models-run")
	s.wait("models-status", "^Run on noise: .* ms")
	require.Contains(s.t, results(), "[4, 2]")
	require.Contains(s.t, results(), "int64")
	s.Exec(s.t, `{ const e = document.querySelector("#models-sizes input"); e.value = 0.5; }`)
	s.Click(s.t, "#models-run")
	s.wait("models-status", "no shape")

	choose("models-file", filepath.Join(dir, "means.onnx"))
	s.wait("models-status", "^means.onnx on .*picture")
	s.Exec(s.t, `for (const e of document.querySelectorAll("#models-sizes input")) e.value = 16`)
	img := image.NewRGBA(image.Rect(0, 0, 20, 10))
	for i := range 200 {
		img.SetRGBA(i%20, i/20, color.RGBA{R: 255, G: 51, A: 255})
	}
	picture := filepath.Join(dir, "plain.png")
	f, err := os.Create(picture)
	require.NoError(s.t, err)
	require.NoError(s.t, png.Encode(f, img))
	require.NoError(s.t, f.Close())
	choose("models-picture", picture)
	s.wait("models-status", "^Run on the picture: .* ms")
	require.Contains(s.t, results(), "1.00, -0.600, -1.00")
	require.Equal(s.t, []string{"0", "1", "2"}, browser.Eval[[]string](s.t, s.Page, `[...document.querySelectorAll("#models-bars .name")].map((e) => e.textContent)`))

	choose("models-file", picture)
	s.wait("models-status", "ArgumentError.*not a valid ONNX model")
	choose("models-picture", filepath.Join(dir, "layer.onnx"))
	s.wait("models-status", "layer.onnx is no picture")
	s.Click(s.t, "#models-run")
	s.wait("models-status", "^Run on the picture") // the model before stays
}
