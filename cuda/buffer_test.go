package cuda

import (
	"bytes"
	"context"
	"math"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/args"
)

// recorded runs f's work on a stream of its own and waits for it.
func recorded(t testing.TB, d *Device, f func(r *Recording)) {
	t.Helper()
	s, err := d.NewStream(StreamOptions{})
	require.NoError(t, err)
	r, err := s.Begin()
	require.NoError(t, err)
	f(r)
	x, err := r.Submit()
	require.NoError(t, err)
	_, err = x.Wait(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

func roundTrip[T Element](t *testing.T, d *Device, data []T) {
	a, err := Alloc[T](d, len(data))
	require.NoError(t, err)
	b, err := Alloc[T](d, len(data))
	require.NoError(t, err)
	h, err := AllocHost[T](d, len(data))
	require.NoError(t, err)
	require.Equal(t, len(data), a.Len())
	require.Equal(t, len(data), h.Len())
	require.Equal(t, uint64(len(data))*uint64(unsafe.Sizeof(*new(T))), a.Bytes())
	require.Equal(t, args.Ptr(uint64(a.at)), a.Arg())
	require.NoError(t, a.Upload(t.Context(), data))
	recorded(t, d, func(r *Recording) {
		require.NoError(t, CopyOnDevice(r, b, a))
		require.NoError(t, CopyToHost(r, h, b))
	})
	require.Equal(t, raw(data), raw(h.Slice()))
	got := make([]T, len(data))
	require.NoError(t, b.Download(t.Context(), got))
	require.Equal(t, raw(data), raw(got))
	for i := range h.Slice() {
		h.Slice()[i] = data[len(data)-1-i]
	}
	recorded(t, d, func(r *Recording) { require.NoError(t, CopyToDevice(r, a, h)) })
	require.NoError(t, a.Download(t.Context(), got))
	require.Equal(t, raw(h.Slice()), raw(got))
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	require.NoError(t, h.Close())
	require.Nil(t, h.Slice())
}

// raw is a slice as bytes, so that NaNs equal themselves.
func raw[T Element](x []T) []byte {
	return bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(*new(T)))))
}

func TestBuffers(t *testing.T) {
	d := softDevice(t)
	r := randomSource(t)
	nan := math.Float32frombits(0x7fc01234)
	roundTrip(t, d, []int8{math.MinInt8, -1, 0, 1, math.MaxInt8})
	roundTrip(t, d, []int16{math.MinInt16, math.MaxInt16, 3})
	roundTrip(t, d, []int32{math.MinInt32})
	roundTrip(t, d, []int64{math.MinInt64, math.MaxInt64})
	roundTrip(t, d, []uint8("wavelane"))
	roundTrip(t, d, []uint16{0x3c00, 0xfc00, 0x7e00})
	roundTrip(t, d, []uint64{math.MaxUint64, 0})
	roundTrip(t, d, []float32{0, float32(math.Copysign(0, -1)), nan, float32(math.Inf(-1)), math.SmallestNonzeroFloat32})
	roundTrip(t, d, []float64{math.NaN(), math.Inf(1), math.SmallestNonzeroFloat64})
	roundTrip(t, d, []time.Duration{1, -1})
	roundTrip(t, d, []float32{})
	for range 5 {
		roundTrip(t, d, randomWords(r, r.IntN(5000)))
	}
}

func filled[T Element](t *testing.T, d *Device, n int, value T) {
	const guard = 3
	data := make([]T, n+2*guard)
	for i := range data {
		data[i] = T(i%50 + 1)
	}
	b, err := Alloc[T](d, len(data))
	require.NoError(t, err)
	require.NoError(t, b.Upload(t.Context(), data))
	part, err := b.Slice(guard, guard+n)
	require.NoError(t, err)
	recorded(t, d, func(r *Recording) { require.NoError(t, Fill(r, part, value)) })
	for i := range n {
		data[guard+i] = value
	}
	got := make([]T, len(data))
	require.NoError(t, b.Download(t.Context(), got))
	require.Equal(t, raw(data), raw(got), "%d of %v", n, value)
	require.NoError(t, part.Close())
	require.NoError(t, b.Close())
}

