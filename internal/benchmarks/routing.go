//go:build !js

package benchmarks

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/internal/monotime"
)

// longest is up to how many elements routing is measured; the test takes fewer.
var longest = 10_000_000

// routing compares the device chosen for programs with all that could be chosen: single operations on slices, from a few
// elements to many.
func routing() (list []Benchmark) {
	for _, o := range []struct {
		name string
		run  func(ctx context.Context, dev *wavelane.Device, y, x []float32) error
	}{
		{"add", func(ctx context.Context, dev *wavelane.Device, y, x []float32) error { return dev.Add(ctx, y, x, x) }},
		{"softmax", func(ctx context.Context, dev *wavelane.Device, y, x []float32) error {
			n := edge(len(x))
			return dev.Softmax(ctx, y, x, n, n)
		}},
		{"matmul", func(ctx context.Context, dev *wavelane.Device, y, x []float32) error {
			n := edge(len(x))
			return dev.MatMul(ctx, y, x, x, n, n, n)
		}},
	} {
		for n := 10; n <= longest; n *= 10 {
			list = append(list, Benchmark{Name: fmt.Sprintf("routing/%s/%d", o.name, n), Kinds: []string{routed},
				Doc: fmt.Sprintf("%s of about %d float32 on slices: where the device puts it, and on each of its devices", o.name, n),
				prepare: func(ctx context.Context, dev *wavelane.Device, _ *cleanups) ([]Way, error) {
					n := edge(n) * edge(n)
					x, y := random(n), make([]float32, n)
					way := func(name string, dev *wavelane.Device) Way {
						run := func(ctx context.Context) error { return o.run(ctx, dev, y, x) }
						return Way{Name: name, run: run, before: func(ctx context.Context) error { // after itself, not after another device
							for start := monotime.Now(); monotime.Since(start) < 2*time.Millisecond; {
								if err := run(ctx); err != nil {
									return err
								}
							}
							return nil
						}}
					}
					ways := []Way{way("routed", dev)}
					for _, kind := range []string{"cpu", dev.Info().Kind} {
						only, err := dev.On(kind)
						if err != nil {
							return nil, err
						}
						ways = append(ways, way(kind, only))
					}
					return ways, nil
				}})
		}
	}
	return list
}

// edge is that of a square of about n elements.
func edge(n int) int { return int(math.Sqrt(float64(n))) }
