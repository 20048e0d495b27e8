//go:build !js

package benchmarks

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{"short": Short}).Parse(pageText))

// WritePage writes a history as an HTML page that needs nothing else: for each benchmark on each device a plot of the medians of its
// ways over the runs, with the intervals as bands, and the last run as a table.
func WritePage(w io.Writer, runs []Run) error {
	return page.Execute(w, struct {
		Runs  []Run
		Plots []*plot
	}{runs, plotsOf(runs)})
}

// plot is one benchmark on one device.
type plot struct {
	Title, Doc string
	Series     []*series
	Ticks      []tick // of times, on a logarithmic scale
	low, high  float64
	runs       []Run
}

type series struct {
	Way    string
	Class  string // of its colour
	Points []point
	Line   string // of the medians
	Band   string // of the intervals
	Last   *Result
}

type point struct {
	X, Y  string
	Label string
	at    int // run
	*Result
}

type tick struct{ Y, Label string }

// The drawing's size in user units, and the room for labels at its left.
const (
	plotWidth, plotHeight = 640.0, 200.0
	plotLeft, plotMargin  = 64.0, 12.0
	colours               = 6
)

func plotsOf(runs []Run) []*plot {
	docs := map[string]string{}
	for _, b := range All() {
		docs[b.Name] = b.Doc
	}
	byTitle := map[string]*plot{}
	var plots []*plot
	for at := range runs {
		for i := range runs[at].Results {
			r := &runs[at].Results[i]
			if r.Error != "" {
				continue
			}
			title := r.Benchmark + " on " + r.Kind + ": " + r.Device
			p := byTitle[title]
			if p == nil {
				p = &plot{Title: title, Doc: docs[r.Benchmark], low: math.Inf(1), runs: runs}
				byTitle[title] = p
				plots = append(plots, p)
			}
			p.add(at, r)
		}
	}
	for _, p := range plots {
		p.draw()
	}
	return plots
}

func (p *plot) add(at int, r *Result) {
	i := slices.IndexFunc(p.Series, func(s *series) bool { return s.Way == r.Way })
	if i < 0 {
		i = len(p.Series)
		p.Series = append(p.Series, &series{Way: r.Way, Class: fmt.Sprint("way", i%colours)})
	}
	s := p.Series[i]
	s.Points = append(s.Points, point{at: at, Result: r})
	s.Last = r
	for _, t := range []float64{float64(r.Median), r.Interval[0], r.Interval[1]} {
		if t > 0 {
			p.low, p.high = min(p.low, t), max(p.high, t)
		}
	}
}

// draw lays the plot out.
func (p *plot) draw() {
	p.low, p.high = p.low/1.1, p.high*1.1
	x := func(at int) string {
		part := 0.5
		if len(p.runs) > 1 {
			part = float64(at) / float64(len(p.runs)-1)
		}
		return fmt.Sprintf("%.1f", plotLeft+part*(plotWidth-plotLeft-plotMargin))
	}
	y := func(t float64) string {
		part := math.Log(max(t, p.low)/p.low) / math.Log(p.high/p.low)
		return fmt.Sprintf("%.1f", plotHeight-plotMargin-part*(plotHeight-2*plotMargin))
	}
	for _, s := range p.Series {
		var line, upper []string
		var lower []string
		for i := range s.Points {
			q := &s.Points[i]
			q.X, q.Y = x(q.at), y(float64(q.Median))
			run := p.runs[q.at]
			q.Label = fmt.Sprintf("%s: %v (%v to %v), %s, %s", s.Way, Short(q.Median), Short(time.Duration(q.Interval[0])), Short(time.Duration(q.Interval[1])),
				run.Time.Format(time.DateTime), run.Version)
			line = append(line, q.X+","+q.Y)
			upper = append(upper, q.X+","+y(q.Interval[1]))
			lower = append(lower, q.X+","+y(q.Interval[0]))
		}
		slices.Reverse(lower)
		s.Line, s.Band = strings.Join(line, " "), strings.Join(append(upper, lower...), " ")
	}
	for e := math.Floor(math.Log10(p.low)); e <= math.Log10(p.high); e++ {
		for _, m := range []float64{1, 2, 5} {
			if t := m * math.Pow(10, e); t >= p.low && t <= p.high {
				p.Ticks = append(p.Ticks, tick{y(t), time.Duration(t).String()})
			}
		}
	}
}
