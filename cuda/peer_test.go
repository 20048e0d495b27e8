package cuda

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
)

// twoGPUs is a machine with as many.
func twoGPUs(t *testing.T) *machine {
	t.Helper()
	m := newMachine(t, softgpu.Config{Devices: 2})
	if _, r := m.DeviceGet(1); r != driver.Success {
		t.Skip("the software GPU's driver has one device where threads cannot be told apart: ", runtime.GOOS)
	}
	return m
}

func TestPeerCopy(t *testing.T) {
	m := twoGPUs(t)
	a, b := m.device(t), m.device(t, WithDevice(1))
	g := newGate(t, a)
	data := randomWords(randomSource(t), 512)
	src, err := Alloc[uint32](a, 512)
	require.NoError(t, err)
	dst, err := Alloc[uint32](b, 512)
	require.NoError(t, err)
	require.NoError(t, src.Upload(t.Context(), data))
	s, err := a.NewStream(StreamOptions{})
	require.NoError(t, err)
	a.in(t, func() {
		g.shut(s.handle)
		g.move(s.handle, src.at, src.at+1024)
	})
	// The copy comes after the kernel, on another stream of another device; closing the sources' holders does no harm.
	recorded(t, b, func(r *Recording) {
		require.NoError(t, CopyPeer(r, dst, src))
		require.NoError(t, src.Close())
		g.late()
	})
	got := make([]uint32, 512)
	require.NoError(t, dst.Download(t.Context(), got))
	require.Equal(t, append(data[256:len(data):len(data)], data[256:]...), got)

	empty, err := Alloc[uint32](b, 0)
	require.NoError(t, err)
	none, err := Alloc[uint32](a, 0)
	require.NoError(t, err)
	recorded(t, b, func(r *Recording) { require.NoError(t, CopyPeer(r, empty, none)) })
	for _, c := range []interface{ Close() error }{dst, empty, none, s} {
		require.NoError(t, c.Close())
	}
	a.emptied(t)
	b.emptied(t)
}

// A device that is closed while another one copies from it goes when the copy is done.
func TestPeerCopyOutlivesClose(t *testing.T) {
	m := twoGPUs(t)
	a, err := Open(t.Context(), m.on, WithoutCache())
	require.NoError(t, err)
	b := m.device(t, WithDevice(1))
	g := newGate(t, b)
	data := randomWords(randomSource(t), 256)
	src, err := Alloc[uint32](a, 256)
	require.NoError(t, err)
	dst, err := Alloc[uint32](b, 512)
	require.NoError(t, err)
	require.NoError(t, src.Upload(t.Context(), data))
	half, err := dst.Slice(0, 256)
	require.NoError(t, err)
	recorded(t, b, func(r *Recording) {
		b.in(t, func() { g.shut(r.s.handle) })
		require.NoError(t, CopyPeer(r, half, src))
		require.NoError(t, src.Close())
		require.NoError(t, a.Close())
		g.late()
	})
	got := make([]uint32, 256)
	require.NoError(t, half.Download(t.Context(), got))
	require.Equal(t, data, got)
	_, err = Alloc[uint32](a, 1)
	require.ErrorIs(t, err, compute.ErrClosed)
	require.NoError(t, half.Close())
	require.NoError(t, dst.Close())
}

func TestPeerAccess(t *testing.T) {
	m := twoGPUs(t)
	a, b, again := m.device(t), m.device(t, WithDevice(1)), m.device(t)
	can, err := CanAccessPeer(a, b) // software GPUs cannot
	require.NoError(t, err)
	require.False(t, can)
	require.ErrorIs(t, EnablePeer(a, b), compute.ErrUnsupported)
	for _, same := range []*Device{a, again} {
		can, err := CanAccessPeer(a, same)
		require.NoError(t, err)
		require.True(t, can)
		require.NoError(t, EnablePeer(a, same))
	}
	other := softDevice(t)
	_, err = CanAccessPeer(a, other)
	require.ErrorIs(t, err, compute.ErrForeignTensor)
	require.ErrorIs(t, EnablePeer(a, other), compute.ErrForeignTensor)
	require.ErrorIs(t, EnablePeer(nil, a), compute.ErrArgument)
	closed, err := Open(t.Context(), m.on, WithoutCache())
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	require.ErrorIs(t, EnablePeer(closed, closed), compute.ErrClosed)
}

// peers is a machine whose GPUs say that they reach each other.
type peers struct {
	*softgpu.GPU
	enabled map[[2]driver.Context]bool
}

func (p *peers) DeviceCanAccessPeer(d, peer driver.Device) (bool, driver.Result) {
	return true, driver.Success
}

func (p *peers) CtxEnablePeerAccess(peer driver.Context) driver.Result {
	c, r := p.CtxGetCurrent()
	if r != driver.Success {
		return r
	}
	pair := [2]driver.Context{c, peer}
	if p.enabled[pair] {
		return driver.PeerAccessAlreadyEnabled
	}
	p.enabled[pair] = true
	return driver.Success
}

func TestEnablePeer(t *testing.T) {
	m := twoGPUs(t)
	drv := &peers{m.GPU, map[[2]driver.Context]bool{}}
	var d [2]*Device
	for i := range d {
		var err error
		d[i], err = Open(t.Context(), func(c *config) error {
			c.load = func() (driver.Driver, error) { return drv, nil }
			return nil
		}, WithDevice(i), WithoutCache())
		require.NoError(t, err)
		defer d[i].Close()
	}
	for range 2 {
		require.NoError(t, EnablePeer(d[0], d[1]))
	}
	require.Equal(t, map[[2]driver.Context]bool{{d[0].handle, d[1].handle}: true}, drv.enabled, "one direction")
}
