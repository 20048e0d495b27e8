//go:build !js

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/internal/decoder"
	"github.com/wavelane/wavelane/internal/tokenizer"
)

// load brings the weights to the device, with a bar on a terminal.
func load(ctx context.Context, errOut io.Writer, m *decoder.Model, dev *wavelane.Device, dense bool) (*decoder.Weights, error) {
	bar := progressbar.DefaultSilent(1)
	if f, ok := errOut.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		bar = progressbar.NewOptions64(1, progressbar.OptionSetWriter(f), progressbar.OptionSetDescription("loading"),
			progressbar.OptionSetWidth(30), progressbar.OptionShowBytes(true),
			progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(50*time.Millisecond))
	}
	defer bar.Clear()
	return m.Load(ctx, dev, decoder.LoadOptions{Dense: dense, Progress: func(done, total int64) {
		bar.ChangeMax64(total)
		_ = bar.Set64(done) // its errors are those of the terminal
	}})
}

// generation is a text that goes on.
type generation struct {
	session   *decoder.Session
	sampler   *decoder.Sampler
	tokenizer *tokenizer.Tokenizer
	out       io.Writer
	times     times
}

// times is what took how long.
type times struct {
	prompt, decoded    int // tokens
	prefill, decoding  time.Duration
	interrupted, ended bool
	full               bool
}

// run gives the model the prompt and then each of its own tokens, n at most. Being interrupted is no error.
func (g *generation) run(ctx context.Context, prompt []int32, most int) error {
	stream := g.tokenizer.NewStream()
	took := &g.times.prefill
	g.times.prompt = len(prompt)
	given := prompt
	for {
		start := time.Now()
		next, err := g.session.Feed(ctx, given...)
		if ctx.Err() != nil {
			g.times.interrupted = true
			break
		}
		if err != nil {
			return err
		}
		*took += time.Since(start)
		if took == &g.times.decoding {
			g.times.decoded++
		}
		took = &g.times.decoding
		if most == 0 {
			break
		}
		token := g.sampler.Pick(next)
		if g.times.ended = g.tokenizer.Ends(token); g.times.ended {
			break
		}
		if _, err := io.WriteString(g.out, stream.Next(token)); err != nil {
			return err
		}
		if g.times.full = g.session.Room() == 0; g.times.full {
			break
		}
		if most--; most == 0 {
			break
		}
		given = []int32{token}
	}
	_, err := io.WriteString(g.out, stream.End())
	return err
}

func (t *times) String() string {
	rate := func(n int, d time.Duration) string {
		if n == 0 || d <= 0 {
			return "not run"
		}
		return fmt.Sprintf("%d tokens in %v, %.1f tokens/s", n, d.Round(time.Microsecond), float64(n)/d.Seconds())
	}
	prompt := t.prompt
	if t.prefill == 0 {
		prompt = 0
	}
	text := fmt.Sprintf("prompt: %s\ndecoded: %s", rate(prompt, t.prefill), rate(t.decoded, t.decoding))
	switch {
	case t.interrupted:
		text += "\ninterrupted"
	case t.ended:
		text += "\nthe model has ended the text"
	case t.full:
		text += "\nthe context is full: -ctx"
	}
	return text
}
