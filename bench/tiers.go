package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/wavelane/wavelane/simd"
)

// The instruction set is chosen when a process starts, so each further one is measured in a process of its own, which lives
// through the whole run and computes when told to. So does a peer that is a program.

type request struct {
	Case    string `json:"case,omitempty"` // prepare this case
	Threads int    `json:"threads,omitempty"`
	Calls   int    `json:"calls,omitempty"` // call it as often
	Version bool   `json:"version,omitempty"`
}

type reply struct {
	NS    int64  `json:"ns"`
	Error string `json:"error,omitempty"`
	// Version is what a peer says of itself.
	Version string `json:"version,omitempty"`
}

// worker is such a process.
type worker struct {
	name  string          // of the subject
	only  func(Case) bool // cases that it knows, and nil for all
	spins bool            // its threads go on waiting actively after a call
	cmd   *exec.Cmd
	to    *json.Encoder
	in    io.Closer
	from  *json.Decoder
}

// tierVariable forces the instruction set of a process.
const tierVariable = "WAVELANE_SIMD"

func startWorker(tier string) (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return start(ours+"/"+tier, []string{tierVariable + "=" + tier}, self, "serve")
}

// start starts a program with additional variables.
func start(name string, variables []string, path string, args ...string) (*worker, error) {
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), variables...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &worker{name: name, cmd: cmd, to: json.NewEncoder(in), in: in, from: json.NewDecoder(out)}, nil
}

func (w *worker) close() {
	w.in.Close()
	w.cmd.Wait()
}

func (w *worker) ask(r request) (reply, error) {
	if err := w.to.Encode(r); err != nil {
		return reply{}, fmt.Errorf("%s: %w", w.name, err)
	}
	var got reply
	if err := w.from.Decode(&got); err != nil {
		return reply{}, fmt.Errorf("%s: %w", w.name, err)
	}
	if got.Error == errNot.Error() {
		return reply{}, errNot
	}
	if got.Error != "" {
		return reply{}, fmt.Errorf("%s: %s", w.name, got.Error)
	}
	return got, nil
}

// has says whether a worker knows a case.
func (w *worker) has(c Case) bool { return w.only == nil || w.only(c) }

// errNot is what a peer answers to a case that it does not know.
var errNot = errors.New("not supported")

func (w *worker) prepare(name string, threads int) error {
	_, err := w.ask(request{Case: name, Threads: threads})
	return err
}

func (w *worker) run(n int) (time.Duration, error) {
	got, err := w.ask(request{Calls: n})
	return time.Duration(got.NS), err
}

// version asks a peer.
func (w *worker) version() (string, error) {
	got, err := w.ask(request{Version: true})
	return got.Version, err
}

// serveTier is what such a process does.
func serveTier() error {
	return serve(os.Stdin, os.Stdout, simd.Tier, func(c Case, threads int) calls {
		setThreads(threads)
		f := c.Make(threads)[ours]
		return func(n int) {
			for range n {
				f()
			}
		}
	})
}

// serve answers requests: it prepares cases and runs them.
func serve(in io.Reader, out io.Writer, version func() string, prepare func(c Case, threads int) calls) error {
	all := cases()
	from, to := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	var current calls
	for {
		var r request
		switch err := from.Decode(&r); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		var a reply
		switch i := slices.IndexFunc(all, func(c Case) bool { return c.Name == r.Case }); {
		case r.Version:
			a.Version = version()
		case r.Case == "" && current != nil:
			start := time.Now()
			current(r.Calls)
			a.NS = time.Since(start).Nanoseconds()
		case i < 0:
			a.Error = fmt.Sprintf("no case %q", r.Case)
		default:
			if current = prepare(all[i], r.Threads); current == nil {
				a.Error = errNot.Error()
			}
		}
		if err := to.Encode(a); err != nil {
			return err
		}
	}
}

// calls is work that is done n times.
type calls func(n int)
