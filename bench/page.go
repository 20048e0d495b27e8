package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

//go:embed page.html
var pageSource string

var page = template.Must(template.New("page").Funcs(template.FuncMap{"duration": duration, "threads": threadsName}).Parse(pageSource))

// figure is one plot: the cases of one name, or the functions, over size or name.
type figure struct {
	Title string
	SVG   template.HTML
}

// writeHTML writes one page with everything in it, which needs nothing else to show.
func (r *Report) writeHTML(w io.Writer) error {
	var figures []figure
	for _, g := range r.groups() {
		svg, err := g.draw()
		if err != nil {
			return err
		}
		figures = append(figures, figure{g.title, svg})
	}
	return page.Execute(w, struct {
		*Report
		Figures []figure
	}{r, figures})
}

// group is what one plot shows: the rates of some cases, by subject.
type group struct {
	title, unit string
	labels      []string
	sizes       []float64 // nil: bars by label
	rates       map[string][]float64
}

// groups puts results together: one plot for each name with several sizes, one for the other cases of each unit.
func (r *Report) groups() []*group {
	count := map[string]int{}
	seen := map[string]bool{}
	for _, x := range r.Results {
		if !seen[x.Case] {
			seen[x.Case] = true
			name, _, _ := strings.Cut(x.Case, "/")
			count[name]++
		}
	}
	var groups []*group
	known := map[string]*group{}
	for _, x := range r.Results {
		name, size, _ := strings.Cut(x.Case, "/")
		n, err := strconv.ParseFloat(size, 64)
		lines := err == nil && count[name] > 1
		title, label := name, size
		if !lines {
			title, label = "others", x.Case
		}
		title = fmt.Sprintf("%s, %s: %s", title, threadsName(x.Threads), x.Unit)
		g := known[title]
		if g == nil {
			g = &group{title: title, unit: x.Unit, rates: map[string][]float64{}}
			known[title] = g
			groups = append(groups, g)
		}
		if len(g.labels) == 0 || g.labels[len(g.labels)-1] != label {
			g.labels = append(g.labels, label)
			if lines {
				g.sizes = append(g.sizes, n)
			}
		}
		for len(g.rates[x.Subject]) < len(g.labels)-1 {
			g.rates[x.Subject] = append(g.rates[x.Subject], math.NaN())
		}
		g.rates[x.Subject] = append(g.rates[x.Subject], x.Rate)
	}
	return groups
}

// colours keeps a subject's colour the same in all plots.
var colours = map[string]color.Color{
	ours: color.RGBA{0, 90, 200, 255}, openblas: color.RGBA{210, 60, 40, 255}, gonumS: color.RGBA{60, 150, 60, 255},
	mkl: color.RGBA{0, 150, 170, 255}, blis: color.RGBA{170, 40, 120, 255}, onnx: color.RGBA{150, 110, 70, 255},
	vek: color.RGBA{230, 150, 20, 255}, plainGo: color.RGBA{120, 120, 120, 255}, peak: color.RGBA{0, 0, 0, 255},
}

func colour(subject string) color.Color {
	if c := colours[subject]; c != nil {
		return c
	}
	h := 0
	for _, b := range subject {
		h = h*31 + int(b)
	}
	return color.RGBA{uint8(90 + h%60), uint8(130 + h/60%60), uint8(190 + h/3600%60), 255}
}

func (g *group) draw() (template.HTML, error) {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	plotter.DefaultFont = plot.DefaultFont
	p := plot.New()
	p.Y.Label.Text = g.unit
	p.Y.Min = 0
	p.Legend.Top = true
	p.Legend.Left = true
	p.Add(plotter.NewGrid())
	var subjects []string
	for s := range g.rates {
		subjects = append(subjects, s)
	}
	slices.Sort(subjects)
	top := 0.0
	for i, s := range subjects {
		rates := g.rates[s]
		for _, v := range rates {
			if !math.IsNaN(v) {
				top = max(top, v)
			}
		}
		if g.sizes != nil {
			var xy plotter.XYs
			for i, v := range rates {
				if !math.IsNaN(v) {
					xy = append(xy, plotter.XY{X: g.sizes[i], Y: v})
				}
			}
			line, points, err := plotter.NewLinePoints(xy)
			if err != nil {
				return "", err
			}
			line.Color, points.Color = colour(s), colour(s)
			line.Width = vg.Points(1.5)
			points.Shape = draw.CircleGlyph{}
			if s == peak {
				line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
			}
			p.Add(line, points)
			p.Legend.Add(s, line, points)
			continue
		}
		values := make(plotter.Values, len(g.labels))
		for i := range values {
			if i < len(rates) && !math.IsNaN(rates[i]) {
				values[i] = rates[i]
			}
		}
		width := vg.Points(min(14, 420/float64(len(g.labels)*(len(subjects)+1))))
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return "", err
		}
		bars.Color, bars.LineStyle.Width = colour(s), 0
		bars.Offset = vg.Length(float64(i)-float64(len(subjects)-1)/2) * width
		p.Add(bars)
		p.Legend.Add(s, bars)
	}
	p.Y.Max = 1.45 * top // room for the legend
	if g.sizes != nil {
		p.X.Label.Text = "size"
		p.X.Scale = plot.LogScale{}
		p.X.Max *= 1.1 // room for the last label
		p.X.Tick.Marker = plot.ConstantTicks(g.ticks())
	} else {
		p.NominalX(g.labels...)
	}
	c := vgsvg.New(8*vg.Inch, 4.2*vg.Inch)
	p.Draw(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return "", err
	}
	svg := b.String()
	svg = svg[strings.Index(svg, "<svg"):]
	// Readers without the Liberation fonts get what is much like them.
	return template.HTML(strings.ReplaceAll(svg, "font-family:Liberation Sans", "font-family:Liberation Sans,Arial,sans-serif")), nil
}

func (g *group) ticks() []plot.Tick {
	var ticks []plot.Tick
	for i, n := range g.sizes {
		ticks = append(ticks, plot.Tick{Value: n, Label: g.labels[i]})
	}
	return ticks
}
