//go:build !js

package main

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
)

//go:embed data/digits.csv.gz
var dataset []byte

const (
	side    = 8 // of a picture
	pixels  = side * side
	full    = 16 // a wholly black pixel
	classes = 10
)

// digit is a picture, row by row with values from 0 to 16, and what it shows.
type digit struct {
	picture [pixels]float32
	label   int32
}

// heldOut is how many digits at the end of the file are not trained on: a fifth. The file goes writer by writer, so that most
// of these are in hands that training never saw.
const heldOut = 360

// load reads the digits to train on, and those held out.
func load() (train, held []digit, err error) {
	z, err := gzip.NewReader(bytes.NewReader(dataset))
	if err != nil {
		return nil, nil, fmt.Errorf("digits: %w", err)
	}
	rows, err := csv.NewReader(z).ReadAll()
	if err != nil {
		return nil, nil, fmt.Errorf("digits: %w", err)
	}
	var all []digit
	for i, row := range rows {
		if len(row) != pixels+1 {
			return nil, nil, fmt.Errorf("digits: line %d has %d numbers, not %d", i+1, len(row), pixels+1)
		}
		var d digit
		for j, field := range row {
			v, err := strconv.ParseFloat(field, 32)
			if err != nil {
				return nil, nil, fmt.Errorf("digits: line %d: %w", i+1, err)
			}
			if j < pixels {
				d.picture[j] = float32(v)
			} else {
				d.label = int32(v)
			}
		}
		all = append(all, d)
	}
	cut := len(all) - heldOut
	return all[:cut], all[cut:], nil
}

// distort returns the picture as another hand, pen or box might have made it: turned, slanted, stretched, moved, thicker or
// thinner. There are too few digits to learn from without.
func (d *digit) distort(random *rand.Rand) [pixels]float32 {
	between := func(low, high float64) float64 { return low + random.Float64()*(high-low) }
	sin, cos := math.Sincos(between(-0.2, 0.2))
	slant := between(-0.25, 0.25)
	width, height := between(0.8, 1.2), between(0.88, 1.1)
	dx, dy := between(-0.8, 0.8), between(-0.6, 0.6)
	pen := between(0.75, 1.4)

	const middle = (side - 1) / 2.0
	var out [pixels]float32
	for y := range side {
		for x := range side {
			// The place in the original that comes here.
			u, v := (float64(x)-middle-dx)/width, (float64(y)-middle-dy)/height
			u += slant * v
			ink := d.at(middle+cos*u-sin*v, middle+sin*u+cos*v) / full
			out[y*side+x] = float32(math.Round(full * math.Pow(ink, 1/pen)))
		}
	}
	return out
}

// at interpolates between pixels. Around the picture is paper.
func (d *digit) at(x, y float64) float64 {
	fx, fy := math.Floor(x), math.Floor(y)
	u, v := x-fx, y-fy
	pixel := func(x, y int) float64 {
		if x < 0 || y < 0 || x >= side || y >= side {
			return 0
		}
		return float64(d.picture[y*side+x])
	}
	i, j := int(fx), int(fy)
	return (1-v)*((1-u)*pixel(i, j)+u*pixel(i+1, j)) + v*((1-u)*pixel(i, j+1)+u*pixel(i+1, j+1))
}
