//go:build !js

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/internal/decoder"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

type mapFlags struct {
	prefill         bool
	dense, exact    bool
	cache           quant.Type
	chunk, context  int
	kernel, reverse string
	json            bool
}

func ptxMapCommand() *cobra.Command {
	f := mapFlags{chunk: 64, context: 2048}
	c := &cobra.Command{
		Use:   "map MODEL.gguf",
		Short: "Show what an NVIDIA GPU launches for each layer of a model, and where that was written",
		Long: `Show what an NVIDIA GPU launches for each layer of a model in a GGUF file: the parts of each layer, the steps that are
left after fusion, the lines of Go that recorded them, and the kernels with their grids. It compiles the plan that
examples/decode runs, of one token or with --prefill of a chunk of the prompt, for the software GPU; weights are not
read and nothing is executed.

The first line counts launches; copies and fills, which need no kernel, are listed but do not count.`,
		Example: `  wavelane ptx map model.gguf
  wavelane ptx map model.gguf --prefill --kernel gemm
  wavelane ptx map model.gguf --reverse rope
  wavelane ptx map model.gguf --json | jq '.parts[] | select(.block == 0) | .steps[].launches[].kernel'`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, files []string) error { return ptxMap(c.Context(), c.OutOrStdout(), files[0], f) },
	}
	c.Flags().BoolVar(&f.prefill, "prefill", false, "the plan of a chunk of the prompt instead of that of a token")
	c.Flags().BoolVar(&f.dense, "dense", false, "with float32 instead of quantised weights")
	c.Flags().BoolVar(&f.exact, "exact", false, "with products of quantised weights and float32; otherwise activations are rounded to 8 bits first")
	cacheVar(c, &f.cache)
	c.Flags().IntVar(&f.chunk, "chunk", f.chunk, "`tokens` of a chunk")
	c.Flags().IntVar(&f.context, "ctx", f.context, "`tokens` that there is room for, at most what the model was trained on")
	c.Flags().StringVar(&f.kernel, "kernel", "", "only launches of kernels whose `name` contains this")
	c.Flags().StringVar(&f.reverse, "reverse", "", "for kernels whose `name` contains this, the parts and layers that launch them")
	c.Flags().BoolVar(&f.json, "json", false, "write JSON")
	return c
}

// modelMap is a plan, part by part.
type modelMap struct {
	Model    string       `json:"model"`
	Plan     string       `json:"plan"` // "decode" or "prefill"
	Tokens   int          `json:"tokens"`
	Target   string       `json:"target"`
	Launches int          `json:"launches"` // of kernels, in all parts
	Kernels  int          `json:"kernels"`  // different ones
	Parts    []mappedPart `json:"parts"`
}

type mappedPart struct {
	Block *int         `json:"block,omitempty"` // none outside of the blocks
	Name  string       `json:"name"`
	Steps []mappedStep `json:"steps"`
}

type mappedStep struct {
	Operation string         `json:"operation"`
	Operands  []string       `json:"operands"`
	Results   []string       `json:"results"`
	Weights   []string       `json:"weights,omitempty"`
	Sources   [][]string     `json:"sources"`
	Launches  []mappedLaunch `json:"launches"`
}

type mappedLaunch struct {
	batch.Launch
	Family string `json:"family,omitempty"` // of the kernel; "made" for those that are made for a fused step
}

func (l *mappedLaunch) isKernel() bool { return l.Block[0] > 0 }

func ptxMap(ctx context.Context, out io.Writer, name string, f mapFlags) error {
	if f.chunk < 2 || f.context < 1 {
		return usagef("--chunk %d --ctx %d: want at least 2 and 1", f.chunk, f.context)
	}
	if f.kernel != "" && f.reverse != "" {
		return usagef("--kernel and --reverse: one of them")
	}
	file, err := gguf.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	model, err := decoder.Read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	dev, err := cuda.Open(ctx, cuda.WithSoftware(), cuda.WithoutCache())
	if err != nil {
		return err
	}
	defer dev.Close()
	m := &modelMap{Model: model.Name, Plan: "decode", Tokens: 1, Target: dev.Info().Target().String()}
	if f.prefill {
		m.Plan, m.Tokens = "prefill", f.chunk
	}
	steps, err := model.Map(ctx, dev, m.Tokens, decoder.LoadOptions{Dense: f.dense}, decoder.SessionOptions{
		Context: min(f.context, model.Context), Chunk: f.chunk, Exact: f.exact,
		Cache: f.cache, Output: decoder.Output{TopK: 1}})
	if err != nil {
		return err
	}
	m.add(steps)
	if pattern := f.kernel + f.reverse; pattern != "" {
		if m.Parts = m.launching(pattern); len(m.Parts) == 0 {
			return fmt.Errorf("no kernel of this plan has %q in its name: 'wavelane ptx map %s' lists them", pattern, name)
		}
	}
	switch {
	case f.json:
		return writeJSON(out, m)
	case f.reverse != "":
		return m.writeReverse(out)
	}
	return m.writeText(out)
}

