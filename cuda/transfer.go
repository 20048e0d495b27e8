package cuda

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// Upload copies data, as long as the buffer, to the device: after all that has been submitted to the device so far, and waits
// until it is done. If ctx ends while earlier work is awaited, nothing is copied. To copy without waiting, see
// [CopyToDevice].
func (b *Buffer[T]) Upload(ctx context.Context, data []T) error {
	return b.transfer(ctx, "upload", data, func(d *state, bytes []byte) error {
		if err := d.stager.upload(b.at, bytes, d.stager.stream); err != nil {
			return err
		}
		return d.check("cuStreamSynchronize", d.drv.StreamSynchronize(d.stager.stream))
	})
}

// Download copies the elements to data, as long as the buffer: after all that has been submitted to the device so far, and
// waits until it is done. If ctx ends while earlier work is awaited, nothing is copied. To copy without waiting, see
// [CopyToHost].
func (b *Buffer[T]) Download(ctx context.Context, data []T) error {
	return b.transfer(ctx, "download", data, func(d *state, bytes []byte) error {
		return d.stager.download(bytes, b.at, d.stager.stream)
	})
}

func (b *Buffer[T]) transfer(ctx context.Context, what string, data []T, move func(d *state, bytes []byte) error) error {
	m, err := b.acquire(nil)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer m.release()
	if len(data) != b.n {
		return fmt.Errorf("%s: %d elements for a buffer of %d: %w", what, len(data), b.n, compute.ErrShape)
	}
	d := b.dev.state
	err = d.settled(ctx, func() error {
		if err := d.enter(); err != nil {
			return err
		}
		defer d.leave()
		return move(d, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), b.Bytes()))
	})
	if err != nil {
		return fmt.Errorf("%s of %d elements of %T: %w", what, b.n, *new(T), err)
	}
	return nil
}

// settled waits until all that was submitted to the device so far is done, then runs f.
func (d *state) settled(ctx context.Context, f func() error) error {
	if err := d.lifetime().Begin(); err != nil {
		return err
	}
	defer d.life.End()
	if err := compute.CheckContext(ctx); err != nil {
		return err
	}
	events, err := d.mark()
	if err != nil {
		return err
	}
	if err := d.awaitEvents(ctx, events); err != nil {
		return err
	}
	return f()
}

// mark returns events after what all streams have been given, for awaitEvents.
func (d *state) mark() ([]driver.Event, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	return d.pool.mark()
}

// awaitEvents waits for events of the pool, which then has them back, or until ctx ends.
func (d *state) awaitEvents(ctx context.Context, events []driver.Event) error {
	wait := func() (err error) {
		for _, e := range events {
			if err == nil {
				err = d.awaitEvent(e)
			}
		}
		d.pool.putEvents(events)
		return err
	}
	if ctx.Done() == nil {
		return wait()
	}
	done := make(chan error, 1)
	d.life.Extend()
	go func() {
		defer d.life.End()
		done <- wait()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
