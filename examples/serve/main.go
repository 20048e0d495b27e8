//go:build !js

// Serve answers requests in the shape of OpenAI's API with a language model from a GGUF file: many at once, on any device. It is a user of
// package llm.
//
//	go run ./examples/serve -model model.gguf
//	curl http://localhost:8080/v1/chat/completions -H 'Content-Type: application/json' \
//	  -d '{"model": "model", "messages": [{"role": "user", "content": "Why is the sky blue?"}]}'
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/llm"
	"github.com/wavelane/wavelane/quant"
)

type options struct {
	model, address, keys              string
	name, draft                       string
	sequences, queue, context, tokens int
	ahead                             int
	cache                             quant.Type
	exact                             bool
	grace                             time.Duration
	limits                            limits
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	o := options{cache: quant.F16}
	flag.StringVar(&o.model, "model", "", "GGUF `file`; of a split model, the first")
	flag.StringVar(&o.name, "name", "", "`name` that requests call the model by; that of the file without it")
	flag.StringVar(&o.address, "address", "localhost:8080", "`host:port` to listen on; only this machine reaches localhost")
	flag.StringVar(&o.keys, "keys", "", "`file` of API keys, one a line, one of which each request must have")
	flag.IntVar(&o.sequences, "parallel", 8, "`texts` that are continued at once")
	flag.IntVar(&o.queue, "queue", 64, "`texts` that may wait; more get status 429")
	flag.IntVar(&o.context, "ctx", 4096, "most `tokens` of a prompt and its answer, at most what the model was trained on")
	flag.IntVar(&o.tokens, "cache-tokens", 0, "`tokens` of all texts that there is memory for; as many as all may have without it")
	flag.Func("cache", "`format` of keys and values: f32, f16 or q8_0 (default f16)", func(name string) (err error) {
		o.cache, err = quant.ParseType(name)
		return err
	})
	flag.StringVar(&o.draft, "draft", "", "`file` of a smaller model with the same vocabulary, which computes tokens ahead")
	flag.IntVar(&o.ahead, "ahead", 3, "with -draft, this `number` of tokens")
	flag.BoolVar(&o.exact, "exact", false, "multiply quantised weights with float32; otherwise activations are rounded to 8 bits, which is faster")
	flag.IntVar(&o.limits.tokens, "max-tokens", 0, "most `tokens` of an answer; 0 for as many as there is room for")
	flag.Int64Var(&o.limits.body, "max-body", 1<<20, "most `bytes` of a request")
	flag.IntVar(&o.limits.choices, "max-choices", 8, "most `texts` that one request may ask for")
	flag.DurationVar(&o.limits.write, "write-timeout", 30*time.Second, "`time` after which a client that reads nothing is given up")
	flag.DurationVar(&o.grace, "grace", 30*time.Second, "`time` that requests have to end when the server stops")
	device := flag.String("device", "", `"cuda", "gpu" (WebGPU) or "cpu"; the best that the machine has without it`)
	software := flag.Bool("software", false, "run gpu on a software adapter and cuda on the software GPU; slow")
	flag.Parse()
	if flag.NArg() > 0 || o.model == "" {
		fmt.Fprintln(os.Stderr, "serve: need -model FILE.gguf, and flags alone")
		os.Exit(2)
	}
	var opts []wavelane.Option
	if *device != "" {
		opts = append(opts, wavelane.WithDevice(*device))
	}
	if *software {
		opts = append(opts, wavelane.WithSoftware())
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := run(ctx, log, o, nil, opts...); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

// run serves until ctx is done, and then until requests under way have ended or the time of grace has. Ready, if not nil, is called with
// the address.
func run(ctx context.Context, log *slog.Logger, o options, ready func(net.Addr), opts ...wavelane.Option) error {
	keys, err := readKeys(o.keys)
	if err != nil {
		return err
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
	weights, err := model.Load(ctx, dev)
	if err != nil {
		return err
	}
	defer weights.Close()
	room, cache := llm.WithContext(min(o.context, model.Info().Context)), llm.WithCache(o.cache)
	scheduling := []llm.SchedulerOption{room, cache, llm.WithSequences(o.sequences), llm.WithQueue(o.queue), llm.WithCacheTokens(o.tokens)}
	embedding := []llm.EmbedderOption{room, cache}
	if o.exact {
		scheduling, embedding = append(scheduling, llm.WithExact()), append(embedding, llm.WithExact())
	}
	if o.draft != "" {
		draft, err := llm.Open(o.draft)
		if err != nil {
			return err
		}
		defer draft.Close()
		smaller, err := draft.Load(ctx, dev)
		if err != nil {
			return err
		}
		defer smaller.Close()
		scheduling = append(scheduling, llm.WithDraftModel(smaller, o.ahead))
	}
	var scheduler *llm.Scheduler
	if !model.Info().Encoder {
		if scheduler, err = weights.NewScheduler(ctx, scheduling...); err != nil {
			return err
		}
		defer scheduler.Close()
	}
	embeddings := newEmbeddings(weights, o.queue, embedding...)
	defer embeddings.Close()
	if o.name == "" {
		o.name = strings.TrimSuffix(filepath.Base(o.model), filepath.Ext(o.model))
	}
	listener, err := net.Listen("tcp", o.address)
	if err != nil {
		return err
	}
	if a, ok := listener.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() && len(keys) == 0 {
		log.Warn("other machines may use this server, and need no API key: see -keys", "address", listener.Addr())
	}
	log.Info("serving", "address", listener.Addr(), "model", o.name, "device", dev.Info().Name)
	s := newServer(scheduler, embeddings, o.name, keys, o.limits, log)
	if ready != nil {
		ready(listener.Addr())
	}
	return s.serve(ctx, listener, o.grace)
}

// readKeys reads API keys, one a line.
func readKeys(file string) ([]string, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	keys := strings.Fields(string(text))
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s has no API keys", file)
	}
	return keys, nil
}

// serve answers requests until ctx is done. Those under way then have some time to end, after which they are cut off.
func (s *server) serve(ctx context.Context, listener net.Listener, grace time.Duration) error {
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	h := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 1 << 16,
		BaseContext: func(net.Listener) context.Context { return requests }, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	s.stopping.Store(true)
	s.log.Info("stopping", "grace", grace)
	waiting, end := context.WithTimeout(requests, grace)
	defer end()
	err := h.Shutdown(waiting)
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("requests are cut off")
		cut()
		err = h.Close()
	}
	return err
}
