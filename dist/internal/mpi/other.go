//go:build !(linux && !android && (amd64 || arm64))

package mpi

import (
	"fmt"
	"runtime"
)

// Process exists where MPI can be called.
type Process struct{ never }

// Comm exists where MPI can be called.
type Comm struct{ never }

// never is of no use: there are no values of the types that embed it.
type never struct{}

// Start fails.
func Start([]string) (*Process, error) {
	return nil, fmt.Errorf("%w: there is no binding for %s/%s", ErrMissing, runtime.GOOS, runtime.GOARCH)
}

func (never) Info() (i Info)                                               { return }
func (never) World() (c *Comm)                                             { return }
func (never) Run(<-chan struct{}, func() error) error                      { return ErrMissing }
func (never) Buffer(<-chan struct{}) (*Buffer, error)                      { return nil, ErrMissing }
func (never) Release(*Buffer)                                              {}
func (never) Abort(int)                                                    {}
func (never) Finalize(<-chan struct{}) error                               { return ErrMissing }
func (never) Rank() (n int)                                                { return }
func (never) Size() (n int)                                                { return }
func (never) Barrier(<-chan struct{}) error                                { return ErrMissing }
func (never) AllReduce(_ <-chan struct{}, _, _ []byte, _ Type, _ Op) error { return ErrMissing }
func (never) AllGather(_ <-chan struct{}, _, _ *Buffer, _ int) error       { return ErrMissing }
func (never) AllToAll(_ <-chan struct{}, _, _ *Buffer, _ int) error        { return ErrMissing }
func (never) Broadcast(<-chan struct{}, *Buffer, int, int) error           { return ErrMissing }
func (never) Split(int, int) (*Comm, error)                                { return nil, ErrMissing }
func (never) SplitShared() (*Comm, error)                                  { return nil, ErrMissing }
func (never) Free() error                                                  { return ErrMissing }
func (never) Send(<-chan struct{}, *Buffer, int, int) error                { return ErrMissing }
func (never) Receive(<-chan struct{}, *Buffer, int, int) error             { return ErrMissing }
