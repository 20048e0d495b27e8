//go:build !js

package benchmarks

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/simd/peaks"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/simd"
)

// CPUKernel is what a kernel takes on some threads, beside what the cores do at their full rate in the same run.
type CPUKernel struct {
	Kernel  string  `json:"kernel"`
	Tier    string  `json:"tier"`
	Threads int     `json:"threads"`
	NS      float64 `json:"ns"`   // of a call, the least of all
	Rate    float64 `json:"rate"` // 10⁹ operations or bytes per second
	Unit    string  `json:"unit"` // GFLOPS or GB/s
	Bound   string  `json:"bound"`
	Peak    float64 `json:"peak"`  // the rate of the bound
	Share   float64 `json:"share"` // Rate ÷ Peak
}

// What a kernel is measured beside, on one thread or on several, whichever is faster.
const (
	boundFlops = "multiply-add" // as many floating-point operations
	boundRead  = "read"         // as many bytes, read and dropped
	boundCopy  = "copy"         // as many bytes, half of them read, half written
)

// cpuKernel is a kernel to be measured.
type cpuKernel struct {
	name  string
	bound string
	work  float64 // operations or bytes of a call
	open  func(ctx context.Context, threads int) (run func() error, close func(), err error)
}

// plain is a kernel of package simd.
func plain(name, bound string, work float64, make func() func()) cpuKernel {
	return cpuKernel{name, bound, work, func(context.Context, int) (func() error, func(), error) {
		f := make()
		return func() error { f(); return nil }, func() {}, nil
	}}
}

func cpuKernels() []cpuKernel {
	floats := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(i%17)/16 - 0.5
		}
		return x
	}
	var all []cpuKernel
	for _, n := range []int{32, 64, 128, 256, 512, 1024, 2048} {
		all = append(all, plain(fmt.Sprintf("matmul %d", n), boundFlops, 2*math.Pow(float64(n), 3), func() func() {
			c, a, b := floats(n*n), floats(n*n), floats(n*n)
			return func() { simd.MatMul(c, a, b, n, n, n) }
		}))
	}
	all = append(all, plain("conv2d 64 channels, 3×3 on 56×56", boundFlops, 2*64*64*9*56*56, func() func() {
		y, x, w := floats(64*56*56), floats(64*56*56), floats(64*64*9)
		return func() {
			simd.Conv2D(y, x, w, nil, [4]int{1, 64, 56, 56}, [4]int{64, 64, 3, 3}, compute.Conv2DOptions{Pad: [2]int{1, 1}})
		}
	}))
	for _, n := range []int{32, 64, 256, 1024, 4096} {
		bytes := 4 * float64(n) * float64(n)
		all = append(all, plain(fmt.Sprintf("matvec %d", n), boundRead, bytes, func() func() {
			y, a, x := floats(n), floats(n*n), floats(n)
			return func() { simd.MatVec(y, a, x, n, n) }
		}), plain(fmt.Sprintf("vecmat %d", n), boundRead, bytes, func() func() {
			y, a, x := floats(n), floats(n*n), floats(n)
			return func() { simd.VecMat(y, x, a, n, n) }
		}))
	}
	for _, n := range []int{1 << 10, 1 << 13, 1 << 16, 10_000_000} {
		name := func(s string) string { return fmt.Sprintf("%s %d", s, n) }
		bytes := 4 * float64(n)
		for _, f := range []struct {
			name string
			of   func(x []float32) float32
		}{{"sum", simd.Sum}, {"max", simd.Max}, {"norm_l2", simd.NormL2}} {
			all = append(all, plain(name(f.name), boundRead, bytes, func() func() {
				x := floats(n)
				return func() { f.of(x) }
			}))
		}
		all = append(all, plain(name("dot"), boundRead, 2*bytes, func() func() {
			x, y := floats(n), floats(n)
			return func() { simd.Dot(x, y) }
		}), plain(name("add"), boundCopy, 3*bytes, func() func() {
			x, y, z := floats(n), floats(n), floats(n)
			return func() { simd.Add(z, x, y) }
		}), plain(name("axpy"), boundCopy, 3*bytes, func() func() {
			x, y := floats(n), floats(n)
			return func() { simd.Axpy(y, x, 1e-9) }
		}))
	}
	for _, f := range []struct {
		name string
		of   func(y, x []float32)
	}{{"exp", simd.Exp}, {"tanh", simd.Tanh}, {"gelu", simd.GELU}, {"softmax", simd.Softmax}} {
		const n = 1 << 13
		all = append(all, plain(fmt.Sprintf("%s %d", f.name, n), boundCopy, 8*n, func() func() {
			x, y := floats(n), floats(n)
			return func() { f.of(y, x) }
		}))
	}
	for _, t := range []quant.Type{quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0, quant.Q2_K, quant.Q3_K, quant.Q4_K, quant.Q5_K,
		quant.Q6_K} {
		all = append(all, quantisedRow(t))
	}
	return all
}

