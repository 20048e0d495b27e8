//go:build linux && (amd64 || arm64)

package nccl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/dist/internal/nccl/nccltest"
)

// stream is what the test's library takes for one.
const stream = 1

func open(t *testing.T, version int) *Library {
	t.Helper()
	path, err := nccltest.Build(t.TempDir(), version)
	require.NoError(t, err)
	l, err := Open("libnothing.so.1", path)
	require.NoError(t, err)
	require.Equal(t, path, l.Path())
	return l
}

// ranks calls do for every rank of a communicator, each on a thread of its own.
func ranks(ctx context.Context, l *Library, n int, do func(c *Comm) error) error {
	id, err := l.UniqueID()
	if err != nil {
		return err
	}
	errs := make(chan error, n)
	for r := range n {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			c, err := l.NewComm(id, r, n)
			if err == nil {
				err = c.Settle(ctx)
			}
			if err == nil {
				err = do(c)
			}
			if err == nil {
				err = c.Close(ctx)
			}
			errs <- err
		}()
	}
	for range n {
		err = errors.Join(err, <-errs)
	}
	return err
}

// TestComm makes every call, with a library that takes a pointer to the id and with an older one that takes the id by value.
func TestComm(t *testing.T) {
	for version, text := range map[int]string{22703: "2.27.3", 21805: "2.18.5"} {
		l := open(t, version)
		require.Equal(t, text, l.Version())
		require.NoError(t, ranks(t.Context(), l, 3, func(c *Comm) error { return calls(t.Context(), l, c) }))
	}
	l := open(t, 22300)
	require.Equal(t, uintptr(48), unsafe.Sizeof(config{}))
	_, err := l.NewComm(ID{}, 0, 1)
	var failed *Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "ncclCommInitRankScalable: invalid argument: id (code 4)", err.Error())
}

