// Mpi compares all-reduces of package dist with the same loop in C, which it compiles with mpicc, in turns; and batches in which an all-reduce
// goes on beside as much work that does not need it with the longer of the two. With more processes running than cores the figures say nothing.
//
//	cd bench && go run ./mpi              # both MPI libraries, two ranks
//	cd bench && go run ./mpi -turns 20
//
// Debian has what it needs in openmpi-bin, mpich, libopenmpi-dev and libmpich-dev.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/dist"

	_ "embed"
)

//go:embed testdata/peer.c
var peer []byte

// library is an MPI library with its compiler and launcher.
type library struct {
	name, compiler string
	launcher       []string
}

var libraries = []library{
	{"openmpi", "mpicc.openmpi", []string{"mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-np"}},
	{"mpich", "mpicc.mpich", []string{"mpiexec.hydra", "-np"}},
}

// sizes are in float32, with what is aimed at: so many times what C takes, or so much more.
var sizes = []struct {
	n     int
	ratio float64
	more  time.Duration
}{{1, 0, 500 * time.Nanosecond}, {16 << 10, 1.25, 0}, {1 << 20, 1.15, 0}}

// overlapLimit is what a batch may take of the longer of all-reduce and work.
const overlapLimit = 1.15

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mpi:", err)
		os.Exit(1)
	}
}

func run() error {
	ranks := flag.Int("ranks", 2, "`number` of processes")
	turns := flag.Int("turns", 10, "`number` of runs of each")
	budget := flag.Duration("time", 300*time.Millisecond, "how long each run measures a size")
	role := flag.String("role", "", "of a process that this one has started")
	flag.Parse()
	switch *role {
	case "all-reduce":
		return allReduces(*budget)
	case "overlap":
		return overlap(*budget)
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "mpi")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	source := filepath.Join(folder, "peer.c")
	if err := os.WriteFile(source, peer, 0o600); err != nil {
		return err
	}
	fmt.Printf("%d ranks on %d cores, %d turns; best and median in µs\n\n", *ranks, runtime.NumCPU(), *turns)
	fmt.Printf("%-8s %9s %10s %10s %10s %10s  %s\n", "library", "float32", "C", "wavelane", "C median", "median", "of the best")
	missed := false
	for _, l := range libraries {
		c := filepath.Join(folder, l.name)
		if out, err := exec.Command(l.compiler, "-O2", "-o", c, source).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", l.compiler, err, out)
		}
		inC, inGo := map[int]*result{}, map[int]*result{}
		counts := []string{fmt.Sprint(budget.Seconds())}
		for _, s := range sizes {
			counts = append(counts, strconv.Itoa(s.n))
		}
		for range *turns {
			if err := l.run(*ranks, inC, append([]string{c}, counts...)...); err != nil {
				return err
			}
			if err := l.run(*ranks, inGo, exe, "-role", "all-reduce", "-time", budget.String()); err != nil {
				return err
			}
		}
		for _, s := range sizes {
			a, b := inC[s.n].summary(), inGo[s.n].summary()
			limit, text := a.best*s.ratio, fmt.Sprintf("%.2f times, aim %.2f", b.best/a.best, s.ratio)
			if s.more > 0 {
				limit, text = a.best+s.more.Seconds(), fmt.Sprintf("%+.2f µs, aim +%.2f", (b.best-a.best)*1e6, s.more.Seconds()*1e6)
			}
			if b.best > limit {
				missed, text = true, text+", MISSED"
			}
			fmt.Printf("%-8s %9d %10.2f %10.2f %10.2f %10.2f  %s\n", l.name, s.n, a.best*1e6, b.best*1e6, a.median*1e6, b.median*1e6, text)
		}
	}
	fmt.Printf("\nall-reduce and work in one batch, of the longer of both alone, aim %.2f\n", overlapLimit)
	for _, l := range libraries {
		ratios := map[int]*result{}
		for range *turns {
			if err := l.run(*ranks, ratios, exe, "-role", "overlap", "-time", budget.String()); err != nil {
				return err
			}
		}
		for _, way := range slices.Sorted(func(yield func(int) bool) {
			for w := range ratios {
				if !yield(w) {
					return
				}
			}
		}) {
			r, text := ratios[way].summary(), ""
			if r.best > overlapLimit {
				missed, text = true, ", MISSED"
			}
			fmt.Printf("%-8s %-38s best %.2f, median %.2f%s\n", l.name, ways[way], r.best, r.median, text)
		}
	}
	if missed {
		return errors.New("an aim was missed")
	}
	return nil
}

// result is best and median of each run.
type result struct{ bests, medians []float64 }

type summary struct{ best, median float64 }

