package benchmarks

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// Request says what a peer measures: the same work as one of our ways.
type Request struct {
	Op     string   `json:"op"`
	Shapes [][]int  `json:"shapes"` // of the operands
	DTypes []string `json:"dtypes"` // of the operands: f32, f16, bf16, i32
	Calls  int      `json:"calls"`  // in one sample, so that events are fine enough
}

// Peer is another library in a process of its own, which measures between our rounds. It reads requests as lines of JSON and
// answers each with a line: {"seconds": of one call} or {"error": why it cannot}. The first line it writes is {"name": what
// it is}.
type Peer struct {
	Name string

	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

type answer struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error"`
}

// errPeer is what a peer answers that cannot do something.
var errPeer = errors.New("the peer cannot")

// StartPeer starts a program and waits for its name. It ends with ctx or with Close.
func StartPeer(ctx context.Context, program string, args ...string) (*Peer, error) {
	p := &Peer{command: exec.CommandContext(ctx, program, args...)}
	p.command.WaitDelay = 5 * time.Second
	var err error
	if p.in, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("peer %s: %w", program, err)
	}
	first, err := p.answer()
	if err == nil && first.Name == "" {
		err = errors.New("it does not say what it is")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("peer %s: %w", program, err), p.Close())
	}
	p.Name = first.Name
	return p, nil
}

// Close ends the process.
func (p *Peer) Close() error {
	p.in.Close()
	return p.command.Wait()
}

func (p *Peer) answer() (a answer, err error) {
	if !p.out.Scan() {
		if err := p.out.Err(); err != nil {
			return a, err
		}
		return a, errors.New("it has ended")
	}
	if err := json.Unmarshal(p.out.Bytes(), &a); err != nil {
		return a, fmt.Errorf("%q: %w", p.out.Text(), err)
	}
	if a.Error != "" {
		return a, fmt.Errorf("%w: %s", errPeer, a.Error)
	}
	return a, nil
}

// time measures one sample, of one call.
func (p *Peer) time(r *Request) (time.Duration, error) {
	line, err := json.Marshal(r)
	if err != nil {
		return 0, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return 0, fmt.Errorf("peer %s: %w", p.Name, err)
	}
	a, err := p.answer()
	switch {
	case err != nil:
		return 0, fmt.Errorf("peer %s, %s: %w", p.Name, r.Op, err)
	case !(a.Seconds > 0):
		return 0, fmt.Errorf("peer %s, %s: %g seconds", p.Name, r.Op, a.Seconds)
	}
	return time.Duration(a.Seconds * float64(time.Second)), nil
}

// with adds the peer's ways after ours, and reports those it cannot run.
func (p *Peer) with(ways []Way) (all []Way, cannot []error, err error) {
	for _, w := range ways {
		all = append(all, w)
		if p == nil || w.peer == nil {
			continue
		}
		switch _, err := p.time(w.peer); {
		case errors.Is(err, errPeer):
			cannot = append(cannot, err)
			continue
		case err != nil:
			return nil, nil, err
		}
		all = append(all, Way{Name: p.Name, Work: w.Work, Clock: "gpu", timed: func(context.Context) (time.Duration, error) {
			return p.time(w.peer)
		}})
	}
	return all, cannot, nil
}
