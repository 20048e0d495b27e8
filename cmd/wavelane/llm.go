//go:build !js

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/llm"
	"github.com/wavelane/wavelane/quant"
)

type llmFlags struct {
	bench               benchFlags
	prompt, system      string
	raw, info, measure  bool
	tokens, context     int
	sampling            llm.Sampling
	stop                []string
	dense, exact        bool
	cache               quant.Type
	json                bool
	benchPrompt, benchN int
	repeat              int
	perplexity          string
	lookup, keep        int
	draft               string
	ahead               int
	lora                []string
	quantise            string
}

func llmCommand() *cobra.Command {
	var f llmFlags
	c := &cobra.Command{
		Use:   "llm MODEL",
		Short: "Talk with a language model",
		Long: `Talk with a language model from a GGUF file, or from a folder with config.json, safetensors and tokenizer.json. Each line of standard input is a message, in the form of the file's chat
template; with -p there is one. A model without a template, or --raw, has the prompt continued as it is.

The text goes to standard output as it comes, everything else to standard error. Ctrl-C ends the program.

With --bench it measures how fast prompts and tokens are computed, as llama-bench does: pp512 is a prompt of 512 tokens, tg128 are
128 tokens, one after the other.

With --perplexity it computes how well the model expects a text, as llama-perplexity does: the text is cut into parts of --pp tokens, the first
half of each is context.`,
		Example: `  wavelane llm model.gguf
  wavelane llm model.gguf -p "Why is the sky blue?" --temp 0.7 --top-p 0.9
  wavelane llm model.gguf -p "The sea is" --raw -n 64
  wavelane llm model.gguf --bench --device cpu
  wavelane llm model.gguf --perplexity text.txt
  wavelane llm model.gguf --info
  wavelane llm folder --quantise q8_0
  wavelane llm model.gguf --draft smaller.gguf --ahead 7`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, files []string) error {
			if f.tokens < 0 || f.context < 1 || f.benchPrompt < 0 || f.benchN < 0 || f.benchPrompt+f.benchN < 1 || f.repeat < 1 {
				return usagef("-n %d, --ctx %d, --pp %d, --tg %d, --repeat %d: out of range", f.tokens, f.context, f.benchPrompt, f.benchN, f.repeat)
			}
			if f.draft != "" && (f.measure || f.perplexity != "") {
				return usagef("--draft with --bench or --perplexity, which have no answer")
			}
			if !c.Flags().Changed("seed") {
				f.sampling.Seed = rand.Uint64()
			}
			return f.do(c.Context(), c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr(), files[0])
		},
	}
	c.Flags().StringVarP(&f.prompt, "prompt", "p", "", "one `message`, instead of those of standard input")
	c.Flags().StringVar(&f.system, "system", "", "`message` that goes before all others")
	c.Flags().BoolVar(&f.raw, "raw", false, "continue the prompt as it is, without the chat template")
	c.Flags().IntVarP(&f.tokens, "tokens", "n", 0, "most `tokens` of an answer; 0 for as many as there is room for")
	c.Flags().IntVar(&f.context, "ctx", 4096, "`tokens` that there is room for, at most what the model was trained on")
	c.Flags().Float64Var(&f.sampling.Temperature, "temp", 0, "`temperature`; 0 takes the most likely token, always the same")
	c.Flags().IntVar(&f.sampling.TopK, "top-k", 40, "with a temperature, draw from this `number` of most likely tokens; 0 for all")
	c.Flags().Float64Var(&f.sampling.TopP, "top-p", 0, "draw from the most likely tokens that have this `probability` together; 0 for all")
	c.Flags().Float64Var(&f.sampling.MinP, "min-p", 0, "draw from tokens with this `share` of the probability of the likeliest; 0 for all")
	c.Flags().Float64Var(&f.sampling.RepetitionPenalty, "repeat-penalty", 0, "by which logits of tokens that were there are divided; 0 for none")
	c.Flags().Uint64Var(&f.sampling.Seed, "seed", 0, "of drawing; drawn itself if not given")
	c.Flags().StringArrayVar(&f.stop, "stop", nil, "`text` that ends an answer; may be given several times")
	c.Flags().StringArrayVar(&f.lora, "lora", nil, "`file` of an adapter that is added to the weights, with :0.5 after it by half; may be given several times")
	c.Flags().StringVar(&f.quantise, "quantise", "", "`format` that the matrices of a folder become, such as q8_0; otherwise they stay as they are")
	c.Flags().BoolVar(&f.dense, "dense", false, "make float32 of quantised weights when loading, which takes several times the memory")
	c.Flags().BoolVar(&f.exact, "exact", false, "multiply quantised weights with float32; otherwise activations are rounded to 8 bits, which is faster")
	cacheVar(c, &f.cache)
	c.Flags().BoolVar(&f.info, "info", false, "show what the model is")
	c.Flags().BoolVar(&f.measure, "bench", false, "measure")
	c.Flags().StringVar(&f.perplexity, "perplexity", "", "compute the perplexity of the text in a `file`")
	c.Flags().IntVar(&f.lookup, "lookup", 0, "compute this `number` of tokens ahead, where the latest ones have come before")
	c.Flags().StringVar(&f.draft, "draft", "", "`file` of a smaller model with the same vocabulary, which computes tokens ahead")
	c.Flags().IntVar(&f.ahead, "ahead", 3, "with --draft, this `number` of tokens")
	c.Flags().IntVar(&f.keep, "keep", -1, "go on where the context is full, with its first `tokens` and the newer half of the others")
	c.Flags().IntVar(&f.benchPrompt, "pp", 512, "with --bench, `tokens` of the prompt; with --perplexity, of a part")
	c.Flags().IntVar(&f.benchN, "tg", 128, "with --bench, `tokens` after it")
	c.Flags().IntVar(&f.repeat, "repeat", 3, "with --bench, so often, of which the median is shown")
	c.Flags().BoolVar(&f.json, "json", false, "with --bench or --info, write JSON")
	c.Flags().StringVar(&f.bench.device, "device", "", "`name` as wavelane info lists them, or gpu for the best adapter")
	c.Flags().BoolVar(&f.bench.software, "software", false, "allow software adapters")
	return c
}

