package program

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/wavelane/wavelane/compute"
)

// ErrLater is the error of what cannot be had without waiting for it.
var ErrLater = errors.New("not without waiting")

// Now is the context of callers that must not wait at all. It has ended, with ErrLater.
var Now context.Context = now{}

type now struct{}

var ended = make(chan struct{})

func init() { close(ended) }

func (now) Deadline() (time.Time, bool) { return time.Time{}, true }
func (now) Done() <-chan struct{}       { return ended }
func (now) Err() error                  { return ErrLater }
func (now) Value(any) any               { return nil }

// Later begins a run when compile has returned, for which it does not wait. Slices of io are read until the future is done or abandoned;
// its tensors may not be what a program changes or makes, since other programs do not wait for it.
func Later(compile func() (Executable, error), io *IO) *compute.Future {
	var (
		mu        sync.Mutex // held while the run is started, which reads the slices
		run       *compute.Future
		abandoned bool
	)
	f, resolve := compute.NewFuture(func() {
		mu.Lock()
		defer mu.Unlock()
		abandoned = true
		if run != nil {
			_ = run.AwaitOrAbandon(Now)
		}
	})
	go func() {
		x, err := compile()
		if err != nil {
			resolve(err, nil)
			return
		}
		mu.Lock()
		if !abandoned {
			run = x.Start(io)
		}
		mu.Unlock()
		x.Close() // the run in flight finishes
		if run == nil {
			resolve(context.Canceled, nil)
			return
		}
		<-run.Done()
		resolve(run.Err(), nil)
	}()
	return f
}
