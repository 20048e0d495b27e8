package main

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/wavelane/wavelane/simd"
)

// Result is what one subject took for one case.
type Result struct {
	Case    string    `json:"case"`
	Threads int       `json:"threads"`
	Subject string    `json:"subject"`
	NS      float64   `json:"ns"` // per call, the least of the samples: what else runs on the machine only adds to them
	Rate    float64   `json:"rate"`
	Unit    string    `json:"unit"`
	Samples []float64 `json:"samples"` // ns per call, one of each round
}

// subject does n calls and returns the time that they took.
type subject func(n int) (time.Duration, error)

func timed(f func()) subject {
	return func(n int) (time.Duration, error) {
		start := time.Now()
		for range n {
			f()
		}
		return time.Since(start), nil
	}
}

// setThreads bounds all subjects alike. Vek and the loops have one thread anyway.
func setThreads(n int) {
	runtime.GOMAXPROCS(n)
	simd.SetThreads(n)
}

// plan says how a case is measured.
type plan struct {
	rounds int
	sample time.Duration // least length of one sample
	idle   time.Duration // before a subject that comes after a peer whose threads wait actively for more work
	settle time.Duration // for which a subject on several threads is called before it is timed
}

const (
	// spin is longer than threads of a peer wait actively, on the cores of whoever is next: 2²⁶ cycles in OpenBLAS, some 65 ms in
	// ONNX Runtime.
	spin = 120 * time.Millisecond
	// settle is what an operating system may take until threads that have just woken have a core each.
	settle = 40 * time.Millisecond
)

// warm calls a subject before it is timed: caches hold the last subject's data, threads have gone to sleep.
func (p plan) warm(s subject, calls, threads int) error {
	if threads == 1 {
		if calls == 1 { // long enough not to notice
			return nil
		}
		_, err := s(1)
		return err
	}
	for spent := time.Duration(0); spent < p.settle; {
		d, err := s(calls)
		if err != nil {
			return err
		}
		spent += max(d, 1)
	}
	return nil
}

// measure runs all subjects of a case in rounds, of one thread on the same processor in each, round after round on another. One whose
// samples are long runs in every fourth round only.
func (p plan) measure(c Case, threads int, workers []*worker) ([]Result, error) {
	setThreads(threads)
	place(workers, -1)
	subjects, spins := map[string]subject{}, map[string]bool{}
	for name, f := range c.Make(threads) {
		if threads == 1 || name != vek && name != plainGo { // these have one thread
			subjects[name] = timed(f)
		}
	}
	for _, w := range workers {
		if !w.has(c) {
			continue
		}
		switch err := w.prepare(c.Name, threads); {
		case err == errNot:
			continue
		case err != nil:
			return nil, err
		}
		subjects[w.name] = w.run
		spins[w.name] = w.spins
	}
	var names []string
	for name := range subjects {
		names = append(names, name)
	}
	slices.Sort(names)
	calls, slow := map[string]int{}, map[string]bool{}
	for _, name := range names {
		n, took, err := p.calibrate(subjects[name])
		if err != nil {
			return nil, err
		}
		calls[name], slow[name] = n, took > 25*p.sample
	}
	samples := map[string][]float64{}
	for round := range p.rounds {
		if threads == 1 {
			place(workers, round+round/4)
		}
		for _, i := range rand.Perm(len(names)) {
			name := names[i]
			if slow[name] && round%4 != 0 {
				continue
			}
			if err := p.warm(subjects[name], calls[name], threads); err != nil {
				return nil, err
			}
			d, err := subjects[name](calls[name])
			if err != nil {
				return nil, err
			}
			if spins[name] && threads > 1 {
				time.Sleep(p.idle)
			}
			samples[name] = append(samples[name], float64(d.Nanoseconds())/float64(calls[name]))
		}
	}
	var results []Result
	for _, name := range names {
		r := Result{Case: c.Name, Threads: threads, Subject: name, NS: slices.Min(samples[name]), Samples: samples[name]}
		r.Rate, r.Unit = c.rate(r.NS)
		results = append(results, r)
	}
	return results, nil
}

// calibrate finds how many calls make a sample, and how long it is; it also warms caches and starts threads.
func (p plan) calibrate(s subject) (int, time.Duration, error) {
	for n := 1; ; {
		d, err := s(n)
		if err != nil {
			return 0, 0, err
		}
		if d >= p.sample {
			return n, d, nil
		}
		n = max(n+1, min(100*n, int(1.2*float64(n)*float64(p.sample)/float64(max(d, 1)))))
	}
}

// rate turns the time of a call into the figure that people compare.
func (c Case) rate(ns float64) (float64, string) {
	switch {
	case c.Flops > 0:
		return c.Flops / ns, "GFLOPS"
	case c.Bytes > 0:
		return c.Bytes / ns, "GB/s"
	}
	return c.Elems / ns, "Gelem/s"
}
