//go:build !(linux && !android && (amd64 || arm64))

package nccl

import (
	"context"
	"fmt"
	"runtime"
	"unsafe"
)

// Library exists where NCCL can be called.
type Library struct{ never }

// Comm exists where NCCL can be called.
type Comm struct{ never }

// never is of no use: there are no values of the types that embed it.
type never struct{}

// Open fails.
func Open(...string) (*Library, error) {
	return nil, fmt.Errorf("%w: there is no binding for %s/%s", ErrMissing, runtime.GOOS, runtime.GOARCH)
}

func (never) Path() (s string)                                                    { return }
func (never) Version() (s string)                                                 { return }
func (never) UniqueID() (id ID, err error)                                        { return id, ErrMissing }
func (never) NewComm(ID, int, int) (*Comm, error)                                 { return nil, ErrMissing }
func (never) Group(func() error) error                                            { return ErrMissing }
func (never) Split(int, int, int, int) (*Comm, error)                             { return nil, ErrMissing }
func (never) Rank() (n int)                                                       { return }
func (never) Size() (n int)                                                       { return }
func (never) Settle(context.Context) error                                        { return ErrMissing }
func (never) Check() error                                                        { return ErrMissing }
func (never) Abort() error                                                        { return ErrMissing }
func (never) Close(context.Context) error                                         { return ErrMissing }
func (never) AllReduce(_, _ unsafe.Pointer, _ int, _ Type, _ Op, _ uintptr) error { return ErrMissing }
func (never) AllGather(_, _ unsafe.Pointer, _ int, _ uintptr) error               { return ErrMissing }
func (never) ReduceScatter(_, _ unsafe.Pointer, _ int, _ Type, _ Op, _ uintptr) error {
	return ErrMissing
}
func (never) Broadcast(_, _ unsafe.Pointer, _, _ int, _ uintptr) error { return ErrMissing }
func (never) Send(unsafe.Pointer, int, int, uintptr) error             { return ErrMissing }
func (never) Recv(unsafe.Pointer, int, int, uintptr) error             { return ErrMissing }
