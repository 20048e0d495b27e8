//go:build !js

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/onnx"
)

// contentType is what a file may contain.
type contentType struct {
	Description string `json:"description"`
	MIME        string `json:"mime_type"`
	Text        bool   `json:"is_text"`
	label       string
	score       float32 // how sure the model is, up to 1
}

// detector is Magika's model with what its files say of it.
type detector struct {
	Begin      int                `json:"beg_size"` // bytes of a file that the model sees
	End        int                `json:"end_size"`
	Block      int                `json:"block_size"`           // of which they are taken, without white space
	Least      int                `json:"min_file_size_for_dl"` // bytes of a file that the model can judge
	Padding    int32              `json:"padding_token"`
	Labels     []string           `json:"target_labels_space"`
	Thresholds map[string]float32 `json:"thresholds"` // of scores from which on a label is believed
	Threshold  float32            `json:"medium_confidence_threshold"`
	Overwrite  map[string]string  `json:"overwrite_map"`
	types      map[string]contentType
	model      *onnx.Model
	session    *onnx.Session
	in, out    string
}

func openDetector(ctx context.Context, dev *wavelane.Device, folder string) (*detector, error) {
	d := &detector{}
	for name, v := range map[string]any{"config.min.json": d, "content_types_kb.min.json": &d.types} {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%w (examples/filetype/fetch gets it)", err)
		}
		if err == nil {
			err = json.Unmarshal(data, v)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	var err error
	if d.model, err = onnx.Open(filepath.Join(folder, "model.onnx")); err != nil {
		return nil, err
	}
	d.in, d.out = d.model.Inputs()[0].Name, d.model.Outputs()[0].Name
	if d.session, err = d.model.Session(ctx, dev); err != nil {
		d.model.Close()
		return nil, err
	}
	return d, nil
}

func (d *detector) close() error { return errors.Join(d.session.Close(), d.model.Close()) }

// detect tells what files contain, in one run of the model.
func (d *detector) detect(ctx context.Context, files []string) ([]contentType, error) {
	found := make([]contentType, len(files))
	var input []int32
	var asked []int // files that the model is asked about
	for i, name := range files {
		begin, end, size, err := d.ends(name)
		if err != nil {
			return nil, err
		}
		first := bytes.TrimLeft(begin, space)
		switch {
		case size == 0:
			found[i] = d.typeOf("empty", 1)
		case size < int64(d.Least) || len(first) < d.Least:
			label := "unknown"
			if utf8.Valid(begin) {
				label = "txt"
			}
			found[i] = d.typeOf(label, 1)
		default:
			input = d.features(input, first, bytes.TrimRight(end, space))
			asked = append(asked, i)
		}
	}
	if len(asked) == 0 {
		return found, nil
	}
	out, err := d.session.Run(ctx, map[string]onnx.Tensor{d.in: onnx.Of(input, len(asked), d.Begin+d.End)})
	if err != nil {
		return nil, err
	}
	scores, err := onnx.Elements[float32](out[d.out])
	if err != nil {
		return nil, err
	}
	if len(scores) != len(asked)*len(d.Labels) {
		return nil, fmt.Errorf("the model gives %v scores for %d labels", out[d.out].Shape, len(d.Labels))
	}
	for k, i := range asked {
		found[i] = d.judge(scores[k*len(d.Labels):][:len(d.Labels)])
	}
	return found, nil
}

// space is what Python's bytes.strip removes.
const space = " \t\n\r\v\f"

// ends reads the first and the last block of a file.
func (d *detector) ends(name string) (begin, end []byte, size int64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, 0, fmt.Errorf("%s is no regular file", name)
	}
	size = info.Size()
	n := min(size, int64(d.Block))
	begin, end = make([]byte, n), make([]byte, n)
	_, err = f.ReadAt(begin, 0)
	if err == nil || err == io.EOF {
		_, err = f.ReadAt(end, size-n)
	}
	if err != nil && err != io.EOF {
		return nil, nil, 0, err
	}
	return begin, end, size, nil
}

// features appends what the model sees of a file: bytes, and a number of its own where there are fewer.
func (d *detector) features(input []int32, begin, end []byte) []int32 {
	begin, end = begin[:min(len(begin), d.Begin)], end[max(0, len(end)-d.End):]
	numbers := func(data []byte) {
		for _, b := range data {
			input = append(input, int32(b))
		}
	}
	padding := func(n int) {
		for range n {
			input = append(input, d.Padding)
		}
	}
	numbers(begin)
	padding(d.Begin - len(begin))
	padding(d.End - len(end))
	numbers(end)
	return input
}

// judge takes the best label if the model is sure enough of it, else only whether it is text.
func (d *detector) judge(scores []float32) contentType {
	best := 0
	for i, s := range scores {
		if s > scores[best] {
			best = i
		}
	}
	label := d.Labels[best]
	enough, ok := d.Thresholds[label]
	if !ok {
		enough = d.Threshold
	}
	if other, ok := d.Overwrite[label]; ok {
		label = other
	}
	if scores[best] < enough {
		if d.types[label].Text {
			label = "txt"
		} else {
			label = "unknown"
		}
	}
	return d.typeOf(label, scores[best])
}

func (d *detector) typeOf(label string, score float32) contentType {
	t := d.types[label]
	if t.Description == "" {
		t.Description = label
	}
	t.label, t.score = label, score
	return t
}
