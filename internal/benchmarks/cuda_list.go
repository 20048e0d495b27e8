//go:build !js

package benchmarks

import (
	"context"
	"fmt"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/internal/op"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/kernels"
)

// measured is an operation of the catalogue with a shape, by the GPU's clock.
type measured struct {
	name  string
	entry *op.Entry
	attr  op.Attr
	in    [][]int // shapes of the operands
	small [][]int // the same on the software GPU
	doc   string
}

const mega = 1 << 20

// memoryBound are those whose time is that of their bytes. Large ones have 256 MiB per operand, which no cache holds.
var memoryBound = func() (all []measured) {
	norm := op.Attr{Scalars: []float32{1e-5}}
	for _, size := range []struct {
		suffix, doc string
		n, rows     int
		small       int
	}{
		{"", "64M float32", 64 * mega, 64 << 10, 8 << 10},
		{"_4k", "4,096 float32", 4096, 4, 1024},
	} {
		n, cols := [][]int{{size.n}}, size.n/size.rows
		few, fewCols := [][]int{{size.small}}, size.small/4
		two := func(x [][]int) [][]int { return [][]int{x[0], x[0]} }
		matrix, fewRows := []int{size.rows, cols}, []int{4, fewCols}
		all = append(all,
			measured{"copy", op.Copy, op.Attr{}, n, few, ""},
			measured{"add", op.Add, op.Attr{}, two(n), two(few), ""},
			measured{"gelu", op.GELU, op.Attr{}, n, few, ""},
			measured{"softmax", op.Softmax, op.Attr{}, [][]int{matrix}, [][]int{fewRows}, ", rows of 1,024"},
			measured{"layer_norm", op.LayerNorm, norm, [][]int{matrix, {cols}, {cols}}, [][]int{fewRows, {fewCols}, {fewCols}},
				", rows of 1,024"},
			measured{"rms_norm", op.RMSNorm, norm, [][]int{matrix, {cols}}, [][]int{fewRows, {fewCols}}, ", rows of 1,024"},
		)
		for i := len(all) - 6; i < len(all); i++ {
			all[i].name, all[i].doc = all[i].name+size.suffix, size.doc+all[i].doc
		}
	}
	whole := func(name string, e *op.Entry) measured {
		return measured{name, e, op.Attr{Options: compute.AllAxes}, [][]int{{64 * mega}}, [][]int{{8 << 10}}, "64M float32"}
	}
	const doc = "8192 × 8192 float32"
	return append(all,
		measured{"softmax_wide", op.Softmax, op.Attr{}, [][]int{{2048, 32768}}, [][]int{{1, 8192}}, "64M float32, rows of 32,768"},
		whole("sum", op.Sum), whole("argmax", op.ArgMax),
		measured{"transpose", op.Transpose, op.Attr{Options: compute.TransposeOptions{}}, [][]int{{8192, 8192}},
			[][]int{{100, 70}}, doc},
		measured{"matvec", op.MatVec, op.Attr{}, [][]int{{8192, 8192}, {8192}}, [][]int{{100, 70}, {70}}, doc},
	)
}()

// products are the sizes of square matrices.
var products = []int{1024, 2048, 4096, 8192}

// onCUDA lists the benchmarks for NVIDIA's GPUs.
func onCUDA() []Benchmark {
	kinds := []string{"cuda"}
	list := []Benchmark{
		{Name: "cuda_upload", Unit: "GB/s", Kinds: kinds, prepare: uploads,
			Doc: "256 MiB from the host to the GPU: from pinned memory, through staging"},
		{Name: "cuda_download", Unit: "GB/s", Kinds: kinds, prepare: downloads,
			Doc: "256 MiB from the GPU to the host: to pinned memory, through staging"},
		{Name: "cuda_move", Unit: "GB/s", Kinds: kinds, prepare: moves,
			Doc: "256 MiB on the GPU, read and written: by the driver, by a kernel"},
		{Name: "cuda_launch", Kinds: kinds, prepare: launches,
			Doc: "an empty kernel: what the call takes, one after the other, launched and awaited"},
	}
	for _, n := range []int{1, 10, 100} {
		list = append(list, Benchmark{Name: fmt.Sprintf("cuda_graph%d", n), Kinds: kinds, prepare: replays(n),
			Doc: fmt.Sprintf("%d empty kernels, awaited: as a graph, launched one by one", n)})
	}
	for _, m := range memoryBound {
		list = append(list, Benchmark{Name: "cuda_" + m.name, Unit: "GB/s", Kinds: kinds, prepare: m.prepare,
			Doc: m.doc + ", on the GPU's clock: the kernel, a copy of as many bytes"})
	}
	for _, n := range products {
		list = append(list,
			Benchmark{Name: fmt.Sprintf("cuda_sgemm%d", n), Unit: "GFLOPS", Kinds: kinds, prepare: sgemm(n),
				Doc: fmt.Sprintf("%d × %d float32, on the GPU's clock: the catalogue's kernel, that of ptx/kernels", n, n)},
			Benchmark{Name: fmt.Sprintf("cuda_hgemm%d", n), Unit: "GFLOPS", Kinds: kinds, prepare: hgemm(n),
				Doc: fmt.Sprintf("%d × %d float16 to float32, on the GPU's clock: tensor cores, float32 without", n, n)})
	}
	return list
}

