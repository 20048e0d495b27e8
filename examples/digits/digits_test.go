//go:build !js

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/internal/testseed"
)

// TestTrain trains for a few epochs: the loss falls and the weights that are written recognise what the network does.
func TestTrain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "digits.json")
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, options{epochs: 8, seed: testseed.Of(t), out: file, every: 8}, wavelane.WithDevice("cpu")))
	t.Log(out.String())

	var losses []float64
	for _, m := range regexp.MustCompile(`epoch +(\d+): loss ([\d.]+)`).FindAllStringSubmatch(out.String(), -1) {
		loss, err := strconv.ParseFloat(m[2], 64)
		require.NoError(t, err)
		losses = append(losses, loss)
	}
	require.Len(t, losses, 3)
	require.Less(t, losses[0], 2.6, "at first the network guesses: ln 10")
	require.Less(t, losses[2], 0.7*losses[0])

	m := read(t, file)
	require.Greater(t, m.Accuracy, 0.7)
	require.Contains(t, out.String(), "held out")
	require.Error(t, run(t.Context(), &out, options{}))
}

// TestCommittedWeights holds the demo site's file against the digits that its training has not seen.
func TestCommittedWeights(t *testing.T) {
	file := filepath.Join("..", "..", "wasm", "site", "digits.json")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.LessOrEqual(t, info.Size(), int64(60<<10))
	m := read(t, file)
	require.Equal(t, widths, m.Widths)

	dev, err := wavelane.Open(t.Context(), wavelane.WithDevice("cpu"))
	require.NoError(t, err)
	defer dev.Close()
	n, err := unpack(t.Context(), dev, m.Weights)
	require.NoError(t, err)
	defer n.Close()
	train, held, err := load()
	require.NoError(t, err)
	require.Len(t, train, 1437)
	accuracy, err := n.accuracy(t.Context(), held)
	require.NoError(t, err)
	require.GreaterOrEqual(t, accuracy, 0.96)
	require.InDelta(t, m.Accuracy, accuracy, 1.5/heldOut, "the file says so too")

	require.Len(t, m.Samples, classes)
	var samples []digit
	for i, s := range m.Samples {
		require.EqualValues(t, i, s.Label)
		d := digit{label: s.Label}
		for j, v := range s.Picture {
			d.picture[j] = float32(v)
		}
		samples = append(samples, d)
	}
	found, err := n.classify(t.Context(), samples)
	require.NoError(t, err)
	for i, d := range samples {
		require.Equal(t, d.label, found[i], fmt.Sprint("sample ", i))
	}

	_, err = unpack(t.Context(), dev, m.Weights[:len(m.Weights)-1])
	require.Error(t, err)
	_, err = unpack(t.Context(), dev, append(m.Weights, 0))
	require.Error(t, err)
}

func read(t *testing.T, file string) model {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var m model
	require.NoError(t, json.Unmarshal(text, &m))
	return m
}
