package profile

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/roofline"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{"big": big, "times": times, "percent": percent}).Parse(pageText))

// WriteHTML writes a page of its own, without scripts, that shows each kernel's figures beside the lines of its source. A line opens to the
// PTX that it became.
func (p *Profile) WriteHTML(w io.Writer) error {
	var view struct {
		GPU     roofline.Model
		Kernels []kernelView
	}
	view.GPU = p.GPU
	for _, k := range p.Kernels {
		view.Kernels = append(view.Kernels, p.view(k))
	}
	return page.Execute(w, view)
}

// kernelView is a kernel as the page shows it.
type kernelView struct {
	*Kernel
	Summary [][2]string
	Files   []fileView
	Plot    plot
}

type fileView struct {
	Name string
	Rows []rowView
}

// rowView is a line of source; Line is nil where nothing was executed, Gap where lines are left out before it.
type rowView struct {
	Number int
	Text   string
	Line   *Line
	Heat   float64 // the line's share of the instructions, in percent of the largest
	Gap    bool
}

const context = 3 // lines shown around those that were executed

func (p *Profile) view(k *Kernel) kernelView {
	v := kernelView{Kernel: k, Summary: p.summary(k)[1:], Plot: p.plot(k)}
	most := 0.0
	for _, l := range k.Lines {
		most = max(most, l.Share)
	}
	for i := 0; i < len(k.Lines); {
		name, first := k.Lines[i].Pos.File, i
		at := map[int]*Line{}
		for ; i < len(k.Lines) && k.Lines[i].Pos.File == name; i++ {
			at[k.Lines[i].Pos.Line] = k.Lines[i]
		}
		f := fileView{Name: name}
		last := 0
		show := func(n int) {
			text, l := p.files.Line(ir.Pos{File: name, Line: n}), at[n]
			if l != nil {
				text = l.Text
			}
			if n <= last || n < 1 || l == nil && n > len(p.files.Lines(name)) {
				return
			}
			row := rowView{Number: n, Text: strings.ReplaceAll(text, "\t", "    "), Line: l, Gap: last > 0 && n > last+1}
			if l != nil && most > 0 {
				row.Heat = 100 * l.Share / most
			}
			f.Rows, last = append(f.Rows, row), n
		}
		for _, l := range k.Lines[first:i] {
			for n := l.Pos.Line - context; n <= l.Pos.Line; n++ {
				show(n)
			}
			for n := l.Pos.Line + 1; n <= l.Pos.Line+context && at[n] == nil; n++ {
				show(n)
			}
		}
		f.Name = shortened(name)
		v.Files = append(v.Files, f)
	}
	return v
}

// shortened is a path with its last two elements.
func shortened(name string) string {
	dir, base := filepath.Split(filepath.ToSlash(name))
	if dir == "" {
		return base
	}
	return filepath.Base(dir) + "/" + base
}

func percent(x float64) string {
	switch {
	case x == 0:
		return ""
	case x < 0.001:
		return "<0.1 %"
	}
	return fmt.Sprintf("%.1f %%", 100*x)
}

// plot is a roofline on logarithmic axes, in a box of 320 by 150.
type plot struct {
	RidgeX, RoofY, DotX, DotY  float64
	Ridge, Intensity, Roof, At string
	Known                      bool
}

func (p *Profile) plot(k *Kernel) plot {
	r := k.Roofline
	peak, err := p.GPU.PeakOf(r.Rate)
	if err != nil || r.Intensity == 0 || r.Ridge == 0 {
		return plot{}
	}
	// Three decades below the ridge, or as many as the kernel needs, and one and a half above.
	low := min(math.Log10(r.Ridge)-3, math.Floor(math.Log10(r.Intensity)))
	high := max(math.Log10(r.Ridge)+1.5, math.Ceil(math.Log10(r.Intensity)))
	x := func(intensity float64) float64 { return 320 * (math.Log10(intensity) - low) / (high - low) }
	y := func(rate float64) float64 {
		return 20 + 130*(math.Log10(peak)-math.Log10(rate))/(math.Log10(r.Ridge)-low)
	}
	return plot{RidgeX: x(r.Ridge), RoofY: 20, DotX: x(r.Intensity), DotY: y(r.Attainable), Ridge: fmt.Sprintf("%.3g", r.Ridge),
		Intensity: fmt.Sprintf("%.3g", r.Intensity), Roof: fmt.Sprintf("%.3g T/s %s", peak/1e12, r.Rate), At: fmt.Sprintf("%.3g T/s", r.Attainable/1e12),
		Known: true}
}
