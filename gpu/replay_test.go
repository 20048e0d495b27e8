//go:build cgo && !js

package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
)

// A replay allocates as much for 300 steps as for one.
func TestReplayAllocations(t *testing.T) {
	d := open(t)
	allocs := func(steps int) float64 {
		b := batch.New(d)
		x := b.Upload(make([]float32, 64))
		for range steps {
			x = b.Scale(x, 1.5)
		}
		b.Read(x)
		p, err := b.Compile(ctx)
		require.NoError(t, err)
		defer p.Close()
		return testing.AllocsPerRun(50, func() { require.NoError(t, p.Run(ctx)) })
	}
	one, many := allocs(1), allocs(300)
	t.Log(one, many)
}
