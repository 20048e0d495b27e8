package batch

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/monotime"
	"github.com/wavelane/wavelane/internal/program"
)

// Peaks are the rates that a device can reach, in bytes and floating-point operations a second; 0 where they are not known.
type Peaks struct {
	Memory  float64 `json:"memory_bytes_s"` // of operands and results in the device's memory
	Math    float64 `json:"math_flop_s"`    // of steps that compute anything but products
	Product float64 `json:"product_flop_s"` // of matrix products, convolutions and attention
}

// WithProfile measures the steps of every run of the plan for [Plan.Profile]: with timestamps on WebGPU, events on NVIDIA
// GPUs, and the processor's clock on the CPU device. Runs become slower, as steps no longer overlap. Devices without a clock
// fail each run with compute.ErrUnsupported; on WebGPU that is an adapter without the feature timestamp-query. Browsers round
// timestamps.
func WithProfile() Option { return func(o *options) { o.profiled = (*options).profile } }

// WithPeaks sets the peaks by which [WithProfile] places steps under the device's roofline. The default is what the device knows of
// itself.
func WithPeaks(p Peaks) Option { return func(o *options) { o.peaks = &p } }

// Profile holds the times of the steps of one run. It prints as a table, encodes as JSON, and is written as a trace by
// [Profile.Trace]. Steps are the compiled ones: recorded steps may have been fused or dropped.
type Profile struct {
	Steps []StepProfile `json:"steps"`
	Time  time.Duration `json:"time_ns"` // of all steps
	Wall  time.Duration `json:"wall_ns"` // from the start of the run to its end, with transfers
	Peaks Peaks         `json:"peaks"`
}

// StepProfile is one step of a profile.
type StepProfile struct {
	Recorded  []int         `json:"recorded"` // numbers of steps as recorded whose results this one computes; none for checks of guards
	Operation string        `json:"operation"`
	Operands  []string      `json:"operands"` // shapes, with the element type where it is not Float32
	Results   []string      `json:"results"`
	Time      time.Duration `json:"time_ns"`
	Bytes     float64       `json:"bytes"` // of operands and results
	Flops     float64       `json:"flops"` // floating-point operations; functions such as exp count 10
	GBps      float64       `json:"gb_s"`  // Bytes by Time; 0 if the clock saw no time pass
	GFLOPps   float64       `json:"gflop_s"`
	// Roofline is the achieved share of the rate that the peaks allow for a step of this many bytes and operations, at most
	// about 1; 0 if the peaks are not known. Bound is what sets that limit: "memory" or "compute".
	Roofline float64 `json:"roofline,omitempty"`
	Bound    string  `json:"bound,omitempty"`
}

// Profile returns what the latest completed run of the plan, or of its forks, took. The batch must have [WithProfile]; before the
// first run it is compute.ErrNotRun.
func (p *Plan) Profile() (*Profile, error) {
	if err := p.compiled(); err != nil {
		return nil, err
	}
	x := wrapperOf[*profiledRun](p.exec.Executable)
	if x == nil {
		return nil, fmt.Errorf("profile of a batch that was made without WithProfile: %w", compute.ErrArgument)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.times == nil {
		return nil, fmt.Errorf("profile: %w", compute.ErrNotRun)
	}
	all := &Profile{Wall: x.wall, Peaks: x.peaks}
	for i := range p.program.Steps {
		s := stepProfile(p.program, i, x.times[i], x.peaks)
		s.Recorded = p.recordedAs(&p.program.Steps[i])
		all.Steps = append(all.Steps, s)
		all.Time += s.Time
	}
	return all, nil
}

// recordedAs lists the recorded steps whose results a step of the compiled program computes.
func (p *Plan) recordedAs(s *program.Step) []int {
	numbers := []int{}
	for i := range p.recorded.Steps {
		if slices.ContainsFunc(p.recorded.Steps[i].Out, func(out program.Slot) bool { return slices.Contains(s.Out, out) }) {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

func stepProfile(p *program.Program, i int, took time.Duration, peaks Peaks) StepProfile {
	step := &p.Steps[i]
	in, out := p.Types(step.In), p.Types(step.Out)
	s := StepProfile{Operation: step.Name(), Operands: names(in), Results: names(out), Time: took,
		Bytes: step.Entry.Traffic(in, out), Flops: step.Entry.Flops(in, out, step.Attr)}
	math := peaks.Math
	if step.Entry.Products() {
		math = peaks.Product
	}
	seconds := took.Seconds()
	if seconds <= 0 {
		return s
	}
	s.GBps, s.GFLOPps = s.Bytes/seconds/1e9, s.Flops/seconds/1e9
	if peaks.Memory > 0 && math > 0 {
		memory, compute := s.Bytes/peaks.Memory, s.Flops/math
		s.Roofline, s.Bound = memory/seconds, "memory"
		if compute > memory {
			s.Roofline, s.Bound = compute/seconds, "compute"
		}
	}
	return s
}

func names(types []program.Type) []string {
	list := make([]string, len(types))
	for i, t := range types {
		list[i] = t.String()
	}
	return list
}

// String is a table with a line for each step.
func (p *Profile) String() string {
	var b strings.Builder
	rows := [][]string{{"step", "operation", "operands", "results", "time", "share", "GB/s", "GFLOP/s", "roofline"}}
	for i, s := range p.Steps {
		row := []string{fmt.Sprint(i), s.Operation, strings.Join(s.Operands, " "), strings.Join(s.Results, " "), s.Time.String(), "", "", "", ""}
		if p.Time > 0 {
			row[5] = fmt.Sprintf("%.1f%%", 100*float64(s.Time)/float64(p.Time))
		}
		if s.Time > 0 {
			row[6], row[7] = fmt.Sprintf("%.2f", s.GBps), fmt.Sprintf("%.2f", s.GFLOPps)
		}
		if s.Bound != "" {
			row[8] = fmt.Sprintf("%.0f%% of %s", 100*s.Roofline, s.Bound)
		}
		rows = append(rows, row)
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, text := range row {
			widths[i] = max(widths[i], len([]rune(text)))
		}
	}
	for _, row := range rows {
		line := ""
		for i, text := range row {
			line += text + strings.Repeat(" ", widths[i]-len([]rune(text))+2)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	fmt.Fprintf(&b, "%d steps in %v, the run in %v\n", len(p.Steps), p.Time, p.Wall)
	return b.String()
}

// profiledRun is the executable of a program whose steps are measured.
type profiledRun struct {
	program.Executable
	steps int
	peaks Peaks

	mu    sync.Mutex
	times []time.Duration // of the latest run
	wall  time.Duration
}

func (x *profiledRun) unwrap() program.Executable { return x.Executable }

// profile measures an executable for the device d, on which the batch's has placed it.
func (o *options) profile(x program.Executable, p *program.Program, d, batches program.Executor) program.Executable {
	r := &profiledRun{Executable: x, steps: len(p.Steps)}
	if o.peaks != nil {
		r.peaks = *o.peaks
	} else if placer, ok := batches.(program.Placer); ok {
		r.peaks = Peaks(placer.Peaks(d))
	}
	return r
}

// Start is that of the program, with times.
func (x *profiledRun) Start(io *program.IO) *compute.Future {
	timed := *io
	timed.Times = make([]time.Duration, x.steps)
	begin := monotime.Now()
	run := x.Executable.Start(&timed)
	io.Keep = timed.Keep
	return then(run, func(err error) (func(), error) {
		if err == nil {
			x.mu.Lock()
			x.times, x.wall = timed.Times, monotime.Since(begin)
			x.mu.Unlock()
		}
		return nil, err
	})
}
