//go:build !js

// Filetype tells what files contain, by their contents alone.
//
//	examples/filetype/fetch                        # the model, into the user's cache
//	go run ./examples/filetype docs/*.md go.mod docs/edges.png
//
// It runs the model of Magika, an ONNX file, on the first and last bytes of all files at once.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"text/tabwriter"

	"github.com/wavelane/wavelane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "filetype:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	flags := flag.NewFlagSet("filetype", flag.ContinueOnError)
	flags.SetOutput(errOut)
	device := flags.String("device", "", "cpu, gpu or cuda; the best one without it")
	software := flags.Bool("software", false, "allow software adapters")
	folder := flags.String("model", defaultFolder(), "folder of the model and its tables")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return fmt.Errorf("no file: filetype FILE...")
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
	d, err := openDetector(ctx, dev, *folder)
	if err != nil {
		return err
	}
	defer d.close()
	types, err := d.detect(ctx, flags.Args())
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i, t := range types {
		fmt.Fprintf(w, "%s\t%s\t%s\t%.0f %%\n", flags.Arg(i), t.Description, t.MIME, 100*t.score)
	}
	return w.Flush()
}

// defaultFolder is where the script fetch puts the model.
func defaultFolder() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "."
	}
	return filepath.Join(cache, "wavelane", "filetype")
}
