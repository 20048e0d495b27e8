package softgpu_test

import (
	"testing"

	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/ptx/sim"

	"github.com/stretchr/testify/require"
)

// TestRoundTrip copies numbers to the device, runs a kernel over them, and copies them back.
func TestRoundTrip(t *testing.T) {
	rng := random(t)
	for _, cfg := range []sim.Config{{}, {Checks: sim.AllChecks, Seed: rng.Uint64()}} {
		r := newRig(t, softgpu.Config{Sim: cfg})
		n := 1 + rng.IntN(5000)
		x := r.alloc(4 * n)
		host, p := r.pinned(n)
		want := make([]uint32, n)
		for i := range host {
			host[i] = rng.Uint32()
			want[i] = host[i] + 7
		}
		for _, s := range []driver.Stream{0, r.stream()} {
			r.ok(r.MemcpyHtoDAsync(x, p, uint64(4*n), s))
			l := one(256, x, n, 7)
			l.Grid[0] = uint32(n+255) / 256
			r.ok(r.LaunchKernel(r.fn("add"), l, s))
			r.ok(r.MemcpyDtoHAsync(p, x, uint64(4*n), s))
			r.ok(r.StreamSynchronize(s))
			require.Equal(t, want, host)
			for i := range want {
				want[i] += 7
			}
			if s != 0 {
				r.ok(r.StreamDestroy(s))
			}
		}
		r.free(x)
		r.ok(r.MemFreeHost(p))
	}
}
