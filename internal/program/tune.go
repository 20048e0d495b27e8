package program

import "time"

// Measurement is the outcome of measuring the variants of one problem.
type Measurement struct {
	Class    string
	Problem  string
	Winner   string
	Variants []string
	Median   []time.Duration // by variant; 0 if it was not possible
}