// add groups steps by parts and counts their launches. Steps that only look at memory in another way launch nothing.
func (m *modelMap) add(steps []decoder.MappedStep) {
	kernels := map[string]bool{}
	var part decoder.Part
	for i := range steps {
		s := &steps[i]
		if len(s.Launches) == 0 {
			continue
		}
		if len(m.Parts) == 0 || s.Part != part {
			part = s.Part
			m.Parts = append(m.Parts, mappedPart{Name: part.Name})
			if part.Block >= 0 {
				m.Parts[len(m.Parts)-1].Block = &s.Block
			}
		}
		step := mappedStep{s.Operation, s.Operands, s.Results, s.Weights, shortSources(s.Sources), nil}
		for _, l := range s.Launches {
			x := mappedLaunch{Launch: l}
			if x.isKernel() {
				m.Launches++
				kernels[l.Kernel] = true
				x.Family = "made"
				if k := kit.KernelNamed(l.Kernel); k != nil {
					x.Family = k.Family
				}
			}
			step.Launches = append(step.Launches, x)
		}
		last := &m.Parts[len(m.Parts)-1]
		last.Steps = append(last.Steps, step)
	}
	m.Kernels = len(kernels)
}

// shortSources are paths in the module.
func shortSources(all [][]string) [][]string {
	const decoder = "internal/decoder/"
	for _, chain := range all {
		for i, site := range chain {
			if at := strings.LastIndex(site, decoder); at >= 0 {
				chain[i] = site[at:]
			}
		}
	}
	return all
}

// launching are the parts, steps and launches whose kernels have that in their names.
func (m *modelMap) launching(pattern string) (parts []mappedPart) {
	for _, p := range m.Parts {
		steps := p.Steps
		p.Steps = nil
		for _, s := range steps {
			s.Launches = slices.DeleteFunc(s.Launches, func(l mappedLaunch) bool { return !strings.Contains(l.Kernel, pattern) })
			if len(s.Launches) > 0 {
				p.Steps = append(p.Steps, s)
			}
		}
		if len(p.Steps) > 0 {
			parts = append(parts, p)
		}
	}
	return parts
}

func (p *mappedPart) title() string {
	if p.Block == nil {
		return p.Name
	}
	return fmt.Sprintf("block %d, %s", *p.Block, p.Name)
}

func (m *modelMap) writeText(out io.Writer) error {
	var b strings.Builder
	m.writeTitle(&b)
	for i := range m.Parts {
		p := &m.Parts[i]
		fmt.Fprintf(&b, "\n%s\n", printable(p.title()))
		for _, s := range p.Steps {
			fmt.Fprintf(&b, "  %s  %s → %s\n", s.Operation, strings.Join(s.Operands, ", "), strings.Join(s.Results, ", "))
			if len(s.Weights) > 0 {
				fmt.Fprintf(&b, "    of %s\n", printable(strings.Join(s.Weights, ", ")))
			}
			for _, chain := range s.Sources {
				fmt.Fprintf(&b, "    at %s\n", strings.Join(chain, ", from "))
			}
			for _, l := range s.Launches {
				if !l.isKernel() {
					fmt.Fprintf(&b, "    %s\n", l.Kernel)
					continue
				}
				fmt.Fprintf(&b, "    %s (%s)  grid %s, block %s\n", l.Kernel, l.Family, dims(l.Grid), dims(l.Block))
			}
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (m *modelMap) writeTitle(b *strings.Builder) {
	tokens := "1 token"
	if m.Tokens > 1 {
		tokens = fmt.Sprintf("%d tokens", m.Tokens)
	}
	fmt.Fprintf(b, "%s of %s for %s: %d launches of %d kernels\n", m.Plan, tokens, m.Target, m.Launches, m.Kernels)
}

// writeReverse lists kernels with the parts that launch them.
func (m *modelMap) writeReverse(out io.Writer) error {
	type use struct {
		part  string
		block []string
		count int
	}
	var kernels []string
	uses := map[string][]*use{}
	for i := range m.Parts {
		p := &m.Parts[i]
		for _, s := range p.Steps {
			for _, l := range s.Launches {
				list := uses[l.Kernel]
				if list == nil {
					kernels = append(kernels, l.Kernel)
				}
				at := slices.IndexFunc(list, func(u *use) bool { return u.part == p.Name })
				if at < 0 {
					at, list = len(list), append(list, &use{part: p.Name})
					uses[l.Kernel] = list
				}
				list[at].count++
				if p.Block != nil {
					if name := fmt.Sprint(*p.Block); !slices.Contains(list[at].block, name) {
						list[at].block = append(list[at].block, name)
					}
				}
			}
		}
	}
	var b strings.Builder
	m.writeTitle(&b)
	for _, k := range kernels {
		fmt.Fprintf(&b, "\n%s\n", k)
		for _, u := range uses[k] {
			where := ""
			if len(u.block) > 0 {
				where = " of blocks " + strings.Join(u.block, " ")
			}
			fmt.Fprintf(&b, "  %d × %s%s\n", u.count, u.part, where)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func dims(d [3]uint32) string { return fmt.Sprintf("%d×%d×%d", d[0], d[1], d[2]) }
