//go:build !js

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane"
)

// model is a folder with the files of the package that scripts/setup installs for the tests of package onnx.
func model(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("scripts/setup installs the models on linux/amd64")
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	folder := t.TempDir()
	for _, pattern := range []string{"models/*/model.onnx", "models/*/config.min.json", "config/content_types_kb.min.json"} {
		found, err := filepath.Glob(filepath.Join(cache, "wavelane", "onnx-*", "lib", "python*", "site-packages", "magika", pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found, "scripts/setup test installs the models")
		require.NoError(t, os.Symlink(found[0], filepath.Join(folder, filepath.Base(found[0]))))
	}
	return folder
}

// contents are files of known types, made by their own encoders or from this repository.
func contents(t *testing.T) map[string][]byte {
	t.Helper()
	var asPNG, asJPEG, asGIF, asZip, asTar, asGzip bytes.Buffer
	picture := image.NewGray(image.Rect(0, 0, 200, 100))
	for i := range picture.Pix {
		picture.Pix[i] = uint8(i * i / 97)
	}
	require.NoError(t, png.Encode(&asPNG, picture))
	require.NoError(t, jpeg.Encode(&asJPEG, picture, nil))
	require.NoError(t, gif.Encode(&asGIF, picture, nil))
	source, err := os.ReadFile("detector.go")
	require.NoError(t, err)
	z := zip.NewWriter(&asZip)
	f, err := z.Create("detector.go")
	require.NoError(t, err)
	_, err = f.Write(source)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	a := tar.NewWriter(&asTar)
	require.NoError(t, a.WriteHeader(&tar.Header{Name: "detector.go", Mode: 0o600, Size: int64(len(source))}))
	_, err = a.Write(source)
	require.NoError(t, err)
	require.NoError(t, a.Close())
	g := gzip.NewWriter(&asGzip)
	_, err = g.Write(source)
	require.NoError(t, err)
	require.NoError(t, g.Close())
	asJSON, err := json.MarshalIndent(map[string]any{"name": "filetype", "sizes": []int{1, 2, 3}, "nested": map[string]any{"yes": true, "no": nil}}, "", "  ")
	require.NoError(t, err)
	script, err := os.ReadFile("../../scripts/fetch-wheel")
	require.NoError(t, err)
	text, err := os.ReadFile("../../docs/onnx.md")
	require.NoError(t, err)
	page, err := os.ReadFile("../../wasm/site/index.html")
	require.NoError(t, err)
	return map[string][]byte{"png": asPNG.Bytes(), "jpeg": asJPEG.Bytes(), "gif": asGIF.Bytes(), "zip": asZip.Bytes(), "tar": asTar.Bytes(),
		"gzip": asGzip.Bytes(), "go": source, "json": asJSON, "shell": script, "markdown": text, "html": page,
		"empty": nil, "txt": []byte("short"), "unknown": {0xff, 0xfe, 0x80, 1}}
}

// The model tells known contents on every device, whatever their names are.
func TestTypes(t *testing.T) {
	folder, files := t.TempDir(), []string{}
	all := contents(t)
	labels := slices.Sorted(maps.Keys(all))
	for i, label := range labels {
		files = append(files, filepath.Join(folder, fmt.Sprint(i)))
		require.NoError(t, os.WriteFile(files[i], all[label], 0o600))
	}
	from := model(t)
	for _, opts := range [][]wavelane.Option{{wavelane.WithDevice("cpu")}, {wavelane.WithDevice("gpu"), wavelane.WithSoftware()},
		{wavelane.WithDevice("cuda"), wavelane.WithSoftware()}} {
		dev, err := wavelane.Open(t.Context(), opts...)
		require.NoError(t, err)
		d, err := openDetector(t.Context(), dev, from)
		require.NoError(t, err)
		some := len(files)
		if dev.Info().Backend == "cuda" {
			some = 5 // its software GPU takes its time
		}
		found, err := d.detect(t.Context(), files[:some])
		require.NoError(t, err)
		for i, c := range found {
			require.Equal(t, labels[i], c.label, "%s: %v", dev.Info().Name, c)
		}
		require.NoError(t, d.close())
		require.NoError(t, dev.Close())
	}
}

func TestCommand(t *testing.T) {
	from := model(t)
	call := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := run(context.Background(), append([]string{"-device", "cpu", "-model", from}, args...), &out, t.Output())
		return out.String(), err
	}
	out, err := call("main.go", "../../go.mod")
	require.NoError(t, err)
	require.Regexp(t, `main\.go +Golang source +text/x-golang +\d+ %`, out)
	for _, c := range []struct {
		args []string
		says string
	}{{nil, "no file"}, {[]string{"missing"}, "missing"}, {[]string{t.TempDir()}, "no regular file"}, {[]string{"-model", t.TempDir(), "main.go"}, "fetch"}} {
		_, err := call(c.args...)
		require.ErrorContains(t, err, c.says)
	}
}
