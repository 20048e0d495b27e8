// Package roofline says how fast a kernel can be on a GPU: the roofline of a GPU's peak rate of arithmetic and of its memory's
// bandwidth (Williams, Waterman and Patterson 2009), and how many blocks a multiprocessor holds at once (occupancy).
//
// All figures are plain data; everything here is safe for concurrent use.
package roofline

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/compute"
)

// Rate names a kind of arithmetic that has a peak of its own.
type Rate string

// The rates. Those of tensor cores are dense ones, with accumulation in f32 (int32 for int8).
const (
	F32  Rate = "f32"
	F64  Rate = "f64"
	TF32 Rate = "tf32"      // tensor cores
	F16  Rate = "f16"       // tensor cores
	BF16 Rate = "bf16"      // tensor cores
	FP8  Rate = "fp8"       // tensor cores, e4m3 and e5m2
	Int8 Rate = "int8"      // tensor cores
	D64  Rate = "f64tensor" // tensor cores
)

// Model is what the roofline needs to know of a GPU.
type Model struct {
	Name string `json:"name"`
	// SM is the compute capability times ten: 90 is sm_90.
	SM int `json:"sm"`
	// SMs is the number of multiprocessors.
	SMs int `json:"sms"`
	// Peak is in operations per second; a fused multiply-add counts as two. A rate that the GPU does not have is absent.
	Peak map[Rate]float64 `json:"peak"`
	// Bandwidth is that of the GPU's memory, in bytes per second.
	Bandwidth float64 `json:"bandwidth"`
	// L2 is the size of L2 in bytes.
	L2 int `json:"l2"`
	// Measured says that bandwidth or a peak was measured on a machine and does not come from the data sheet.
	Measured bool `json:"measured"`
}

// Bound is what limits a kernel.
type Bound string

// The bounds.
const (
	MemoryBound  Bound = "memory"
	ComputeBound Bound = "compute"
)

// Limits are those of the model's multiprocessors.
func (m Model) Limits() (Limits, error) { return LimitsOf(m.SM) }

// PeakOf is the peak in operations per second. It returns compute.ErrUnsupported for a rate that the GPU does not have.
func (m Model) PeakOf(r Rate) (float64, error) {
	if p := m.Peak[r]; p > 0 {
		return p, nil
	}
	return 0, fmt.Errorf("roofline: %s has no %s arithmetic; it has %v: %w", m.Name, r, m.Rates(), compute.ErrUnsupported)
}

// Rates are those that the GPU has, in alphabetical order.
func (m Model) Rates() []Rate { return slices.Sorted(maps.Keys(m.Peak)) }

// Ridge is the intensity, in operations per byte, from which on arithmetic limits.
func (m Model) Ridge(r Rate) (float64, error) {
	p, err := m.PeakOf(r)
	return p / m.Bandwidth, err
}

// Attainable is the most operations per second at an intensity in operations per byte: min(peak, bandwidth · intensity).
func (m Model) Attainable(r Rate, intensity float64) (float64, error) {
	p, err := m.PeakOf(r)
	if err != nil {
		return 0, err
	}
	if intensity < 0 || math.IsNaN(intensity) {
		return 0, fmt.Errorf("roofline: intensity %v: %w", intensity, compute.ErrArgument)
	}
	return min(p, m.Bandwidth*intensity), nil
}

// Bound says what limits at an intensity.
func (m Model) Bound(r Rate, intensity float64) (Bound, error) {
	ridge, err := m.Ridge(r)
	switch {
	case err != nil:
		return "", err
	case intensity < ridge:
		return MemoryBound, nil
	}
	return ComputeBound, nil
}

// Efficiency is the share of the attainable rate that a measured one, in operations per second, reaches.
func (m Model) Efficiency(r Rate, intensity, measured float64) (float64, error) {
	a, err := m.Attainable(r, intensity)
	switch {
	case err != nil:
		return 0, err
	case a == 0:
		return 0, fmt.Errorf("roofline: nothing is attainable at intensity 0: %w", compute.ErrArgument)
	}
	return measured / a, nil
}

// Seconds is the least time for a number of operations and of bytes.
func (m Model) Seconds(r Rate, flops, bytes float64) (float64, error) {
	p, err := m.PeakOf(r)
	if err != nil {
		return 0, err
	}
	return max(flops/p, bytes/m.Bandwidth), nil
}

// WithMeasured is a copy in which figures measured on a machine replace those of the data sheet: the bandwidth in bytes per
// second, unless it is 0, and the peaks given.
func (m Model) WithMeasured(bandwidth float64, peak map[Rate]float64) Model {
	m.Peak = maps.Clone(m.Peak)
	if m.Peak == nil {
		m.Peak = map[Rate]float64{}
	}
	maps.Copy(m.Peak, peak)
	if bandwidth > 0 {
		m.Bandwidth = bandwidth
	}
	m.Measured = m.Measured || bandwidth > 0 || len(peak) > 0
	return m
}

// String is one line: the name, the peaks and the bandwidth.
func (m Model) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (sm_%d, %d SMs): %.0f GB/s", m.Name, m.SM, m.SMs, m.Bandwidth/1e9)
	for _, r := range m.Rates() {
		fmt.Fprintf(&b, ", %s %.4g T", r, m.Peak[r]/1e12)
	}
	if m.Measured {
		b.WriteString(" (measured)")
	}
	return b.String()
}

// Named returns a known GPU by its name; case does not matter. It returns compute.ErrArgument for one that is not known.
func Named(name string) (Model, error) {
	for _, m := range known {
		if strings.EqualFold(m.Name, name) {
			return m.WithMeasured(0, nil), nil
		}
	}
	return Model{}, fmt.Errorf("roofline: no GPU %q; known are %s: %w", name, strings.Join(Names(), ", "), compute.ErrArgument)
}

// Names are those of the known GPUs.
func Names() []string {
	names := make([]string, len(known))
	for i, m := range known {
		names[i] = m.Name
	}
	return names
}

// Parse reads a model from JSON, for GPUs that are not known or were measured.
func Parse(data []byte) (Model, error) {
	var m Model
	if err := json.Unmarshal(data, &m); err != nil {
		return Model{}, fmt.Errorf("roofline: model: %w: %w", compute.ErrArgument, err)
	}
	if m.Bandwidth <= 0 || len(m.Peak) == 0 {
		return Model{}, fmt.Errorf("roofline: model %q without bandwidth or peaks: %w", m.Name, compute.ErrArgument)
	}
	return m, nil
}
