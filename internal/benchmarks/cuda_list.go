//go:build !js

package benchmarks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/cuda"
)

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
	for _, m := range slices.Concat(memoryBound, quantisedFew) {
		list = append(list, Benchmark{Name: "cuda_" + m.name, Unit: "GB/s", Kinds: kinds, prepare: m.prepare,
			Doc: m.doc + ", on the GPU's clock: the kernel, a copy of as many bytes"})
	}
	for _, m := range slices.Concat(computeBound, quantisedMany) {
		list = append(list, Benchmark{Name: "cuda_" + m.name, Unit: "GFLOPS", Kinds: kinds, prepare: m.prepare,
			Doc: m.doc + ", on the GPU's clock: the kernel chosen by default, the others that there are for it"})
	}
	return list
}

func (m measured) prepare(ctx context.Context, dev *wavelane.Device, c *cleanups) ([]Way, error) {
	k, err := newClock(dev, c)
	if err != nil {
		return nil, err
	}
	if k.info.Software {
		m.in = m.small
	}
	o, err := k.operation(ctx, m, "")
	if err != nil {
		return nil, err
	}
	work := float64(o.moved) / 1e9
	if m.flops != nil {
		work = m.flops(m.in) / 1e9
	}
	way, err := k.captured(ctx, strings.TrimSpace(fmt.Sprint(m.in[0], " ", o.variant)), work, o.capture)
	if err != nil {
		return nil, err
	}
	if m.peer != "" {
		way.peer = &Request{Op: m.peer, Calls: way.calls}
		for _, t := range m.in {
			way.peer.Shapes = append(way.peer.Shapes, t.Shape)
			way.peer.DTypes = append(way.peer.DTypes, t.DType.String())
		}
	}
	if m.flops != nil && len(o.others) > 0 {
		others, err := m.others(ctx, k, o, work)
		return append([]Way{way}, others...), err
	}
	ways := []Way{way}
	if m.flops == nil {
		bound, err := k.deviceCopy(ctx, o.moved)
		if err != nil {
			return nil, err
		}
		ways = append(ways, bound)
	}
	empty, err := k.empty()
	if err != nil {
		return nil, err
	}
	nothing, err := k.captured(ctx, "empty kernel", work, func(c *cuda.Capture) error {
		_, err := c.Launch(empty, cuda.Launch{})
		return err
	})
	return append(ways, nothing), err
}

// others are ways of the variants that are not the default.
func (m measured) others(ctx context.Context, k *clock, o *operation, work float64) (ways []Way, err error) {
	for _, variant := range o.others {
		other, err := k.operation(ctx, m, variant)
		if err != nil {
			return nil, err
		}
		way, err := k.captured(ctx, variant, work, other.capture)
		if err != nil {
			return nil, err
		}
		ways = append(ways, way)
	}
	return ways, nil
}
