package randomprograms

import (
	"context"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/gpu"

	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

// tally counts results that were compared and those of which, for most elements, nothing was claimed.
type tally struct{ compared, unclaimed int }

// judge compares what a device gave with the estimates.
func (n *tally) judge(t *rapid.T, p *randomProgram, values []estimate, how string, got [][]float64, err error) {
	if err != nil {
		t.Fatalf("%s: %v\n%v\n%s", how, err, p, listing(p))
	}
	for k, s := range p.results() {
		unclaimed := 0
		for i, want := range values[s].Data {
			b := values[s].bound[i]
			if math.IsInf(b, 0) {
				unclaimed++
			} else if g := got[k][i]; !(math.Abs(g-want) <= b) {
				t.Fatalf("%s: element %d of v%d is %v, want %v ± %.3g\n%v\n%s", how, i, s, g, want, b, p, listing(p))
			}
		}
		if unclaimed > len(values[s].Data)/2 {
			n.unclaimed++
		} else {
			n.compared++
		}
	}
}

// check runs programs on a device, fused and unfused, with planned memory and without, and compares both with the float64 reference.
func check(t *testing.T, dev batch.Device, programs int) {
	var n tally
	checked(t, programs, func(t *rapid.T) {
		p := generate(t, false)
		values := p.estimates()
		for how, options := range variants {
			got, err := p.run(dev, options...)
			n.judge(t, p, values, how, got, err)
		}
	})
	t.Logf("%d results compared, of most of %d nothing was claimed", n.compared, n.unclaimed)
	if programs >= 100 && n.compared < 2*n.unclaimed { // of fewer it varies
		t.Error("too little is claimed for this test to mean much")
	}
}

// variants are the ways in which a batch may be compiled.
var variants = map[string][]batch.Option{
	"fused": nil, "fused, memory apart": {batch.WithoutMemoryPlanning()},
	"unfused": {batch.WithoutFusion()}, "unfused, memory apart": {batch.WithoutFusion(), batch.WithoutMemoryPlanning()},
}

func TestCPU(t *testing.T) {
	d, err := cpu.Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	check(t, d, 500)
}

func TestWebGPU(t *testing.T) {
	d, err := gpu.Open(context.Background(), gpu.WithSoftware(), gpu.WithAutotune(compute.TuneOff))
	if err != nil {
		t.Fatal("no software WebGPU adapter: 'scripts/setup test' installs one: ", err)
	}
	defer d.Close()
	check(t, d, 60)
}

// TestCUDA is on the software GPU; with the build tag hardware, on the GPU of this machine.
func TestCUDA(t *testing.T) {
	opts := []cuda.Option{cuda.WithCache(t.TempDir())}
	if cudaSoftware {
		opts = append(opts, cuda.WithSoftware())
	}
	d, err := cuda.Open(context.Background(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	check(t, d, 50)
}

// The reference rounded to float32 is a device too: the bounds hold on it, and where they are too small this is where it shows
// first.
func TestExact(t *testing.T) { check(t, program.Seal(exact{}), 100) }

// A device that is off by a thousandth in one step is mostly found out, if it shows at all.
func TestMistakesShow(t *testing.T) {
	shown, found := 0, 0
	checked(t, 200, func(t *rapid.T) {
		p := generate(t, false)
		values := p.estimates()
		at := rapid.IntRange(0, len(p.Steps)-1).Draw(t, "wrong step")
		wrong := exact{corrupt: func(step int, y []reference.Array) {
			for i := range y[0].Data {
				if v := y[0].Data[i]; step == at && math.Trunc(v) != v {
					y[0].Data[i] = reference.Rounded(v*1.001, compute.Float32)
				}
			}
		}}
		right, err := p.run(program.Seal(exact{}), batch.WithoutFusion())
		got, err2 := p.run(program.Seal(wrong), batch.WithoutFusion())
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		differs, beyond := false, false
		for k, s := range p.results() {
			for i, want := range values[s].Data {
				differs = differs || math.Abs(got[k][i]-right[k][i]) > 1e-4*math.Abs(right[k][i])
				beyond = beyond || math.Abs(got[k][i]-want) > values[s].bound[i]
			}
		}
		if differs {
			shown++
		}
		if beyond {
			found++
		}
	})
	t.Logf("%d of %d mistakes found", found, shown)
	if found < shown*2/3 {
		t.Error("the bounds are too wide to find mistakes")
	}
}
