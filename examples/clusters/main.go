//go:build !js

// Clusters computes a k-means clustering and a histogram, each as one batch: the updates of 64 centres and of 256 bins are sums by
// index, whose time grows with the number of points and values whatever centres and bins they are for. It does so at three sizes,
// checks every result against plain Go, and prints the times.
//
//	go run ./examples/clusters
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"time"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

const (
	clusters   = 64
	width      = 4 // coordinates of a point
	iterations = 3
	bins       = 256
)

func main() {
	device := flag.String("device", "", "cpu, gpu or another name that wavelane.WithDevice knows; by default the best of this machine")
	software := flag.Bool("software", false, "where there is no GPU, run WebGPU on a software adapter")
	points := flag.Int("points", 1_000_000, "most points to cluster")
	values := flag.Int("values", 10_000_000, "most values to count")
	flag.Parse()
	opts := []wavelane.Option{wavelane.WithoutRouting()}
	if *device != "" {
		opts = append(opts, wavelane.WithDevice(*device))
	}
	if *software {
		opts = append(opts, wavelane.WithSoftware())
	}
	ctx := context.Background()
	dev, err := wavelane.Open(ctx, opts...)
	if err == nil {
		defer dev.Close()
		fmt.Println(dev.Explain())
		err = run(ctx, os.Stdout, dev, *points, *values)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "clusters:", err)
		os.Exit(1)
	}
}

// run computes both at a hundredth of the sizes, a tenth, and the sizes themselves.
func run(ctx context.Context, w io.Writer, dev batch.Device, points, values int) error {
	for _, part := range []int{100, 10, 1} {
		took, err := kMeans(ctx, dev, points/part)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "k-means, %d iterations, %d clusters of %9d points: %v\n", iterations, clusters, points/part, took.Round(time.Microsecond))
	}
	for _, part := range []int{100, 10, 1} {
		took, err := histogram(ctx, dev, values/part)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "histogram, %d bins of %9d samples: %v\n", bins, values/part, took.Round(time.Microsecond))
	}
	return nil
}

// timed runs a batch twice, the first time to warm up.
func timed(ctx context.Context, b *batch.Batch) (time.Duration, error) {
	plan, err := b.Compile(ctx)
	if err != nil {
		return 0, err
	}
	defer plan.Close()
	if err := plan.Run(ctx); err != nil {
		return 0, err
	}
	start := time.Now()
	err = plan.Run(ctx)
	return time.Since(start), err
}

// kMeans clusters n points by Lloyd's iteration: each centre becomes the mean of the points that are nearest to it.
func kMeans(ctx context.Context, dev batch.Device, n int) (time.Duration, error) {
	points, first := makePoints(n)
	b := batch.New(dev)
	x, centres := b.Upload(points, n, width), b.Upload(first, clusters, width)
	ones := b.Fill(1, n, 1)
	for range iterations {
		// |x − c|² = |x|² − 2 x·c + |c|², of which the first is the same for all centres.
		products := b.Scale(b.MatMul(x, centres, compute.MatMulOptions{TransB: true}), -2)
		nearest := b.ArgMin(b.Add(products, b.SumSquares(centres, compute.LastAxis)), compute.LastAxis)
		sums := b.ScatterAdd(b.Fill(0, clusters, width), nearest, x)
		counts := b.ScatterAdd(b.Fill(0, clusters, 1), nearest, ones)
		centres = b.Div(sums, counts)
	}
	result := b.Read(centres)
	took, err := timed(ctx, b)
	if err != nil {
		return 0, err
	}
	for i, want := range means(points, first) {
		if got := result.Float32s()[i]; !(math.Abs(float64(got)-want) < 1e-4) { // NaN fails too
			return 0, fmt.Errorf("k-means of %d points: coordinate %d is %v, not %v", n, i, got, want)
		}
	}
	return took, nil
}

// makePoints draws points around centres on a grid, half of them around the first one, and gives places near these to begin with.
func makePoints(n int) (points, first []float32) {
	r := rand.New(rand.NewPCG(1, 2))
	for c := range clusters {
		for i := range width {
			first = append(first, float32(c>>(2*i)&3)+0.1)
		}
	}
	for i := range n {
		c := 0
		if i < clusters || i%2 == 0 {
			c = i % clusters
		}
		for j := range width {
			points = append(points, float32(c>>(2*j)&3)+0.4*(r.Float32()-0.5))
		}
	}
	return points, first
}

// means is the k-means of plain Go.
func means(points, first []float32) []float64 {
	centres := make([]float64, len(first))
	for i, v := range first {
		centres[i] = float64(v)
	}
	for range iterations {
		sums, counts := make([]float64, len(first)), make([]float64, clusters)
		for p := 0; p < len(points); p += width {
			nearest, least := 0, math.Inf(1)
			for c := range clusters {
				d := 0.0
				for j := range width {
					e := float64(points[p+j]) - centres[c*width+j]
					d += e * e
				}
				if d < least {
					nearest, least = c, d
				}
			}
			for j := range width {
				sums[nearest*width+j] += float64(points[p+j])
			}
			counts[nearest]++
		}
		for i := range sums {
			centres[i] = sums[i] / counts[i/width]
		}
	}
	return centres
}

// histogram counts n samples of eight bits.
func histogram(ctx context.Context, dev batch.Device, n int) (time.Duration, error) {
	r := rand.New(rand.NewPCG(3, 4))
	samples, want := make([]int32, n), [bins]float32{}
	for i := range samples {
		samples[i] = int32(r.Float32() * r.Float32() * bins) // the first bins have more
		want[samples[i]]++
	}
	b := batch.New(dev)
	counts := b.Read(b.ScatterAdd(b.Fill(0, bins), b.Upload(samples, n), b.Fill(1, n)))
	took, err := timed(ctx, b)
	if err == nil && [bins]float32(counts.Float32s()) != want {
		err = fmt.Errorf("histogram of %d samples: %v, not %v", n, counts.Float32s(), want)
	}
	return took, err
}
