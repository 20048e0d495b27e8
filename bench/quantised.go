package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/simd"
)

// Subjects of products with quantised weights. Those of ggml round x to 8 bits, as ours does.
const (
	ggml         = "ggml"
	ggmlRepacked = "ggml/repacked" // weights are rearranged when they are loaded, where it can
	exact        = "wavelane float32 x"
	reading      = "read"  // a sum over as many bytes as float32
	dense        = "sgemm" // wavelane's product with weights that are float32 already
)

// ggmlVariable is the path of the program that ggml/build makes; without it ggml is not measured.
const ggmlVariable = "WAVELANE_GGML"

// startGGML starts the processes that ggml computes in.
func startGGML() ([]*worker, map[string]string, error) {
	path := os.Getenv(ggmlVariable)
	if path == "" {
		return nil, nil, nil
	}
	var all []*worker
	versions := map[string]string{}
	for name, args := range map[string][]string{ggml: nil, ggmlRepacked: {"CPU_REPACK"}} {
		w, err := start(name, nil, path, args...)
		if err != nil {
			return all, nil, err
		}
		all = append(all, w)
		w.only = func(c Case) bool { return c.quantised || c.half }
		if versions[name], err = w.version(); err != nil {
			return all, nil, err
		}
	}
	return all, versions, nil
}

// quantised is a matrix of 4096 rows of 14336 weights times a number of rows of x, as in the feed-forward layer of a model.
func quantised(t quant.Type, rows int) Case {
	const n, k = 4096, 14336
	size, err := t.RowSize(k)
	if err != nil {
		panic(err)
	}
	c := Case{Name: fmt.Sprintf("%s/%d", t, rows), Claims: []Claim{{ggml, 0.9, 1}}, quantised: true}
	if rows == 1 {
		c.Bytes = float64(n * size)
		c.Claims = append(c.Claims, Claim{reading, map[bool]float64{false: 0.5, true: 0.7}[t == quant.Q8_0], 0.9})
	} else {
		c.Flops = 2 * n * k * float64(rows)
	}
	if rows > 8 {
		c.Claims = append(c.Claims, Claim{dense, 1, 2})
	}
	c.Make = func(int) map[string]func() {
		words, err := quant.PackedWords(t, k)
		if err != nil {
			panic(err)
		}
		data, r := make([]uint32, n*words), rand.New(rand.NewPCG(1, uint64(t)))
		for i := range data {
			data[i] = r.Uint32() & 0x3bff3bff // halves below 1
		}
		d, err := cpu.Open(context.Background())
		must(err)
		ctx := context.Background()
		w, err := d.Upload(ctx, data, n, words)
		must(err)
		x, err := d.Upload(ctx, random(rows*k), rows, k)
		must(err)
		y := make([]float32, rows*n)
		product := func(q8 bool) func() {
			b := batch.New(d)
			o := compute.QuantOptions{Format: compute.BlockFormat(t), Q8: q8}
			b.ReadInto(b.QuantMatMulRowMajor(b.Import(x), b.Import(w), o), y)
			p, err := b.Compile(ctx)
			must(err)
			return func() { must(p.Run(ctx)) }
		}
		subjects := map[string]func(){ours: product(true)}
		if rows == 1 {
			plain := random(n * size / 4)
			subjects[exact] = product(false)
			subjects[reading] = func() { sink = simd.Sum(plain) }
		}
		if rows > 8 {
			a, b := random(rows*k), random(n*k)
			subjects[dense] = func() { simd.MatMul(y, a, b, rows, k, n) }
		}
		return subjects
	}
	return c
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