// cacheVar adds the flag for the format of keys and values.
func cacheVar(c *cobra.Command, format *quant.Type) {
	*format = quant.F16
	c.Flags().Func("cache", "`format` of keys and values: f32, f16 or q8_0 (default f16)", func(name string) (err error) {
		*format, err = quant.ParseType(name)
		return err
	})
}

func (f *llmFlags) do(ctx context.Context, in io.Reader, out, errOut io.Writer, file string) error {
	var open []llm.OpenOption
	if f.quantise != "" {
		t, err := quant.ParseType(f.quantise)
		if err != nil {
			return err
		}
		open = append(open, llm.WithQuantisation(compute.BlockFormat(t)))
	}
	m, err := llm.Open(file, open...)
	if err != nil {
		return err
	}
	defer m.Close()
	info := m.Info()
	if f.info {
		if f.json {
			return writeJSON(out, info)
		}
		fmt.Fprintf(out, "%s\n", describeModel(info))
		if info.ChatTemplate != "" {
			fmt.Fprintf(out, "\nchat template:\n%s\n", info.ChatTemplate)
		}
		return nil
	}
	dev, err := wavelane.Open(ctx, f.bench.options()...)
	if err != nil {
		return err
	}
	defer dev.Close()
	fmt.Fprintf(errOut, "%s\n%s\n", dev.Explain(), describeModel(info))
	var load []llm.LoadOption
	if f.dense {
		load = append(load, llm.WithDense())
	}
	for _, l := range f.lora {
		path, scale := scaledPath(l)
		a, err := llm.OpenAdapter(path)
		if err != nil {
			return err
		}
		defer a.Close()
		load = append(load, llm.WithAdapter(a, scale))
	}
	w, err := m.Load(ctx, dev, load...)
	if err != nil {
		return err
	}
	defer w.Close()
	size := f.context
	switch {
	case f.perplexity != "":
		size = f.benchPrompt
	case f.measure:
		size = max(f.benchPrompt, f.benchN) + 1
	}
	opts := []llm.SessionOption{llm.WithContext(min(size, info.Context)), llm.WithCache(f.cache)}
	if f.exact {
		opts = append(opts, llm.WithExact())
	}
	s, err := w.NewSession(ctx, opts...)
	if err != nil {
		return err
	}
	defer s.Close()
	if f.perplexity != "" {
		return f.perplex(ctx, out, errOut, s, m)
	}
	if f.measure {
		return f.measured(ctx, out, s, dev.Info().Name, info)
	}
	f.raw = f.raw || info.ChatTemplate == ""
	if f.draft == "" {
		return f.talk(ctx, in, out, errOut, s)
	}
	draft, err := llm.Open(f.draft)
	if err != nil {
		return err
	}
	defer draft.Close()
	fmt.Fprintf(errOut, "draft: %s\n", describeModel(draft.Info()))
	smaller, err := draft.Load(ctx, dev)
	if err != nil {
		return err
	}
	defer smaller.Close()
	ahead, err := smaller.NewSession(ctx, append(opts, llm.WithContext(min(size, draft.Info().Context)))...)
	if err != nil {
		return err
	}
	defer ahead.Close()
	return f.talk(ctx, in, out, errOut, s, llm.WithDraft(ahead, f.ahead))
}

