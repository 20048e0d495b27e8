// Package cost predicts how long an all-reduce takes on more processes than are at hand, from what it took on a few.
//
// A [Link] has a latency and a bandwidth. An all-reduce on it takes the shorter time of two algorithms that libraries have (Thakur and others,
// "Optimization of Collective Communication Operations in MPICH", 2005): recursive doubling, which sends everything in each of ⌈log₂ n⌉
// rounds, and a ring, which sends 2(n−1) parts of an n-th. A [Network] is machines, between which the link is another one than inside.
package cost

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/wavelane/wavelane/compute"
)

// Link is how processes are connected.
type Link struct {
	Latency   time.Duration `json:"latency_ns"`  // of a message
	Bandwidth float64       `json:"bytes_per_s"` // of a process, in each direction
}

// AllReduce predicts the time on a number of processes, with so many bytes of each.
func (l Link) AllReduce(processes, bytes int) time.Duration {
	return time.Duration(min(l.doubling(processes, bytes), l.ring(processes, bytes)) * 1e9)
}

func (l Link) doubling(processes, bytes int) float64 {
	return float64(bits.Len(uint(processes-1))) * (l.Latency.Seconds() + float64(bytes)/l.Bandwidth)
}

func (l Link) ring(processes, bytes int) float64 {
	return 2 * float64(processes-1) * (l.Latency.Seconds() + float64(bytes)/float64(processes)/l.Bandwidth)
}

// Sample is how long an all-reduce took.
type Sample struct {
	Bytes int // of each process
	Time  time.Duration
}

// Fit returns the link on which all-reduces of a number of processes would take most nearly as long as the samples did, in the mean of squares of
// logarithms, so that small ones count as much as large ones. Errors wrap [compute.ErrArgument].
func Fit(processes int, samples []Sample) (Link, error) {
	smallest, largest := Sample{}, Sample{}
	for i, s := range samples {
		if s.Bytes <= 0 || s.Time <= 0 {
			return Link{}, fmt.Errorf("cost: a sample of %d bytes in %v: %w", s.Bytes, s.Time, compute.ErrArgument)
		}
		if i == 0 || s.Bytes < smallest.Bytes {
			smallest = s
		}
		if s.Bytes > largest.Bytes {
			largest = s
		}
	}
	if processes < 2 || smallest.Bytes == largest.Bytes {
		return Link{}, fmt.Errorf("cost: %d samples of %d processes, need two sizes and two processes: %w", len(samples), processes, compute.ErrArgument)
	}
	// Latency and bandwidth by themselves are where a search for both begins, by ever smaller factors.
	rounds, n := float64(bits.Len(uint(processes-1))), float64(processes)
	at := [2]float64{smallest.Time.Seconds() / rounds, 2 * (n - 1) / n * float64(largest.Bytes) / largest.Time.Seconds()}
	off := func(at [2]float64) (sum float64) {
		l := Link{time.Duration(at[0] * 1e9), at[1]}
		for _, s := range samples {
			x := math.Log(min(l.doubling(processes, s.Bytes), l.ring(processes, s.Bytes)) / s.Time.Seconds())
			sum += x * x
		}
		return sum
	}
	best := off(at)
	for factor := 2.0; factor > 1.001; {
		better := false
		for i := range at {
			for _, f := range []float64{factor, 1 / factor} {
				next := at
				next[i] *= f
				if x := off(next); x < best {
					at, best, better = next, x, true
				}
			}
		}
		if !better {
			factor = math.Sqrt(factor)
		}
	}
	return Link{time.Duration(at[0] * 1e9), at[1]}, nil
}

// Network is machines with processes.
type Network struct {
	Inside     Link // of processes on one machine
	PerMachine int  // processes; 0 for all
	Between    Link // of machines

	// Measured are samples of all-reduces on one machine, by the number of processes. Where there are some, they take the place of Inside,
	// and what lies between two sizes is interpolated.
	Measured map[int][]Sample
}

// AllReduce predicts the time on a number of processes, with so many bytes of each. On several machines it is that inside one and that between
// the machines, one after the other, as libraries do it.
func (n *Network) AllReduce(processes, bytes int) time.Duration {
	if n.PerMachine == 0 || processes <= n.PerMachine {
		return n.inside(processes, bytes)
	}
	machines := (processes + n.PerMachine - 1) / n.PerMachine
	return n.inside(n.PerMachine, bytes) + n.Between.AllReduce(machines, bytes)
}

func (n *Network) inside(processes, bytes int) time.Duration {
	if processes == 1 {
		return 0
	}
	samples := slices.SortedFunc(slices.Values(n.Measured[processes]), func(a, b Sample) int { return cmp.Compare(a.Bytes, b.Bytes) })
	for i, s := range samples {
		switch {
		case s.Bytes == bytes || s.Bytes > bytes && i == 0:
			return s.Time
		case s.Bytes > bytes:
			before := samples[i-1]
			share := float64(bytes-before.Bytes) / float64(s.Bytes-before.Bytes)
			return before.Time + time.Duration(share*float64(s.Time-before.Time))
		}
	}
	if len(samples) == 0 {
		return n.Inside.AllReduce(processes, bytes)
	}
	last := samples[len(samples)-1]
	return time.Duration(float64(last.Time) * float64(bytes) / float64(last.Bytes))
}

// Step is a step of training on every process, with gradients that are added over all.
type Step struct {
	Compute   time.Duration // of a process
	Gradients int           // bytes
	Bucket    int           // bytes of gradients that are sent together; 0 for all
	Overlap   float64       // share of Compute, from the first gradients on, in which they are sent, from 0 to 1
}

// Time predicts how long the step takes: all buckets but the last one travel while the process goes on computing.
func (n *Network) Time(s Step, processes int) time.Duration {
	if processes == 1 {
		return s.Compute
	}
	bucket := cmp.Or(s.Bucket, s.Gradients)
	last := min(bucket, s.Gradients)
	hidden := time.Duration(0)
	for left := s.Gradients - last; left > 0; left -= bucket {
		hidden += n.AllReduce(processes, min(bucket, left))
	}
	backward := time.Duration(s.Overlap * float64(s.Compute))
	return s.Compute - backward + max(backward, hidden) + n.AllReduce(processes, last)
}