func TestFill(t *testing.T) {
	d := softDevice(t)
	r := randomSource(t)
	for _, n := range []int{0, 1, 2, 3, 4, 5, 31, 64, 1000 + r.IntN(1000)} {
		filled(t, d, n, int8(r.Int()))
		filled(t, d, n, uint16(0x3c00)) // 1 in 16 bits
		filled(t, d, n, uint16(0x3c3c))
		filled(t, d, n, float32(math.NaN()))
		filled(t, d, n, r.Uint32())
		filled(t, d, n, float64(0))
		filled(t, d, n, math.Pi)
		filled(t, d, n, uint64(0x1234_5678_1234_5678))
		filled(t, d, n, r.Uint64())
	}
}

func TestSliceSharesMemory(t *testing.T) {
	d := softDevice(t)
	b, err := Alloc[uint32](d, 100)
	require.NoError(t, err)
	s, err := b.Slice(10, 20)
	require.NoError(t, err)
	require.Equal(t, 10, s.Len())
	require.Equal(t, b.at+40, s.at)
	ss, err := s.Slice(10, 10)
	require.NoError(t, err)
	require.Zero(t, ss.Len())
	for _, bad := range [][2]int{{-1, 1}, {3, 2}, {0, 101}, {101, 101}} {
		_, err := b.Slice(bad[0], bad[1])
		require.ErrorIs(t, err, compute.ErrArgument)
	}
	require.NoError(t, b.Close())
	require.NoError(t, ss.Close())
	_, err = b.Slice(0, 1)
	require.ErrorIs(t, err, compute.ErrClosed)
	m, err := d.Memory()
	require.NoError(t, err)
	require.EqualValues(t, 512, m.InUse, "the slice has the memory still")
	require.NoError(t, s.Upload(t.Context(), make([]uint32, 10)))
	require.NoError(t, s.Close())
	d.emptied(t)
}

func TestBufferRefusals(t *testing.T) {
	d, other := softDevice(t), softDevice(t)
	_, err := Alloc[int32](d, -1)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = Alloc[int32](nil, 1)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = AllocHost[int32](nil, 1)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = AllocHost[int32](d, -1)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = Alloc[float64](d, math.MaxInt)
	require.ErrorIs(t, err, compute.ErrTooLarge)
	_, err = Alloc[byte](d, math.MaxInt)
	require.ErrorIs(t, err, compute.ErrOutOfMemory)
	_, err = AllocHost[byte](d, math.MaxInt)
	require.ErrorIs(t, err, compute.ErrOutOfMemory)

	a, err := Alloc[int32](d, 4)
	require.NoError(t, err)
	a5, err := Alloc[int32](d, 5)
	require.NoError(t, err)
	closed, err := Alloc[int32](d, 4)
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	foreign, err := Alloc[int32](other, 4)
	require.NoError(t, err)
	h, err := AllocHost[int32](d, 4)
	require.NoError(t, err)
	h5, err := AllocHost[int32](d, 5)
	require.NoError(t, err)
	hClosed, err := AllocHost[int32](d, 4)
	require.NoError(t, err)
	require.NoError(t, hClosed.Close())
	hForeign, err := AllocHost[int32](other, 4)
	require.NoError(t, err)
	half, err := a5.Slice(0, 3)
	require.NoError(t, err)
	overlap, err := a5.Slice(2, 5)
	require.NoError(t, err)

	var none *Buffer[int32]
	var hNone *HostBuffer[int32]
	s, err := d.NewStream(StreamOptions{})
	require.NoError(t, err)
	for i, c := range []struct {
		want error
		f    func(r *Recording) error
	}{
		{compute.ErrClosed, func(r *Recording) error { return CopyToDevice(r, closed, h) }},
		{compute.ErrClosed, func(r *Recording) error { return CopyToDevice(r, a, hClosed) }},
		{compute.ErrForeignTensor, func(r *Recording) error { return CopyToDevice(r, foreign, h) }},
		{compute.ErrForeignTensor, func(r *Recording) error { return CopyToDevice(r, a, hForeign) }},
		{compute.ErrShape, func(r *Recording) error { return CopyToDevice(r, a, h5) }},
		{compute.ErrArgument, func(r *Recording) error { return CopyToDevice(r, none, h) }},
		{compute.ErrArgument, func(r *Recording) error { return CopyToDevice(r, a, hNone) }},
		{compute.ErrClosed, func(r *Recording) error { return CopyToHost(r, hClosed, a) }},
		{compute.ErrShape, func(r *Recording) error { return CopyToHost(r, h, a5) }},
		{compute.ErrForeignTensor, func(r *Recording) error { return CopyToHost(r, h, foreign) }},
		{compute.ErrShape, func(r *Recording) error { return CopyOnDevice(r, a, a5) }},
		{compute.ErrArgument, func(r *Recording) error { return CopyOnDevice(r, half, overlap) }},
		{compute.ErrForeignTensor, func(r *Recording) error { return CopyOnDevice(r, a, foreign) }},
		{compute.ErrClosed, func(r *Recording) error { return Fill(r, closed, 1) }},
		{compute.ErrShape, func(r *Recording) error { return CopyPeer(r, a5, a) }},
		{compute.ErrClosed, func(r *Recording) error { return CopyPeer(r, a, closed) }},
		{compute.ErrForeignTensor, func(r *Recording) error { return CopyPeer(r, foreign, a) }},
		{compute.ErrForeignTensor, func(r *Recording) error { return CopyPeer(r, a, foreign) }}, // of another machine
	} {
		r, err := s.Begin()
		require.NoError(t, err)
		require.ErrorIs(t, c.f(r), c.want, "case %d", i)
		_, err = r.Submit()
		require.ErrorIs(t, err, c.want, "case %d: the recording knows", i)
		err = Fill(r, a, 0)
		require.ErrorIs(t, err, compute.ErrClosed, "case %d: after the recording", i)
	}
	require.ErrorIs(t, a.Upload(t.Context(), make([]int32, 3)), compute.ErrShape)
	require.ErrorIs(t, a.Download(t.Context(), nil), compute.ErrShape)
	require.ErrorIs(t, closed.Upload(t.Context(), make([]int32, 4)), compute.ErrClosed)
	require.ErrorIs(t, closed.Download(t.Context(), make([]int32, 4)), compute.ErrClosed)
	require.ErrorIs(t, none.Upload(t.Context(), nil), compute.ErrArgument)
	require.Equal(t, args.Closed(), closed.Arg())
	for _, b := range []*Buffer[int32]{a, a5, foreign, half, overlap} {
		require.NoError(t, b.Close())
	}
	for _, b := range []*HostBuffer[int32]{h, h5, hForeign} {
		require.NoError(t, b.Close())
	}
	require.NoError(t, s.Close())
	d.emptied(t)
	other.emptied(t)
}