// scaledPath is a path with a number after it, 1 if there is none.
func scaledPath(s string) (string, float32) {
	if i := strings.LastIndexByte(s, ':'); i >= 0 {
		if x, err := strconv.ParseFloat(s[i+1:], 32); err == nil {
			return s[:i], float32(x)
		}
	}
	return s, 1
}

// talk answers one message, or those of the input.
func (f *llmFlags) talk(ctx context.Context, in io.Reader, out, errOut io.Writer, s *llm.Session, more ...llm.GenerateOption) error {
	var talk []llm.Message
	if f.system != "" {
		talk = append(talk, llm.Message{Role: "system", Content: f.system})
	}
	if f.prompt != "" {
		_, err := f.answer(ctx, out, errOut, s, append(talk, llm.Message{Role: "user", Content: f.prompt}), more)
		return err
	}
	first := len(talk) // of the messages that are not the system's
	fmt.Fprintln(errOut, "Each line is a message; the end of the input ends the program.")
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for fmt.Fprint(errOut, "> "); lines.Scan(); fmt.Fprint(errOut, "> ") {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		talk = append(talk, llm.Message{Role: "user", Content: lines.Text()})
		text, err := f.answer(ctx, out, errOut, s, talk, more)
		for errors.Is(err, compute.ErrTooLarge) && len(talk) > first+2 {
			fmt.Fprintln(errOut, "[the conversation is too long: its oldest message and the answer are left out]")
			talk = slices.Delete(talk, first, first+2)
			text, err = f.answer(ctx, out, errOut, s, talk, more)
		}
		if err != nil {
			return err
		}
		talk = append(talk, llm.Message{Role: "assistant", Content: text})
	}
	fmt.Fprintln(errOut)
	return lines.Err()
}

// answer writes what the model says to the last message.
func (f *llmFlags) answer(ctx context.Context, out, errOut io.Writer, s *llm.Session, talk []llm.Message, more []llm.GenerateOption) (string, error) {
	opts := append([]llm.GenerateOption{llm.WithSampling(f.sampling), llm.WithStop(f.stop...)}, more...)
	if f.tokens > 0 {
		opts = append(opts, llm.WithMaxTokens(f.tokens))
	}
	if f.lookup != 0 {
		opts = append(opts, llm.WithLookup(f.lookup))
	}
	if f.keep >= 0 {
		opts = append(opts, llm.WithContextShift(f.keep))
	}
	sequence := s.Chat(ctx, talk, opts...)
	if f.raw {
		sequence = s.Generate(ctx, talk[len(talk)-1].Content, opts...)
	}
	var text strings.Builder
	finish := llm.Unfinished
	for token, err := range sequence {
		if err != nil {
			return "", err
		}
		if _, err := io.WriteString(io.MultiWriter(out, &text), token.Text); err != nil {
			return "", err
		}
		finish = token.Finish
	}
	fmt.Fprintln(out)
	st := s.Stats()
	ahead := ""
	if st.Drafted > 0 {
		ahead = fmt.Sprintf(", %d steps, %d of %d tokens ahead accepted", st.Steps, st.Accepted, st.Drafted)
	}
	fmt.Fprintf(errOut, "[%s; prompt %d tokens, %d known, %s; answer %s%s]\n", finish, st.Prompt, st.Known, rate(st.Prompt-st.Known, st.Prefill),
		rate(st.Steps+st.Accepted, st.Decoding), ahead)
	return text.String(), nil
}

func rate(n int, d time.Duration) string {
	if d <= 0 {
		return "no tokens"
	}
	return fmt.Sprintf("%.1f tokens/s", float64(n)/d.Seconds())
}

