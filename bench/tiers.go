package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"
)

// The instruction set is chosen when a process starts, so each further one is measured in a process of its own, which lives
// through the whole run and computes when it is its turn.

type request struct {
	Case    string `json:"case,omitempty"` // prepare this case
	Threads int    `json:"threads,omitempty"`
	Calls   int    `json:"calls,omitempty"` // call it as often
}

type reply struct {
	NS    int64  `json:"ns"`
	Error string `json:"error,omitempty"`
}

// worker is a process of another instruction set.
type worker struct {
	tier string
	cmd  *exec.Cmd
	to   *json.Encoder
	in   io.Closer
	from *json.Decoder
}

// tierVariable forces the instruction set of a process.
const tierVariable = "WAVELANE_SIMD"

func startWorker(tier string) (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "serve")
	cmd.Env = append(os.Environ(), tierVariable+"="+tier)
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
	return &worker{tier: tier, cmd: cmd, to: json.NewEncoder(in), in: in, from: json.NewDecoder(out)}, nil
}

func (w *worker) close() {
	w.in.Close()
	w.cmd.Wait()
}

func (w *worker) ask(r request) (time.Duration, error) {
	if err := w.to.Encode(r); err != nil {
		return 0, fmt.Errorf("%s: %w", w.tier, err)
	}
	var got reply
	if err := w.from.Decode(&got); err != nil {
		return 0, fmt.Errorf("%s: %w", w.tier, err)
	}
	if got.Error != "" {
		return 0, fmt.Errorf("%s: %s", w.tier, got.Error)
	}
	return time.Duration(got.NS), nil
}

func (w *worker) prepare(name string, threads int) error {
	_, err := w.ask(request{Case: name, Threads: threads})
	return err
}

func (w *worker) run(n int) (time.Duration, error) { return w.ask(request{Calls: n}) }

// serve is what such a process does.
func serve(in io.Reader, out io.Writer) error {
	all := cases()
	from, to := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	var current func()
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
		case r.Case == "" && current != nil:
			d, _ := timed(current)(r.Calls)
			a.NS = d.Nanoseconds()
		case i < 0:
			a.Error = fmt.Sprintf("no case %q", r.Case)
		default:
			setThreads(r.Threads)
			current = all[i].Make(r.Threads)[ours]
		}
		if err := to.Encode(a); err != nil {
			return err
		}
	}
}
