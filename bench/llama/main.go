// Llama runs a language model for compare.py, which has it take turns with llama.cpp: each line that it reads is a request, and each that
// it writes the answer, both JSON.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/gpu"
	"github.com/wavelane/wavelane/internal/decoder"
	"github.com/wavelane/wavelane/llm"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

// request is a prompt, after which Decode tokens are generated, always the most likely one.
type request struct {
	Prompt []int32
	Decode int
	Logits bool      // of the token after the prompt
	Beside [][]int32 `json:",omitempty"` // prompts of texts that are continued at once, by Decode tokens each, instead
}

// answer has the seconds that the clock and the processor have spent on both.
type answer struct {
	Prompt, Decode       float64
	PromptCPU, DecodeCPU float64
	Tokens               []int32
	Logits               []float32 `json:",omitempty"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "llama:", err)
		os.Exit(1)
	}
}

func run() error {
	webgpu := flag.Bool("webgpu", false, "run on WebGPU's software adapter, not on the CPU device")
	flag.Parse()
	if flag.NArg() != 1 {
		return fmt.Errorf("usage: llama [-webgpu] MODEL; GOMAXPROCS is the number of threads")
	}
	ctx := context.Background()
	file, err := gguf.Open(flag.Arg(0))
	if err != nil {
		return err
	}
	defer file.Close()
	model, err := decoder.Read(file)
	if err != nil {
		return err
	}
	dev, err := open(ctx, *webgpu)
	if err != nil {
		return err
	}
	defer dev.Close()
	weights, err := model.Load(ctx, dev, decoder.LoadOptions{})
	if err != nil {
		return err
	}
	defer weights.Close()
	session := func(topK int) (*decoder.Session, error) {
		return weights.NewSession(ctx, decoder.SessionOptions{Context: 1024, Cache: quant.F16, Output: decoder.Output{TopK: topK}})
	}
	greedy, err := session(1)
	if err != nil {
		return err
	}
	defer greedy.Close()
	all, err := session(0)
	if err != nil {
		return err
	}
	defer all.Close()
	many, err := scheduler(ctx, dev, flag.Arg(0))
	if err != nil {
		return err
	}
	runtime.GC() // what loading has left
	out := json.NewEncoder(os.Stdout)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var r request
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			return err
		}
		var a *answer
		if len(r.Beside) > 0 {
			a, err = r.together(ctx, many)
		} else {
			a, err = r.run(ctx, greedy, all)
		}
		if err != nil {
			return err
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
	return in.Err()
}

type device interface {
	llm.Device
	io.Closer
}

func open(ctx context.Context, webgpu bool) (device, error) {
	if webgpu {
		return gpu.Open(ctx, gpu.WithSoftware())
	}
	return cpu.Open(ctx)
}

func (r *request) run(ctx context.Context, greedy, all *decoder.Session) (*answer, error) {
	a := &answer{}
	if r.Logits {
		all.Reset()
		next, err := all.Feed(ctx, r.Prompt...)
		if err != nil {
			return nil, err
		}
		a.Logits = next.Logits
		return a, nil
	}
	greedy.Reset()
	wall, cpu := time.Now(), processor()
	next, err := greedy.Feed(ctx, r.Prompt...)
	if err != nil {
		return nil, err
	}
	a.Prompt, a.PromptCPU = time.Since(wall).Seconds(), processor()-cpu
	wall, cpu = time.Now(), processor()
	for range r.Decode {
		a.Tokens = append(a.Tokens, next.Indices[0])
		if next, err = greedy.Feed(ctx, next.Indices[0]); err != nil {
			return nil, err
		}
	}
	a.Decode, a.DecodeCPU = time.Since(wall).Seconds(), processor()-cpu
	return a, nil
}

// scheduler is for as many texts at once as the processes of llama.cpp have room for.
func scheduler(ctx context.Context, dev llm.Device, path string) (*llm.Scheduler, error) {
	model, err := llm.Open(path)
	if err != nil {
		return nil, err
	}
	weights, err := model.Load(ctx, dev)
	if err != nil {
		return nil, err
	}
	return weights.NewScheduler(ctx, llm.WithContext(256), llm.WithSequences(8))
}

// together continues texts at once. Decode is the time for all of them, prompts included.
func (r *request) together(ctx context.Context, s *llm.Scheduler) (*answer, error) {
	a, errs := &answer{}, make(chan error, len(r.Beside))
	wall, cpu := time.Now(), processor()
	for _, prompt := range r.Beside {
		go func() {
			var failed error
			for _, err := range s.GenerateTokens(ctx, prompt, llm.WithMaxTokens(r.Decode), llm.WithIgnoreEnd()) {
				failed = err
			}
			errs <- failed
		}()
	}
	for range r.Beside {
		if err := <-errs; err != nil {
			return nil, err
		}
	}
	a.Decode, a.DecodeCPU = time.Since(wall).Seconds(), processor()-cpu
	return a, nil
}

// processor is the time that the process has computed, in seconds.
func processor() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
