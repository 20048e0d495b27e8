//go:build !js

// Mlp runs a network of three layers on rows of input. The weights are uploaded once and stay on the device, the forward
// pass is compiled once and replayed for each batch of rows, and every result is checked against a plain Go loop.
//
//	go run ./examples/mlp
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

var widths = []int{784, 256, 128, 10} // of the input and of each layer's result

const rows = 64 // per forward pass

// layer computes act(x·weights + bias), with ReLU in all layers but the last.
type layer struct {
	in, out       int
	weights, bias []float32
}

func main() {
	software := flag.Bool("software", false, "where there is no GPU, run WebGPU on a software adapter")
	passes := flag.Int("passes", 20, "forward passes")
	flag.Parse()
	var opts []wavelane.Option
	if *software {
		opts = append(opts, wavelane.WithSoftware())
	}
	if err := run(context.Background(), os.Stdout, *passes, opts...); err != nil {
		fmt.Fprintln(os.Stderr, "mlp:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, passes int, opts ...wavelane.Option) error {
	if passes < 1 {
		return fmt.Errorf("-passes must be at least 1, not %d", passes)
	}
	dev, err := wavelane.Open(ctx, opts...)
	if err != nil {
		return err
	}
	defer dev.Close()
	fmt.Fprintln(w, dev.Explain())

	random := rand.New(rand.NewPCG(1, 2))
	layers := makeLayers(random)
	input := make([]float32, rows*widths[0])

	b := batch.New(dev)
	x := b.Upload(input, rows, widths[0])
	for i, l := range layers {
		weights, err := dev.Upload(ctx, l.weights, l.in, l.out)
		if err != nil {
			return err
		}
		defer weights.Close()
		bias, err := dev.Upload(ctx, l.bias, l.out)
		if err != nil {
			return err
		}
		defer bias.Close()
		x = b.MatMulWithBias(x, b.Import(weights), b.Import(bias), compute.MatMulOptions{Act: activation(i)})
	}
	probabilities := b.Read(b.Softmax(x))
	plan, err := b.Compile(ctx)
	if err != nil {
		return err
	}
	defer plan.Close()

	var onDevice, inGo time.Duration
	worst := 0.0
	for range passes {
		for i := range input { // the plan reads the slice anew in each run
			input[i] = random.Float32()
		}
		start := time.Now()
		if err := plan.Run(ctx); err != nil {
			return err
		}
		onDevice += time.Since(start)

		start = time.Now()
		want := forward(layers, input)
		inGo += time.Since(start)
		for i, v := range probabilities.Float32s() {
			worst = max(worst, math.Abs(float64(v)-want[i]))
		}
	}
	n := time.Duration(passes)
	fmt.Fprintf(w, "%d passes of %d rows through %v: %v a pass, plain Go loops %v\n", passes, rows, widths,
		(onDevice / n).Round(time.Microsecond), (inGo / n).Round(time.Microsecond))
	fmt.Fprintf(w, "largest difference between probabilities %.1g\n", worst)
	if !(worst < 1e-5) { // NaN fails too
		return fmt.Errorf("probabilities differ by %g from those of plain Go", worst)
	}
	return nil
}

func activation(i int) compute.Activation {
	if i == len(widths)-2 {
		return compute.NoActivation
	}
	return compute.ReLU
}

// makeLayers draws weights as He et al. (2015) initialise them, so that values keep their size from layer to layer.
func makeLayers(random *rand.Rand) []layer {
	var layers []layer
	for i, in := range widths[:len(widths)-1] {
		l := layer{in: in, out: widths[i+1], weights: make([]float32, in*widths[i+1]), bias: make([]float32, widths[i+1])}
		for j := range l.weights {
			l.weights[j] = float32(random.NormFloat64() * math.Sqrt(2/float64(in)))
		}
		for j := range l.bias {
			l.bias[j] = float32(random.NormFloat64() * 0.1)
		}
		layers = append(layers, l)
	}
	return layers
}

// forward is the same network in plain Go.
func forward(layers []layer, input []float32) []float64 {
	x := make([]float64, len(input))
	for i, v := range input {
		x[i] = float64(v)
	}
	for i, l := range layers {
		y := make([]float64, rows*l.out)
		for r := range rows {
			for k := range l.in {
				v := x[r*l.in+k]
				for j := range l.out {
					y[r*l.out+j] += v * float64(l.weights[k*l.out+j])
				}
			}
			for j := range l.out {
				y[r*l.out+j] += float64(l.bias[j])
				if activation(i) == compute.ReLU {
					y[r*l.out+j] = max(y[r*l.out+j], 0)
				}
			}
		}
		x = y
	}
	classes := widths[len(widths)-1]
	for r := range rows {
		softmax(x[r*classes : (r+1)*classes])
	}
	return x
}

func softmax(row []float64) {
	largest, sum := math.Inf(-1), 0.0
	for _, v := range row {
		largest = max(largest, v)
	}
	for i, v := range row {
		row[i] = math.Exp(v - largest)
		sum += row[i]
	}
	for i := range row {
		row[i] /= sum
	}
}