// types are float32 of those shapes.
func types(shapes [][]int) (list []op.Type) {
	for _, s := range shapes {
		list = append(list, op.Type{DType: compute.Float32, Shape: s})
	}
	return list
}

func (m measured) prepare(ctx context.Context, dev *wavelane.Device, c *cleanups) ([]Way, error) {
	k, err := newClock(dev, c)
	if err != nil {
		return nil, err
	}
	in := types(m.in)
	if k.info.Software {
		in = types(m.small)
	}
	o, err := k.operation(ctx, m.entry, m.attr, in...)
	if err != nil {
		return nil, err
	}
	work := float64(o.moved) / 1e9
	way, err := k.captured(ctx, fmt.Sprint(in[0].Shape), work, o.capture)
	if err != nil {
		return nil, err
	}
	var shapes [][]int
	for _, t := range in {
		shapes = append(shapes, t.Shape)
	}
	way.peer = &Request{Op: m.entry.Name, Shapes: shapes, Calls: way.calls}
	bound, err := k.deviceCopy(ctx, o.moved)
	if err != nil {
		return nil, err
	}
	empty, err := k.empty()
	if err != nil {
		return nil, err
	}
	nothing, err := k.captured(ctx, "empty kernel", work, func(c *cuda.Capture) error {
		_, err := c.Launch(empty, cuda.Launch{})
		return err
	})
	return []Way{way, bound, nothing}, err
}

func square(k *clock, n int) int {
	if k.info.Software {
		return n / 64
	}
	return n
}

// tile is that of the larger SGEMM of package ptx/kernels.
var tile = kernels.Tile{M: 128, N: 64, K: 8, PerThreadM: 8, PerThreadN: 4}

func sgemm(n int) prepareFunc {
	return func(ctx context.Context, dev *wavelane.Device, c *cleanups) ([]Way, error) {
		k, err := newClock(dev, c)
		if err != nil {
			return nil, err
		}
		n := square(k, n)
		shapes := [][]int{{n, n}, {n, n}}
		o, err := k.operation(ctx, op.MatMul, op.Attr{Options: compute.MatMulOptions{}}, types(shapes)...)
		if err != nil {
			return nil, err
		}
		way, err := k.captured(ctx, fmt.Sprint(shapes[0]), flops(n), o.capture)
		if err != nil {
			return nil, err
		}
		way.peer = &Request{Op: "matmul", Shapes: shapes, Calls: way.calls}
		own, err := k.product(ctx, kernels.SGEMM(tile), n, compute.Float32)
		return []Way{way, own}, err
	}
}

func hgemm(n int) prepareFunc {
	return func(ctx context.Context, dev *wavelane.Device, c *cleanups) ([]Way, error) {
		k, err := newClock(dev, c)
		if err != nil {
			return nil, err
		}
		n := square(k, n)
		way, err := k.product(ctx, kernels.HGEMM(), n, compute.Float16)
		if err != nil {
			return nil, err
		}
		way.peer = &Request{Op: "matmul_half", Shapes: [][]int{{n, n}, {n, n}}, Calls: way.calls}
		without, err := k.product(ctx, kernels.SGEMM(tile), n, compute.Float32)
		return []Way{way, without}, err
	}
}

func flops(n int) float64 { return 2 * float64(n) * float64(n) * float64(n) / 1e9 }

// product is a way of a kernel of package ptx/kernels that multiplies square matrices.
func (k *clock) product(ctx context.Context, of kernels.Kernel, n int, dtype compute.DType) (Way, error) {
	m, err := of.Module()
	if err != nil {
		return Way{}, err
	}
	kernel, err := k.kernel("kernel "+of.Name, of.Name, m)
	if err != nil {
		return Way{}, err
	}
	a, err := k.filled(ctx, op.Type{DType: dtype, Shape: []int{n, n}})
	if err != nil {
		return Way{}, err
	}
	b, err := k.filled(ctx, op.Type{DType: dtype, Shape: []int{n, n}})
	if err != nil {
		return Way{}, err
	}
	out, err := k.buffer(4 * n * n)
	if err != nil {
		return Way{}, err
	}
	g, size := of.Grid(n, n, n), args.U32(uint32(n))
	l := cuda.Launch{Grid: [3]uint32{uint32(g[0]), uint32(g[1]), uint32(g[2])}}
	return k.captured(ctx, fmt.Sprintf("%s [%d %d]", of.Name, n, n), flops(n), func(c *cuda.Capture) error {
		_, err := c.Launch(kernel, l, size, size, size, a.Arg(), b.Arg(), out.Arg())
		return err
	})
}
