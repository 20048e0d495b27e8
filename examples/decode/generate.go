//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/dist"
	"github.com/wavelane/wavelane/llm"
)

// load brings the weights to the device, or this rank's part of them, with a bar on a terminal.
func load(ctx context.Context, errOut io.Writer, m *llm.Model, dev *wavelane.Device, world *dist.World, dense bool) (*llm.Weights, error) {
	bar := progressbar.DefaultSilent(1)
	if f, ok := errOut.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		bar = progressbar.NewOptions64(1, progressbar.OptionSetWriter(f), progressbar.OptionSetDescription("loading"),
			progressbar.OptionSetWidth(30), progressbar.OptionShowBytes(true),
			progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(50*time.Millisecond))
	}
	defer bar.Clear()
	opts := []llm.LoadOption{llm.WithProgress(func(done, total int64) {
		bar.ChangeMax64(total)
		_ = bar.Set64(done) // its errors are those of the terminal
	})}
	if world.Size() > 1 {
		opts = append(opts, llm.WithGroup(world))
	}
	if dense {
		opts = append(opts, llm.WithDense())
	}
	return m.Load(ctx, dev, opts...)
}

// generate writes what comes after the prompt, and returns what became of it. Being interrupted is no error.
func generate(ctx context.Context, out io.Writer, s *llm.Session, prompt string, opts ...llm.GenerateOption) (string, error) {
	end := ""
	for token, err := range s.Generate(ctx, prompt, opts...) {
		if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			end = "\ninterrupted"
			break
		}
		if err != nil {
			return "", err
		}
		if _, err := io.WriteString(out, token.Text); err != nil {
			return "", err
		}
		switch token.Finish {
		case llm.EndOfText:
			end = "\nthe model has ended the text"
		case llm.ContextFull:
			end = "\nthe context is full: -ctx"
		}
	}
	rate := func(n int, d time.Duration) string {
		if n == 0 || d <= 0 {
			return "not run"
		}
		return fmt.Sprintf("%d tokens in %v, %.1f tokens/s", n, d.Round(time.Microsecond), float64(n)/d.Seconds())
	}
	st := s.Stats()
	return fmt.Sprintf("prompt: %s\ndecoded: %s%s", rate(st.Prompt-st.Known, st.Prefill), rate(st.Steps, st.Decoding), end), nil
}
