//go:build !js

// Ocr prints the lines of text in pictures.
//
//	examples/ocr/fetch                                  # the three models, into the user's cache
//	go run ./examples/ocr page.png
//	go run ./examples/ocr -device gpu -software page.png
//
// It finds the places of text (detection), turns those that are upside down (orientation), and reads them (recognition), with the models of
// PP-OCR v4 in ONNX files, on any device.
package main

import (
	"context"
	"flag"
	"fmt"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/wavelane/wavelane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "ocr:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	flags := flag.NewFlagSet("ocr", flag.ContinueOnError)
	flags.SetOutput(errOut)
	device := flags.String("device", "", "cpu, gpu or cuda; the best one without it")
	software := flags.Bool("software", false, "allow software adapters")
	folder := flags.String("models", defaultFolder(), "folder of the three models")
	places := flags.Bool("places", false, "print the place and the confidence of each line, and times")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return fmt.Errorf("no picture: ocr PICTURE...")
	}
	var opts []wavelane.Option
	if *device != "" {
		opts = append(opts, wavelane.WithDevice(*device))
	}
	if *software {
		opts = append(opts, wavelane.WithSoftware())
	}
	dev, err := wavelane.Open(ctx, opts...)
	if err != nil {
		return err
	}
	defer dev.Close()
	r, err := openReader(ctx, dev, *folder)
	if err != nil {
		return err
	}
	defer r.close()
	for _, file := range flags.Args() {
		picture, err := load(file)
		if err != nil {
			return err
		}
		start := time.Now()
		lines, err := r.read(ctx, picture)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, l := range lines {
			if *places {
				fmt.Fprintf(out, "%4.0f,%4.0f %3.0f %%  ", l.place.center.x, l.place.center.y, 100*l.confidence)
			}
			fmt.Fprintln(out, l.text)
		}
		if *places {
			fmt.Fprintf(errOut, "%s: %d lines in %v on %s\n", file, len(lines), time.Since(start).Round(time.Millisecond), dev.Info().Name)
		}
	}
	return nil
}

func load(file string) (image.Image, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	picture, _, err := image.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return picture, nil
}

// defaultFolder is where the script fetch puts the models.
func defaultFolder() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "."
	}
	return filepath.Join(cache, "wavelane", "ocr")
}