// quantisedRow is a row of 8-bit activations times weights of some 8 MiB or more: a layer of a language model when it decodes.
func quantisedRow(t quant.Type) cpuKernel {
	const n, k = 4096, 4096
	words, err := quant.PackedWords(t, k)
	if err != nil {
		panic(err) // k is whole blocks of every format
	}
	open := func(ctx context.Context, threads int) (func() error, func(), error) {
		data := make([]uint32, n*words)
		for i := range data {
			data[i] = uint32(i) * 2654435761 & 0x3bff3bff // halves below 1
		}
		dev, err := cpu.Open(ctx, cpu.WithWorkers(threads))
		if err != nil {
			return nil, nil, err
		}
		fail := func(err error) (func() error, func(), error) { dev.Close(); return nil, nil, err }
		w, err := dev.Upload(ctx, data, n, words)
		if err != nil {
			return fail(err)
		}
		x, err := dev.Upload(ctx, make([]float32, k), 1, k)
		if err != nil {
			return fail(err)
		}
		b, y := batch.New(dev), make([]float32, n)
		o := compute.QuantOptions{Format: compute.BlockFormat(t), Q8: true}
		b.ReadInto(b.QuantMatMulRowMajor(b.Import(x), b.Import(w), o), y)
		p, err := b.Compile(ctx)
		if err != nil {
			return fail(err)
		}
		return func() error { return p.Run(ctx) }, func() { p.Close(); dev.Close() }, nil
	}
	return cpuKernel{fmt.Sprintf("%v %d×%d times a row", t, n, k), boundRead, 4 * n * float64(words), open}
}

// CPUKernels are the names of the kernels that match.
func CPUKernels(filter *regexp.Regexp) (names []string) {
	for _, k := range cpuKernels() {
		if filter.MatchString(k.name) {
			names = append(names, k.name)
		}
	}
	return names
}

// CPU measures kernels whose names match on one thread and on several, each in turns with what bounds it. Report is told of each as it
// is done.
func CPU(ctx context.Context, filter *regexp.Regexp, threads, rounds int, report func(CPUKernel)) error {
	defer simd.SetThreads(simd.SetThreads(1))
	for _, k := range cpuKernels() {
		if !filter.MatchString(k.name) {
			continue
		}
		counts := []int{1}
		if threads > 1 {
			counts = append(counts, threads)
		}
		for _, n := range counts {
			simd.SetThreads(n)
			r, err := k.measure(ctx, n, rounds)
			if err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			report(r)
		}
	}
	return nil
}

// cpuSample is the least length of a sample.
const cpuSample = time.Millisecond

func (k *cpuKernel) measure(ctx context.Context, threads, rounds int) (r CPUKernel, err error) {
	run, closed, err := k.open(ctx, threads)
	if err != nil {
		return r, err
	}
	defer closed()
	ways := []func() error{run, k.peak(1)}
	if threads > 1 { // little work takes longer on several
		ways = append(ways, k.peak(threads))
	}
	calls, best := make([]int, len(ways)), make([]float64, len(ways))
	for i := range best {
		best[i] = math.Inf(1)
	}
	sample := func(f func() error, n int) (time.Duration, error) {
		start := time.Now()
		for range n {
			if err := f(); err != nil {
				return 0, err
			}
		}
		return time.Since(start), nil
	}
	for i, f := range ways {
		for calls[i] = 1; ; calls[i] *= 2 {
			d, err := sample(f, calls[i])
			if err != nil {
				return r, err
			}
			if d >= cpuSample {
				break
			}
		}
	}
	for range rounds {
		for i, f := range ways {
			if err := ctx.Err(); err != nil {
				return r, err
			}
			d, err := sample(f, calls[i])
			if err != nil {
				return r, err
			}
			best[i] = min(best[i], float64(d.Nanoseconds())/float64(calls[i]))
		}
	}
	bound, unit := slices.Min(best[1:]), "GB/s"
	if k.bound == boundFlops {
		unit = "GFLOPS"
	}
	return CPUKernel{Kernel: k.name, Tier: simd.Tier(), Threads: threads, NS: best[0], Rate: k.work / best[0], Unit: unit,
		Bound: k.bound, Peak: k.work / bound, Share: bound / best[0]}, nil
}

// peak does as much as the kernel of what bounds it.
func (k *cpuKernel) peak(threads int) func() error {
	var part func(i int)
	switch floats := int(k.work / 4); k.bound {
	case boundFlops:
		part = func(int) { peaks.Flops(int(k.work) / threads) }
	case boundRead:
		x := make([]float32, floats)
		for i := range x {
			x[i] = 1
		}
		part = func(i int) { peaks.Read(x[i*floats/threads : (i+1)*floats/threads]) }
	default:
		half := floats / 2
		x, y := make([]float32, half), make([]float32, half)
		for i := range x {
			x[i] = 1
		}
		part = func(i int) { lo, hi := i*half/threads, (i+1)*half/threads; copy(y[lo:hi], x[lo:hi]) }
	}
	if threads == 1 {
		return func() error { part(0); return nil }
	}
	return func() error {
		var wg sync.WaitGroup
		for i := 1; i < threads; i++ {
			wg.Go(func() { part(i) })
		}
		part(0)
		wg.Wait()
		return nil
	}
}