// perplex computes the perplexity of a text, with its standard error.
func (f *llmFlags) perplex(ctx context.Context, out, errOut io.Writer, s *llm.Session, m *llm.Model) error {
	text, err := os.ReadFile(f.perplexity)
	if err != nil {
		return err
	}
	begin, tokens := m.Tokenize(""), m.Tokenize(string(text))
	n := min(f.benchPrompt, s.Context(), len(tokens))
	count, sum, squares := 0, 0.0, 0.0
	for part := 1; n > 1 && len(tokens) >= n; part++ {
		copy(tokens, begin) // as the first one of each part
		p, err := s.LogProbs(ctx, tokens[:n])
		if err != nil {
			return err
		}
		for _, x := range p[n/2:] {
			count, sum, squares = count+1, sum-x, squares+x*x
		}
		fmt.Fprintf(errOut, "[%d: %.4f]\n", part, math.Exp(sum/float64(count)))
		tokens = tokens[n:]
	}
	if count == 0 {
		return usagef("--perplexity %s, --pp %d: there are no tokens after a context", f.perplexity, f.benchPrompt)
	}
	mean := sum / float64(count)
	off := 0.0
	if count > 1 {
		off = math.Sqrt(max(squares/float64(count)-mean*mean, 0)/float64(count-1)) * math.Exp(mean)
	}
	_, err = fmt.Fprintf(out, "perplexity %.4f ± %.4f of %d tokens\n", math.Exp(mean), off, count)
	return err
}

// llmMeasurement is a row of the table that llama-bench writes.
type llmMeasurement struct {
	Model   string    `json:"model"`
	Bytes   int64     `json:"bytes"`
	Params  int64     `json:"params"`
	Backend string    `json:"backend"`
	Test    string    `json:"test"`
	Rates   []float64 `json:"rates"` // tokens/s, sorted
}

func (f *llmFlags) measured(ctx context.Context, out io.Writer, s *llm.Session, device string, info llm.Info) error {
	random := rand.New(rand.NewPCG(1, 2))
	var rows []llmMeasurement
	for _, test := range []struct {
		name string
		n    int
	}{{"pp", f.benchPrompt}, {"tg", f.benchN}} {
		if test.n == 0 {
			continue
		}
		row := llmMeasurement{cmp.Or(info.Name, info.Architecture), info.Bytes, info.Parameters, device, fmt.Sprint(test.name, test.n), nil}
		for i := range f.repeat + 1 { // the first warms up
			prompt := make([]int32, 1)
			if test.name == "pp" {
				prompt = make([]int32, test.n)
			}
			for j := range prompt {
				prompt[j] = random.Int32N(int32(info.Vocabulary))
			}
			most := 1
			if test.name == "tg" {
				most = test.n + 1 // the first comes with the prompt
			}
			for _, err := range s.GenerateTokens(ctx, prompt, llm.WithMaxTokens(most), llm.WithIgnoreEnd()) {
				if err != nil {
					return err
				}
			}
			st := s.Stats()
			x := float64(st.Prompt-st.Known) / st.Prefill.Seconds()
			if test.name == "tg" {
				x = float64(st.Steps) / st.Decoding.Seconds()
			}
			if i > 0 {
				row.Rates = append(row.Rates, x)
			}
		}
		slices.Sort(row.Rates)
		rows = append(rows, row)
	}
	if f.json {
		return writeJSON(out, rows)
	}
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	fmt.Fprintf(w, "| model\t| size\t| params\t| backend\t| test\t| t/s\t|\n| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t|\n")
	for _, r := range rows {
		fmt.Fprintf(w, "| %s\t| %.2f MiB\t| %.2f M\t| %s\t| %s\t| %.2f\t|\n", printable(r.Model), float64(r.Bytes)/(1<<20), float64(r.Params)/1e6,
			r.Backend, r.Test, r.Rates[len(r.Rates)/2])
	}
	return w.Flush()
}

func describeModel(i llm.Info) string {
	return fmt.Sprintf("%s: %s, %d blocks of width %d, %d heads (%d of keys), vocabulary %d, context %d, %.1f M parameters in %.1f MiB",
		printable(cmp.Or(i.Name, "a model without a name")), printable(i.Architecture), i.Blocks, i.Width, i.Heads, i.KVHeads, i.Vocabulary, i.Context,
		float64(i.Parameters)/1e6, float64(i.Bytes)/(1<<20))
}
