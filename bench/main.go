package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"time"

	"github.com/wavelane/wavelane/simd"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) > 1 && os.Args[1] == "serve" { // a process that this one has started
		return serveProcess(os.Args[2:])
	}
	only := flag.String("run", "", "measure only cases whose name matches this regular expression, as sgemm or add/10000")
	list := flag.Bool("list", false, "list the cases and stop")
	rounds := flag.Int("rounds", 15, "rounds: samples of each subject")
	sample := flag.Duration("sample", 4*time.Millisecond, "least length of a sample")
	threads := flag.Int("threads", 0, "measure on as many threads only; 0 for 1 and all")
	tiers := flag.Bool("tiers", true, "measure the other instruction sets too")
	asJSON := flag.Bool("json", false, "write the report to standard output as JSON, progress to standard error")
	out := flag.String("out", "", "folder for cpu.txt (for benchstat), cpu.json and cpu.html; none by default")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "bench measures wavelane's CPU kernels beside OpenBLAS, BLIS, MKL, ONNX Runtime, gonum, vek and plain Go.\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; see -help", flag.Arg(0))
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	if *rounds < 1 || *sample <= 0 || *threads < 0 {
		return fmt.Errorf("rounds, sample and threads must be positive")
	}
	chosen := slices.DeleteFunc(cases(), func(c Case) bool { return !pattern.MatchString(c.Name) })
	if len(chosen) == 0 {
		return fmt.Errorf("no case matches %q; -list shows them", *only)
	}
	if *list {
		for _, c := range chosen {
			fmt.Println(c.Name)
		}
		return nil
	}
	var progress io.Writer = os.Stdout
	if *asJSON {
		progress = os.Stderr
	}
	r, err := collect(progress, chosen, plan{*rounds, *sample, spin, settle}, *threads, *tiers)
	if err != nil {
		return err
	}
	fmt.Fprintln(progress)
	writeVerdicts(progress, r.Verdicts)
	if *asJSON {
		if err := r.writeJSON(os.Stdout); err != nil {
			return err
		}
	}
	if *out != "" {
		return r.save(*out)
	}
	return nil
}

// serveProcess is what the processes do that bench starts from its own file: one of another instruction set, or one with a BLAS.
func serveProcess(args []string) error {
	if len(args) == 2 {
		return serveBLAS(args[0], args[1])
	}
	return serveTier()
}

// collect measures; an interrupt ends it early with what there is.
func collect(progress io.Writer, chosen []Case, p plan, only int, tiers bool) (*Report, error) {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt)
	defer signal.Stop(stop)
	r := &Report{Date: time.Now().UTC().Format(time.DateOnly), Machine: machine(), Tier: simd.Tier()}
	var workers []*worker
	if tiers {
		for _, tier := range simd.Tiers() {
			if tier == simd.Tier() {
				continue
			}
			w, err := startWorker(tier)
			if err != nil {
				return nil, err
			}
			defer w.close()
			w.only = func(c Case) bool { // plain Go takes minutes for the largest products
				return (!c.quantised || c.Bytes > 0) && (c.Flops < 1e10 || tier != "scalar")
			}
			workers = append(workers, w)
		}
	}
	peers, versions, err := startPeers()
	defer func() {
		for _, w := range peers {
			w.close()
		}
	}()
	if err != nil {
		return nil, err
	}
	r.Peers = versions
	workers = append(workers, peers...)
	fmt.Fprintf(progress, "%s, %d cores, wavelane on %s\n", r.Machine.CPU, r.Machine.Cores, r.Tier)
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		fmt.Fprintf(progress, "%s: %s\n", name, versions[name])
	}
	threads := []int{1}
	if n := runtime.NumCPU(); n > 1 {
		threads = append(threads, n)
	}
	if only > 0 {
		threads = []int{only}
	}
	for _, c := range chosen {
		for _, n := range threads {
			results, err := p.measure(c, n, workers)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.Name, err)
			}
			fmt.Fprintln(progress)
			writeTable(progress, results)
			r.Results = append(r.Results, results...)
			r.Verdicts = append(r.Verdicts, judge(c, results)...)
			select {
			case <-stop:
				fmt.Fprintln(progress, "interrupted: the report has the cases so far")
				return r, nil
			default:
			}
		}
	}
	return r, nil
}

// save writes the three forms of the report.
func (r *Report) save(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, write := range map[string]func(io.Writer) error{"cpu.txt": r.writeText, "cpu.json": r.writeJSON, "cpu.html": r.writeHTML} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
