package cuda

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// CanAccessPeer reports whether kernels of a may be allowed to use memory of b directly; see [EnablePeer]. Copies work
// without.
func CanAccessPeer(a, b *Device) (bool, error) {
	ok, err := canAccessPeer(a, b)
	if err != nil {
		return false, fmt.Errorf("peer access: %w", err)
	}
	return ok, nil
}

func canAccessPeer(a, b *Device) (can bool, err error) {
	err = bothOpen(a, b, func() error {
		if a.primary == b.primary {
			can = true
			return nil
		}
		var r driver.Result
		can, r = a.drv.DeviceCanAccessPeer(a.primary.device, b.primary.device)
		return a.check("cuDeviceCanAccessPeer", r)
	})
	return can, err
}

// EnablePeer allows kernels and copies of a to use memory of b directly; the other direction is another call. Errors wrap
// compute.ErrUnsupported where the hardware cannot do it. It is idempotent.
func EnablePeer(a, b *Device) error {
	can, err := canAccessPeer(a, b)
	if err == nil && !can {
		err = fmt.Errorf("device %d cannot reach the memory of device %d: %w", a.info.Ordinal, b.info.Ordinal,
			compute.ErrUnsupported)
	}
	if err == nil && a.primary != b.primary {
		err = bothOpen(a, b, func() error {
			if err := a.enter(); err != nil {
				return err
			}
			defer a.leave()
			r := a.drv.CtxEnablePeerAccess(b.handle)
			if r == driver.PeerAccessAlreadyEnabled {
				return nil
			}
			return a.check("cuCtxEnablePeerAccess", r)
		})
	}
	if err != nil {
		return fmt.Errorf("peer access: %w", err)
	}
	return nil
}

// bothOpen runs f while neither device can go away.
func bothOpen(a, b *Device, f func() error) error {
	if a == nil || b == nil || a.state == nil || b.state == nil {
		return fmt.Errorf("nil device: %w", compute.ErrArgument)
	}
	if a.drv != b.drv {
		return fmt.Errorf("devices of different drivers: %w", compute.ErrForeignTensor)
	}
	if err := a.life.Begin(); err != nil {
		return err
	}
	defer a.life.End()
	if err := b.life.Begin(); err != nil {
		return err
	}
	defer b.life.End()
	return f()
}

// CopyPeer records, on a stream of dst's device, a copy from another device's buffer, after all work submitted to that device
// so far. Later work there does not wait for the copy: before src changes, wait for the recorded work. Lengths have to be
// equal; buffers of one device must not overlap. Either may be closed once this has returned.
func CopyPeer[T Element](r *Recording, dst, src *Buffer[T]) error {
	w := workOf(r)
	if err := w.use("peer copy", dst, peer[T]{src}); err != nil || dst.n == 0 {
		return err
	}
	if src.dev.primary == dst.dev.primary && overlap(dst, src) {
		return w.refused("peer copy", errOverlap)
	}
	return w.note(w.copyPeer(dst.at, src.at, src.dev.state, dst.Bytes()))
}

// peer is a buffer of another device.
type peer[T Element] struct{ *Buffer[T] }

// keptBy keeps the other device open, too.
func (p peer[T]) keptBy(w *work) error {
	m, err := p.acquire(nil)
	if err != nil {
		return err
	}
	d := p.dev.state
	if d.drv != w.s.d.drv {
		err = fmt.Errorf("devices of different drivers: %w", compute.ErrForeignTensor)
	} else {
		err = d.life.Begin()
	}
	if err != nil {
		m.release()
		return err
	}
	w.keep(m)
	w.keep(reservation{d})
	return nil
}

// reservation keeps a device open.
type reservation struct{ d *state }

func (r reservation) release() { r.d.life.End() }

// copyPeer makes the stream wait for the streams of the source's device.
func (w *work) copyPeer(dst, src driver.Ptr, from *state, bytes uint64) error {
	events, err := from.mark()
	if err != nil {
		return err
	}
	defer from.pool.putEvents(events) // waits take events as they are now
	return w.do(func(drv driver.Driver, s driver.Stream) error {
		for _, e := range events {
			if err := w.s.d.check("cuStreamWaitEvent", drv.StreamWaitEvent(s, e)); err != nil {
				return err
			}
		}
		r := drv.MemcpyPeerAsync(dst, w.s.d.handle, src, from.handle, bytes, s)
		return w.s.d.check("cuMemcpyPeerAsync", r)
	})
}
