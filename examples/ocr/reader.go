//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/onnx"
)

// The files of the models.
const (
	detectionFile   = "ch_PP-OCRv4_det_infer.onnx"
	orientationFile = "ch_ppocr_mobile_v2.0_cls_infer.onnx"
	recognitionFile = "ch_PP-OCRv4_rec_infer.onnx"
)

const (
	longestSide = 960 // of a picture whose text is looked for
	textPixel   = 0.3 // least probability of a pixel that belongs to text
	textPlace   = 0.5 // and of the mean of a place
	grow        = 1.6 // places are grown by their area times this, by their circumference: the model marks the middle of lines
	lineHeight  = 48  // of lines to read
	lineStep    = 64  // widths of lines are multiples of it, so that few shapes are compiled
	leastLine   = 320
	turnWidth   = 192 // of lines whose orientation is looked for
	sureTurned  = 0.9
	sureText    = 0.5 // least mean confidence of the characters of a line
)

// reader reads text in pictures.
type reader struct {
	models     []*onnx.Model
	sessions   []*onnx.Session // detection, orientation, recognition
	characters []string        // by number, of which 0 separates characters
}

// line is a line of text.
type line struct {
	text       string
	confidence float64
	place      rectangle
}

func openReader(ctx context.Context, dev *wavelane.Device, folder string) (*reader, error) {
	r := &reader{}
	for _, file := range []string{detectionFile, orientationFile, recognitionFile} {
		m, err := onnx.Open(filepath.Join(folder, file))
		if err != nil {
			r.close()
			return nil, fmt.Errorf("%w (examples/ocr/fetch fetches the models)", err)
		}
		r.models = append(r.models, m)
		s, err := m.Session(ctx, dev)
		if err != nil {
			r.close()
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		r.sessions = append(r.sessions, s)
	}
	list := r.models[2].Metadata()["character"]
	if list == "" {
		r.close()
		return nil, fmt.Errorf("%s does not say its characters", recognitionFile)
	}
	r.characters = append(append([]string{""}, strings.Split(list, "\n")...), " ")
	return r, nil
}

func (r *reader) close() error {
	var errs []error
	for _, s := range r.sessions {
		errs = append(errs, s.Close())
	}
	for _, m := range r.models {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// run executes a model of one input and one output.
func (r *reader) run(ctx context.Context, i int, data []float32, shape ...int) ([]float32, []int, error) {
	in, out := r.models[i].Inputs()[0].Name, r.models[i].Outputs()[0].Name
	results, err := r.sessions[i].Run(ctx, map[string]onnx.Tensor{in: onnx.Of(data, shape...)})
	if err != nil {
		return nil, nil, err
	}
	y, err := onnx.Elements[float32](results[out])
	return y, results[out].Shape, err
}

// read returns the lines of text, from top to bottom.
func (r *reader) read(ctx context.Context, p image.Image) ([]line, error) {
	picture := bitmapOf(p)
	if picture.w < 1 || picture.h < 1 {
		return nil, nil
	}
	places, err := r.places(ctx, picture)
	if err != nil {
		return nil, fmt.Errorf("detection: %w", err)
	}
	var lines []line
	upsideDown := 0
	for _, place := range places {
		part := picture.crop(place)
		turned, err := r.upsideDown(ctx, part)
		if err != nil {
			return nil, fmt.Errorf("orientation: %w", err)
		}
		if turned {
			part = part.turned()
			upsideDown++
		}
		l := line{place: place}
		if l.text, l.confidence, err = r.text(ctx, part); err != nil {
			return nil, fmt.Errorf("recognition: %w", err)
		}
		if l.text != "" && l.confidence >= sureText {
			lines = append(lines, l)
		}
	}
	if 2*upsideDown > len(places) { // the whole picture is
		slices.Reverse(lines)
	}
	return lines, nil
}

// places finds rectangles with text, in the order of reading.
func (r *reader) places(ctx context.Context, picture *bitmap) ([]rectangle, error) {
	scale := min(1, longestSide/float64(max(picture.w, picture.h)))
	side := func(n int) int { return max(32, int(math.Round(float64(n)*scale/32))*32) }
	w, h := side(picture.w), side(picture.h)
	data := picture.resized(w, h).input(w)
	probability, _, err := r.run(ctx, 0, data, 1, 3, h, w)
	if err != nil {
		return nil, err
	}
	if len(probability) != w*h {
		return nil, fmt.Errorf("%d probabilities for %d × %d pixels", len(probability), w, h)
	}
	var places []rectangle
	sx, sy := float64(picture.w)/float64(w), float64(picture.h)/float64(h)
	for _, island := range islands(probability, w, h) {
		mean := 0.0
		points := make([]point, len(island))
		for i, at := range island {
			mean += float64(probability[at]) / float64(len(island))
			points[i] = point{(float64(at%w) + 0.5) * sx, (float64(at/w) + 0.5) * sy}
		}
		place := smallest(points)
		if mean < textPlace || min(place.w/sx, place.h/sy) < 2 {
			continue
		}
		more := 2 * place.w * place.h * grow / (2 * (place.w + place.h))
		place.w, place.h = place.w+more, place.h+more
		places = append(places, place)
	}
	slices.SortFunc(places, func(a, b rectangle) int {
		if math.Abs(a.center.y-b.center.y) < min(a.h, b.h)/2 { // on one line
			return int(math.Copysign(1, a.center.x-b.center.x))
		}
		return int(math.Copysign(1, a.center.y-b.center.y))
	})
	return places, nil
}

// islands are the sets of pixels with text that touch each other.
func islands(probability []float32, w, h int) [][]int {
	seen := make([]bool, len(probability))
	var all [][]int
	for start, p := range probability {
		if p <= textPixel || seen[start] {
			continue
		}
		island := []int{start}
		seen[start] = true
		for i := 0; i < len(island); i++ {
			x, y := island[i]%w, island[i]/w
			for dy := -1; dy <= 1; dy++ {
				for dx := -1; dx <= 1; dx++ {
					nx, ny := x+dx, y+dy
					if nx < 0 || ny < 0 || nx >= w || ny >= h {
						continue
					}
					if at := ny*w + nx; !seen[at] && probability[at] > textPixel {
						seen[at] = true
						island = append(island, at)
					}
				}
			}
		}
		all = append(all, island)
	}
	return all
}

// fitted is a line at a height, no wider than most.
func fitted(part *bitmap, most int) *bitmap {
	w := int(math.Ceil(float64(lineHeight*part.w) / float64(part.h)))
	return part.resized(min(max(w, 1), most), lineHeight)
}

// upsideDown tells how a line lies.
func (r *reader) upsideDown(ctx context.Context, part *bitmap) (bool, error) {
	y, _, err := r.run(ctx, 1, fitted(part, turnWidth).input(turnWidth), 1, 3, lineHeight, turnWidth)
	if err != nil {
		return false, err
	}
	if len(y) != 2 {
		return false, fmt.Errorf("%d orientations", len(y))
	}
	return y[1] > sureTurned, nil
}

// text reads a line: the most probable character of each column, where repetitions are one.
func (r *reader) text(ctx context.Context, part *bitmap) (string, float64, error) {
	const widest = 64 * lineHeight
	scaled := fitted(part, widest)
	w := max(leastLine, (scaled.w+lineStep-1)/lineStep*lineStep)
	y, shape, err := r.run(ctx, 2, scaled.input(w), 1, 3, lineHeight, w)
	if err != nil {
		return "", 0, err
	}
	if len(shape) != 3 || shape[2] != len(r.characters) {
		return "", 0, fmt.Errorf("probabilities of shape %v for %d characters", shape, len(r.characters))
	}
	var text strings.Builder
	sum, n, last := 0.0, 0, 0
	for column := range shape[1] {
		row := y[column*shape[2]:][:shape[2]]
		best := 0
		for i, p := range row {
			if p > row[best] {
				best = i
			}
		}
		if best != 0 && best != last {
			text.WriteString(r.characters[best])
			sum, n = sum+float64(row[best]), n+1
		}
		last = best
	}
	return strings.TrimSpace(text.String()), sum / max(1, float64(n)), nil
}
