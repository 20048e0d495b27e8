//go:build !js

// Decode continues a text with a language model from a GGUF file on any device. It is a user of package llm.
//
//	go run ./examples/decode -model model.gguf -prompt "The sea is"
//	go run ./examples/decode -random random.gguf      # without a model: one with random weights, which talks nonsense
//
// Several processes that a launcher of MPI starts have a part of the weights each, and compute every token together.
//
//	go build ./examples/decode && mpirun -np 2 ./decode -model model.gguf -prompt "The sea is"
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/dist"
	"github.com/wavelane/wavelane/internal/decoder"
	"github.com/wavelane/wavelane/llm"
	"github.com/wavelane/wavelane/quant"
)

type options struct {
	model, random, prompt string
	tokens, context       int
	temperature           float64
	topK                  int
	seed                  uint64
	dense, exact          bool
	cache                 quant.Type
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	var o options
	flag.StringVar(&o.model, "model", "", "GGUF `file`; of a split model, the first")
	flag.StringVar(&o.random, "random", "", "`file` to write a small model with random weights to, which is then the model")
	flag.StringVar(&o.prompt, "prompt", "Once upon a time", "`text` to continue; control tokens such as <|im_start|> may be in it")
	flag.IntVar(&o.tokens, "n", 128, "most `tokens` to decode")
	flag.IntVar(&o.context, "ctx", 2048, "most `tokens` of prompt and continuation together; limits memory")
	flag.Float64Var(&o.temperature, "temp", 0, "`temperature` of sampling; 0 takes the most likely token, always the same")
	flag.IntVar(&o.topK, "top-k", 40, "with a temperature, sample from this `number` of most likely tokens; 0 for all")
	flag.Uint64Var(&o.seed, "seed", 0, "of sampling and of random weights; 0 draws one")
	flag.BoolVar(&o.dense, "dense", false, "make float32 of quantised weights when loading, which takes several times the memory")
	flag.BoolVar(&o.exact, "exact", false, "multiply quantised weights with float32; otherwise activations are rounded to 8 bits, which is faster")
	o.cache = quant.F16
	flag.Func("cache", "`format` of keys and values: f32, f16 or q8_0 (default f16)", func(name string) (err error) {
		o.cache, err = quant.ParseType(name)
		return err
	})
	device := flag.String("device", "", `"cuda", "gpu" (WebGPU) or "cpu"; the best that the machine has without it`)
	software := flag.Bool("software", false, "run gpu on a software adapter and cuda on the software GPU; slow")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "decode: %q is no flag; a model is given by -model\n", flag.Arg(0))
		os.Exit(2)
	}
	var opts []wavelane.Option
	if local := dist.LocalRank(); *device == "cuda" && !*software && local > 0 { // each process of a machine has a GPU of its own
		*device = fmt.Sprint("cuda:", local)
	}
	if *device != "" {
		opts = append(opts, wavelane.WithDevice(*device))
	}
	if *software {
		opts = append(opts, wavelane.WithSoftware())
	}
	if err := run(ctx, os.Stdout, os.Stderr, o, opts...); err != nil {
		if ctx.Err() != nil { // before there was a text
			err = context.Cause(ctx)
		}
		fmt.Fprintln(os.Stderr, "decode:", err)
		os.Exit(1)
	}
}

// run joins the processes that were started together, if a launcher has.
func run(ctx context.Context, out, errOut io.Writer, o options, opts ...wavelane.Option) error {
	world, err := dist.Init(ctx)
	if err != nil {
		return err
	}
	if err := runIn(ctx, out, errOut, world, o, opts...); err != nil {
		return err // the launcher ends the other processes
	}
	return world.Close()
}

