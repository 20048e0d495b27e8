package main

import (
	"context"
	"fmt"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/simd"
)

// full is the same work with float32.
const full = "wavelane float32"

// halves are cases of 16-bit floats.
func halves() []Case {
	var all []Case
	for _, n := range []int{1 << 12, 1 << 16, 10_000_000} {
		all = append(all, conversions("f16", n, compute.F16Of, compute.F16.Float32)...)
		all = append(all, conversions("bf16", n, compute.BF16Of, compute.BF16.Float32)...)
	}
	for _, s := range [][2]int{{1, 4096}, {1, 1 << 16}, {1, 10_000_000}, {512, 512}, {4096, 4096}} {
		all = append(all, halfProduct("f16", s[0], s[1], compute.F16Of), halfProduct("bf16", s[0], s[1], compute.BF16Of))
	}
	for _, keys := range []int{2048, 16384} {
		all = append(all, halfCache(keys))
	}
	return all
}

// conversions widen and narrow. Plain Go does it number by number; at the full rate as many bytes are copied.
func conversions[T compute.F16 | compute.BF16](name string, n int, narrow func(float32) T, widen func(T) float32) []Case {
	bytes := 6 * float64(n)
	make := func(subjects func(x []float32, h []T) (f, plain func())) func(threads int) map[string]func() {
		return func(threads int) map[string]func() {
			x := random(n)
			f, plain := subjects(x, narrowed(x, narrow))
			from, to := random(int(bytes)/8), make([]float32, int(bytes)/8)
			return map[string]func(){ours: f, plainGo: plain, peak: func() { copyParts(to, from, threads) }}
		}
	}
	claims := []Claim{{plainGo, 4, 8}}
	if n > 1<<20 {
		claims = append(claims, Claim{peak, 0.9, 1.1})
	}
	return []Case{
		{Name: fmt.Sprintf("widen_%s/%d", name, n), Bytes: bytes, Claims: claims, Make: make(func(x []float32, h []T) (f, plain func()) {
			return func() { simd.Widen(x, h) }, func() {
				for i, v := range h {
					x[i] = widen(v)
				}
			}
		})},
		{Name: fmt.Sprintf("narrow_%s/%d", name, n), Bytes: bytes, Claims: claims, Make: make(func(x []float32, h []T) (f, plain func()) {
			return func() { simd.Narrow(h, x) }, func() {
				for i, v := range x {
					h[i] = narrow(v)
				}
			}
		})},
	}
}

func narrowed[T compute.F16 | compute.BF16](x []float32, narrow func(float32) T) []T {
	h := make([]T, len(x))
	for i, v := range x {
		h[i] = narrow(v)
	}
	return h
}

// halfProduct is a product of m rows of k weights with a vector, beside that of float32.
func halfProduct[T compute.F16 | compute.BF16](name string, m, k int, narrow func(float32) T) Case {
	less := Claim{full, 0.5, 1} // in caches, where widening limits it
	if m*k > 1<<22 {
		less = Claim{full, 1, 1.8}
	}
	return Case{Name: fmt.Sprintf("matvec_%s/%dx%d", name, m, k), Bytes: 2 * float64(m*k), half: true, Claims: []Claim{less, {ggml, 1, 1.2}},
		Make: func(int) map[string]func() {
			w, x, y := random(m*k), random(k), make([]float32, m)
			h := narrowed(w, narrow)
			all := map[string]func(){
				ours: func() { simd.MatVecHalf(y, h, x, m, k) },
				full: func() { simd.MatVec(y, w, x, m, k) },
			}
			if m == 1 {
				all[ours] = func() { y[0] = simd.DotHalf(h, x) }
				all[full] = func() { y[0] = simd.Dot(w, x) }
			}
			return all
		}}
}

// halfCache is attention of one query over a cache of halves, beside one of float32.
func halfCache(keys int) Case {
	const heads, d = 12, 64
	return Case{Name: fmt.Sprintf("attention_f16/1x%dx%dx%d", keys, heads, d), Bytes: 2 * 2 * float64(keys*heads*d), Claims: []Claim{{full, 1, 1.5}},
		Make: func(int) map[string]func() {
			ctx := context.Background()
			dev, err := cpu.Open(ctx)
			must(err)
			query, err := dev.Upload(ctx, random(heads*d), 1, 1, heads, d)
			must(err)
			attention := func(cache any) func() {
				kv, err := dev.Upload(ctx, cache, 1, keys, heads, d)
				must(err)
				b := batch.New(dev)
				b.Read(b.Attention(b.Import(query), b.Import(kv), b.Import(kv)))
				p, err := b.Compile(ctx)
				must(err)
				return func() { must(p.Run(ctx)) }
			}
			x := random(keys * heads * d)
			return map[string]func(){ours: attention(narrowed(x, compute.F16Of)), full: attention(x)}
		}}
}
