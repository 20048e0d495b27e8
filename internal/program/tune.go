package program

import (
	"context"
	"time"
)

// Tuner is a device whose kernels have variants, between which measurements decide.
type Tuner interface {
	// Tune measures the variants that every step of a program could run, and keeps the fastest for later compilations. It has the
	// measurements taken so far where it fails.
	Tune(ctx context.Context, p *Program) ([]Measurement, error)
}

// Measurement is the outcome of measuring the variants of one problem.
type Measurement struct {
	Class    string
	Problem  string
	Winner   string
	Variants []string
	Median   []time.Duration // by variant; 0 if it was not possible
}