// Whoever stops waiting has its memory for itself.
func TestTransferCancelled(t *testing.T) {
	d := softDevice(t)
	g := newGate(t, d)
	b, err := Alloc[uint32](d, 512)
	require.NoError(t, err)
	require.NoError(t, b.Upload(t.Context(), make([]uint32, 512)))
	d.in(t, func() { g.shut(d.defaultStream.handle) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	data := slices.Repeat([]uint32{7}, 512)
	require.ErrorIs(t, b.Upload(ctx, data), context.DeadlineExceeded)
	require.ErrorIs(t, b.Download(ctx, data), context.DeadlineExceeded)
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	require.ErrorIs(t, b.Download(ctx, data), context.Canceled)
	g.open()
	require.NoError(t, d.Synchronize())
	require.EqualValues(t, 7, data[0])
	require.NoError(t, b.Download(context.Background(), data))
	require.Zero(t, data[0])
	require.NoError(t, b.Close())
}

// Transfers come after what any stream was given before.
func TestTransferOrder(t *testing.T) {
	d := softDevice(t)
	g := newGate(t, d)
	s, err := d.NewStream(StreamOptions{})
	require.NoError(t, err)
	b, err := Alloc[uint32](d, 512)
	require.NoError(t, err)
	data := randomWords(randomSource(t), 512)
	after := append(data[256:len(data):len(data)], data[256:]...)
	require.NoError(t, b.Upload(t.Context(), data))
	d.in(t, func() {
		g.shut(s.handle)
		g.move(s.handle, b.at, b.at+1024)
	})
	g.late()
	got := make([]uint32, 512)
	require.NoError(t, b.Download(t.Context(), got))
	require.Equal(t, after, got)
	d.in(t, func() {
		g.shut(s.handle)
		g.move(s.handle, b.at, b.at+1024)
	})
	g.late()
	require.NoError(t, b.Upload(t.Context(), data)) // not before the kernel has written
	require.NoError(t, b.Download(t.Context(), got))
	require.Equal(t, data, got)
	require.NoError(t, b.Close())
	require.NoError(t, s.Close())
}
