//go:build !js

package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

// model is the file that the demo site reads.
type model struct {
	Note     string   `json:"note"`
	Widths   []int    `json:"widths"`
	Accuracy float64  `json:"accuracy"` // of these weights on the digits held out
	Samples  []sample `json:"samples"`  // the first digit of each class among those
	// Weights are each layer's weights [in, out] and bias [out], Float16 bits, little endian; in JSON, base64.
	Weights []byte `json:"weights"`
}

type sample struct {
	Label   int32 `json:"label"`
	Picture []int `json:"picture"`
}

// pack reads the network's parameters and rounds them to Float16.
func (n *network) pack(ctx context.Context) ([]byte, error) {
	b := batch.New(n.dev)
	var halves []*batch.Result
	for _, p := range n.parameters() {
		halves = append(halves, b.Read(b.Cast(b.Import(p), compute.Float16)))
	}
	if err := b.Run(ctx); err != nil {
		return nil, err
	}
	var packed []byte
	for _, half := range halves {
		for _, bits := range half.F16s() {
			packed = binary.LittleEndian.AppendUint16(packed, uint16(bits))
		}
	}
	return packed, nil
}

// unpack makes a network of packed parameters.
func unpack(ctx context.Context, dev *wavelane.Device, packed []byte) (*network, error) {
	var all [][]float32
	for i, in := range widths[:len(widths)-1] {
		for _, size := range []int{in * widths[i+1], widths[i+1]} {
			if len(packed) < 2*size {
				return nil, fmt.Errorf("weights end within layer %d", i+1)
			}
			half := make([]compute.F16, size)
			for j := range half {
				half[j] = compute.F16(binary.LittleEndian.Uint16(packed[2*j:]))
			}
			packed = packed[2*size:]
			value := make([]float32, size)
			if err := dev.Cast(ctx, value, compute.Of(half), compute.CastOptions{To: compute.Float32}); err != nil {
				return nil, err
			}
			all = append(all, value)
		}
	}
	if len(packed) > 0 {
		return nil, fmt.Errorf("weights are followed by %d bytes", len(packed))
	}
	return upload(ctx, dev, all)
}

// save writes the model. Its accuracy is that of the rounded weights.
func (n *network) save(ctx context.Context, file string, held []digit) error {
	m := model{Note: "written by examples/digits", Widths: widths}
	var err error
	if m.Weights, err = n.pack(ctx); err != nil {
		return err
	}
	rounded, err := unpack(ctx, n.dev, m.Weights)
	if err != nil {
		return err
	}
	defer rounded.Close()
	if m.Accuracy, err = rounded.accuracy(ctx, held); err != nil {
		return err
	}
	for class := range int32(classes) {
		d := held[slices.IndexFunc(held, func(d digit) bool { return d.label == class })]
		s := sample{Label: class}
		for _, v := range d.picture {
			s.Picture = append(s.Picture, int(v))
		}
		m.Samples = append(m.Samples, s)
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