func (r *result) summary() summary {
	if r == nil {
		return summary{math.NaN(), math.NaN()}
	}
	slices.Sort(r.medians)
	return summary{slices.Min(r.bests), r.medians[len(r.medians)/2]}
}

// run starts a program on ranks, of which the first prints lines of a number, the best and the median.
func (l *library) run(ranks int, into map[int]*result, command ...string) error {
	args := slices.Concat(l.launcher[1:], []string{strconv.Itoa(ranks)}, command)
	cmd := exec.Command(l.launcher[0], args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	for line := range strings.Lines(string(out)) {
		var n int
		var best, median float64
		if _, err := fmt.Sscan(line, &n, &best, &median); err != nil {
			return fmt.Errorf("%s printed %q: %w", l.name, line, err)
		}
		if into[n] == nil {
			into[n] = &result{}
		}
		into[n].bests, into[n].medians = append(into[n].bests, best), append(into[n].medians, median)
	}
	return nil
}

// allReduces is the loop of testdata/peer.c in Go.
func allReduces(budget time.Duration) error {
	ctx := context.Background()
	w, err := dist.Init(ctx)
	if err != nil {
		return err
	}
	for _, s := range sizes {
		x, y := make([]float32, s.n), make([]float32, s.n)
		times, err := timed(ctx, w, budget, func() error { return w.AllReduce(ctx, y, x, dist.Sum) })
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Printf("%d %.9f %.9f\n", s.n, times[0].Seconds(), times[len(times)/2].Seconds())
		}
	}
	return w.Close()
}

// timed makes a call as often on every rank, and returns the times of this one, sorted.
func timed(ctx context.Context, w *dist.World, budget time.Duration, call func() error) ([]time.Duration, error) {
	start := time.Now()
	for range 3 {
		if err := call(); err != nil {
			return nil, err
		}
	}
	rounds := []int32{int32(min(max(3*budget/max(time.Since(start), 1), 5), 20_000))}
	if err := w.Broadcast(ctx, rounds, 0); err != nil {
		return nil, err
	}
	if err := w.Barrier(ctx); err != nil {
		return nil, err
	}
	times := make([]time.Duration, rounds[0])
	for i := range times {
		start := time.Now()
		if err := call(); err != nil {
			return nil, err
		}
		times[i] = time.Since(start)
	}
	slices.Sort(times)
	return times, nil
}

// Ways of all-reducing.
const (
	overMPI     = iota // whose messages on one machine need cores, as the work does
	overLatency        // a network that takes its time without a core
)

var ways = map[int]string{overMPI: "MPI, which needs the work's cores", overLatency: "a network that needs no core"}

// overlap measures all-reduce, work and both in one batch.
func overlap(budget time.Duration) error {
	ctx := context.Background()
	w, err := dist.Init(ctx)
	if err != nil {
		return err
	}
	dev, err := cpu.Open(ctx, cpu.WithWorkers(1))
	if err != nil {
		return err
	}
	defer dev.Close()
	const delay = 5 * time.Millisecond
	alone, err := dist.Alone(w.Rank(), w.Size(), func(collective string, _ int) {
		if collective == "all-reduce" {
			time.Sleep(delay)
		}
	})
	if err != nil {
		return err
	}
	for way, g := range []batch.Group{overMPI: w, overLatency: alone} {
		elements := 4 << 20
		if way == overLatency {
			elements = 1 << 10
		}
		// median returns what a run of a plan takes with and without the all-reduce, and so many products.
		median := func(reduce bool, products int) (time.Duration, error) {
			b := batch.New(dev)
			if reduce {
				b.Read(b.AllReduce(b.Upload(make([]float32, elements)), g, dist.Sum))
			}
			const n = 256
			x, m := b.Upload(make([]float32, n*n), n, n), b.Upload(make([]float32, n*n), n, n)
			for range products {
				x = b.MatMul(x, m)
			}
			b.Read(x)
			plan, err := b.Compile(ctx)
			if err != nil {
				return 0, err
			}
			defer plan.Close()
			times, err := timed(ctx, w, budget, func() error { return plan.Run(ctx) })
			if err != nil {
				return 0, err
			}
			return times[len(times)/2], nil
		}
		reduce, err := median(true, 0)
		if err != nil {
			return err
		}
		const few = 20
		work, err := median(false, few)
		if err != nil {
			return err
		}
		products := []int32{int32(max(1, few*reduce/work))}
		if err := w.Broadcast(ctx, products, 0); err != nil {
			return err
		}
		if work, err = median(false, int(products[0])); err != nil {
			return err
		}
		both, err := median(true, int(products[0]))
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			ratio := both.Seconds() / max(reduce, work).Seconds()
			fmt.Printf("%d %.9f %.9f\n", way, ratio, ratio)
		}
	}
	return w.Close()
}