func calls(ctx context.Context, l *Library, c *Comm) error {
	rank, size := c.Rank(), c.Size()
	x, y := make([]int32, 8), make([]int32, 8*size)
	set := func(from int32) {
		for i := range x {
			x[i] = from + int32(i)
		}
	}
	px, py := unsafe.Pointer(&x[0]), unsafe.Pointer(&y[0])
	// then waits and compares elements.
	then := func(err error, name string, want func(i int) int32, got []int32) error {
		if err == nil {
			err = c.Settle(ctx)
		}
		for i, v := range got {
			if err == nil && v != want(i) {
				err = fmt.Errorf("rank %d, element %d is %d, not %d", rank, i, v, want(i))
			}
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		return err
	}
	const step = 100 // between ranks
	set(int32(step * rank))
	for _, r := range []struct {
		op   Op
		want func(i int) int32
	}{{Sum, func(i int) int32 { return int32(step*size*(size-1)/2 + size*i) }}, {Max, func(i int) int32 { return int32(step*(size-1) + i) }},
		{Min, func(i int) int32 { return int32(i) }}} {
		if err := then(c.AllReduce(py, px, 8, Int32, r.op, stream), "AllReduce", r.want, y[:8]); err != nil {
			return err
		}
	}
	for i := range y {
		y[i] = int32(step*rank + i)
	}
	err := c.ReduceScatter(px, py, 8, Int32, Sum, stream)
	if err := then(err, "ReduceScatter", func(i int) int32 { return int32(step*size*(size-1)/2 + size*(8*rank+i)) }, x); err != nil {
		return err
	}
	set(int32(step * rank))
	floats := []float32{float32(rank), 0.5}
	pf := unsafe.Pointer(&floats[0])
	if err := then(c.AllReduce(pf, pf, 2, Float32, Sum, stream), "AllReduce of float32", nil, nil); err != nil {
		return err
	}
	if floats[0] != float32(size*(size-1)/2) || floats[1] != 0.5*float32(size) {
		return fmt.Errorf("the sum is %v", floats)
	}
	if err := then(c.AllReduce(pf, pf, 2, Float32, Avg, stream), "AllReduce of float32", nil, nil); err != nil {
		return err
	}
	if floats[0] != float32(size*(size-1)/2) || floats[1] != 0.5*float32(size) {
		return fmt.Errorf("the mean of equal numbers is %v", floats)
	}
	if err := then(c.AllGather(py, px, 32, stream), "AllGather", func(i int) int32 { return int32(step*(i/8) + i%8) }, y); err != nil {
		return err
	}
	for i := range y {
		y[i] = int32(step*rank + i)
	}
	in := make([]int32, 8*size)
	err = l.Group(func() (err error) {
		for p := range size {
			err = errors.Join(err, c.Send(unsafe.Pointer(&y[8*p]), 32, p, stream), c.Recv(unsafe.Pointer(&in[8*p]), 32, p, stream))
		}
		return err
	})
	if err := then(err, "messages", func(i int) int32 { return int32(step*(i/8) + 8*rank + i%8) }, in); err != nil {
		return err
	}
	set(int32(step * rank))
	if err := then(c.Broadcast(px, px, 32, 1, stream), "Broadcast", func(i int) int32 { return int32(step + i) }, x); err != nil {
		return err
	}
	half, err := c.Split(rank%2, -rank, (size+1-rank%2)/2-1-rank/2, (size+1-rank%2)/2)
	if err := then(err, "Split", nil, nil); err != nil {
		return err
	}
	if err := half.Settle(ctx); err != nil {
		return err
	}
	set(int32(rank))
	if err := half.AllGather(py, px, 4, stream); err != nil {
		return err
	}
	if err := half.Settle(ctx); err != nil {
		return err
	}
	if y[half.Rank()] != int32(rank) || half.Rank() > 0 && y[0] != int32(rank+2*half.Rank()) {
		return fmt.Errorf("rank %d: half has %v", rank, y[:half.Size()])
	}
	return half.Close(ctx)
}

// TestAbort has one rank wait for another: until its context ends while a communicator is made, and until it is aborted in a collective.
func TestAbort(t *testing.T) {
	l := open(t, 22300)
	id, err := l.UniqueID()
	require.NoError(t, err)
	c, err := l.NewComm(id, 0, 2)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.Settle(ctx), context.DeadlineExceeded)
	require.NoError(t, c.Abort())
	require.NoError(t, c.Abort())
	require.ErrorIs(t, c.Settle(t.Context()), errGone)

	alone := make(chan bool)
	err = ranks(t.Context(), l, 2, func(c *Comm) error {
		if c.Rank() == 1 {
			<-alone
			return c.Abort()
		}
		x := make([]byte, 4)
		if err := c.Broadcast(unsafe.Pointer(&x[0]), unsafe.Pointer(&x[0]), 4, 0, stream); err != nil {
			return err
		}
		time.AfterFunc(20*time.Millisecond, func() { c.Abort(); close(alone) })
		return c.Settle(t.Context())
	})
	require.ErrorIs(t, err, errGone)
}

func TestOpenErrors(t *testing.T) {
	_, err := Open("libnothing.so.1")
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, "libnothing.so.1")
	path, err := nccltest.Build(t.TempDir(), 21700)
	require.NoError(t, err)
	_, err = Open(path)
	require.ErrorContains(t, err, "2.18 or newer")
}

// TestPrototypes compiles the test's library, which has every function that is called, with NVIDIA's header.
func TestPrototypes(t *testing.T) {
	header, err := nccltest.Header()
	require.NoError(t, err)
	require.FileExists(t, header, "scripts/setup test installs it")
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "cuda_runtime.h"),
		[]byte("typedef struct CUstream_st *cudaStream_t;\ntypedef struct CUevent_st *cudaEvent_t;\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "cuda_fp16.h"), nil, 0o600))
	for _, version := range []int{22300, 21800} {
		_, err = nccltest.Build(folder, version, "-Wmissing-declarations", "-isystem", folder, fmt.Sprintf("-DNCCL_H=%q", header))
		require.NoError(t, err)
	}
}
