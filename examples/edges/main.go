//go:build !js

// Edges finds the edges in a picture: greyscale, Gaussian blur, Sobel filters, magnitude, normalisation, all of it one
// batch with one submission and one readback. It then shows what the batch saves.
//
//	go run ./examples/edges photo.jpg -o edges.png
//
// Without a picture it paints one itself. See -help for the options.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"io"
	"os"
	"os/signal"

	"github.com/wavelane/wavelane"
)

const usage = `Usage: edges [FILE] [-o OUT.png] [options]

Finds the edges in FILE, a PNG, JPEG or GIF picture, and writes them to OUT.png.
Without FILE it paints a landscape. A table compares the median times of
  one batch                 all operations in one submission, one readback
  one submit per operation  a call for each operation, each with upload and readback
  CPU                       the same batch on the CPU device

Options:
`

type options struct {
	file, out, input string
	device           string
	software         bool
	runs             int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "edges:", err, "(see -help)")
		os.Exit(2)
	}
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "edges:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	fs := flag.NewFlagSet("edges", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.out, "o", "edges.png", "`file` to write the edges to")
	fs.StringVar(&o.input, "input", "", "`file` to write the painted landscape to, when there is no FILE")
	fs.StringVar(&o.device, "device", "", "cpu, gpu or gpu:`index`; by default the best of this machine")
	fs.BoolVar(&o.software, "software", false, "where there is no GPU, run WebGPU on a software adapter: slow, to try things out")
	fs.IntVar(&o.runs, "runs", 7, "how often to run each way for the medians")
	for { // options may stand before and after FILE
		if err := fs.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				fs.SetOutput(os.Stdout)
				fmt.Print(usage)
				fs.PrintDefaults()
			}
			return o, err
		}
		if fs.NArg() == 0 {
			break
		}
		if o.file != "" {
			return o, fmt.Errorf("one FILE, not both %q and %q", o.file, fs.Arg(0))
		}
		o.file = fs.Arg(0)
		args = fs.Args()[1:]
	}
	if o.runs < 1 {
		return o, fmt.Errorf("-runs must be at least 1, not %d", o.runs)
	}
	if o.file != "" && o.input != "" {
		return o, errors.New("-input is for runs without FILE")
	}
	return o, nil
}

func run(ctx context.Context, o options, w io.Writer) error {
	var img image.Image
	var err error
	if o.file == "" {
		img = scene(1536, 1024)
		if o.input != "" {
			if err := encode(o.input, img); err != nil {
				return err
			}
		}
	} else if img, err = load(o.file); err != nil {
		return err
	}
	p := toPlanes(img)

	dev, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer dev.Close()
	cpu, err := wavelane.Open(ctx, wavelane.WithDevice("cpu"))
	if err != nil {
		return err
	}
	defer cpu.Close()

	edges := make([]uint8, p.w*p.h)
	if err := oneBatch(ctx, dev, p, edges); err != nil {
		return err
	}
	if err := save(o.out, edges, p.w); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d × %d pixels, %d operations on %d values each; edges written to %s\n\n", p.w, p.h, operations, p.w*p.h, o.out)
	return compare(ctx, w, dev, cpu, p, edges, o.runs)
}

// open opens the device that the options ask for, without routing, since it is compared with the CPU. Software adapters never stand
// in for a GPU unless asked to.
func open(ctx context.Context, o options) (*wavelane.Device, error) {
	opts := []wavelane.Option{wavelane.WithoutRouting()}
	if o.device != "" {
		opts = append(opts, wavelane.WithDevice(o.device))
	}
	if o.software {
		opts = append(opts, wavelane.WithSoftware())
	}
	return wavelane.Open(ctx, opts...)
}