// runIn writes the text to out, and everything else to errOut, of rank 0: all ranks compute the same text. When ctx is done, it ends with
// what it has.
func runIn(ctx context.Context, out, errOut io.Writer, world *dist.World, o options, opts ...wavelane.Option) error {
	if world.Rank() != 0 {
		out, errOut = io.Discard, io.Discard
	}
	if o.seed == 0 {
		o.seed = rand.Uint64()
	}
	seed := []uint32{uint32(o.seed), uint32(o.seed >> 32)}
	if err := world.Broadcast(ctx, seed, 0); err != nil {
		return err
	}
	o.seed = uint64(seed[0]) | uint64(seed[1])<<32
	if o.random != "" {
		if o.model != "" {
			return fmt.Errorf("-model %s and -random %s: which one?", o.model, o.random)
		}
		if world.Rank() == 0 {
			if err := writeRandom(o.random, o.seed); err != nil {
				return err
			}
		}
		if err := world.Barrier(ctx); err != nil {
			return err
		}
		o.model = o.random
	}
	if o.model == "" {
		return fmt.Errorf("-model is missing: a GGUF file, or with -random FILE one that is written there")
	}
	if o.tokens < 1 || o.context < 1 {
		return fmt.Errorf("-n %d, -ctx %d: out of range", o.tokens, o.context)
	}
	model, err := llm.Open(o.model)
	if err != nil {
		return err
	}
	defer model.Close()
	dev, err := wavelane.Open(ctx, opts...)
	if err != nil {
		return err
	}
	defer dev.Close()
	info := model.Info()
	fmt.Fprintf(errOut, "%s\n%v\n", dev.Explain(), describe(info))
	if o.temperature > 0 {
		fmt.Fprintf(errOut, "seed %d\n", o.seed)
	}
	weights, err := load(ctx, errOut, model, dev, world, o.dense)
	if err != nil {
		return err
	}
	defer weights.Close()
	sessionOpts := []llm.SessionOption{llm.WithContext(min(o.context, info.Context)), llm.WithCache(o.cache)}
	if o.exact {
		sessionOpts = append(sessionOpts, llm.WithExact())
	}
	session, err := weights.NewSession(ctx, sessionOpts...)
	if err != nil {
		return err
	}
	defer session.Close()
	if err := reportMemory(ctx, errOut, world, info, weights.Bytes(), session.CacheBytes()); err != nil {
		return err
	}
	fmt.Fprint(out, o.prompt)
	end, err := generate(ctx, out, session, o.prompt, llm.WithMaxTokens(o.tokens),
		llm.WithSampling(llm.Sampling{Temperature: o.temperature, TopK: o.topK, Seed: o.seed}))
	if err != nil {
		return err
	}
	fmt.Fprintf(errOut, "\n\n%s\n", end)
	return nil
}

// reportMemory writes what each of several ranks has.
func reportMemory(ctx context.Context, w io.Writer, world *dist.World, info llm.Info, weights, cache int64) error {
	if world.Size() == 1 {
		return nil
	}
	const mega = 1e6
	mine, all := []float32{float32(weights), float32(cache)}, make([]float32, 2*world.Size())
	if err := world.AllGather(ctx, all, mine); err != nil {
		return err
	}
	for rank := range world.Size() {
		fmt.Fprintf(w, "rank %d of %d: %.2f MB of weights (the file has %.2f), %.2f MB for keys and values\n", rank, world.Size(),
			all[2*rank]/mega, float64(info.Bytes)/mega, all[2*rank+1]/mega)
	}
	return nil
}

func describe(m llm.Info) string {
	name := m.Name
	if name == "" {
		name = "a model without a name"
	}
	return fmt.Sprintf("%s: %s, %d blocks of width %d, %d heads (%d of keys), vocabulary %d", name, m.Architecture, m.Blocks,
		m.Width, m.Heads, m.KVHeads, m.Vocabulary)
}

// writeRandom writes a model that is large enough for all quantised formats and small enough for every device.
func writeRandom(name string, seed uint64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	r := decoder.Random{Architecture: "llama", Tokenizer: "llama", Blocks: 4, Width: 256, Hidden: 768, Heads: 8, KVHeads: 2,
		Context: 2048, Seed: seed, Format: decoder.Mixed}
	err = r.Write(f)
	if closing := f.Close(); err == nil {
		err = closing
	}
	return err
}
