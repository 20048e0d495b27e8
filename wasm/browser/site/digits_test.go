package site

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/browser"
)

type model struct {
	Widths  []int
	Weights []byte
	Samples []struct {
		Label   int
		Picture []float32
	}
}

// probabilities are those of the network, computed natively.
func (m *model) probabilities(t *testing.T, picture []float32) []float32 {
	dev, err := cpu.Open(context.Background())
	require.NoError(t, err)
	defer dev.Close()
	b := batch.New(dev)
	take := func(shape ...int) batch.Value {
		n := 1
		for _, d := range shape {
			n *= d
		}
		bits := make([]compute.F16, n)
		for i := range bits {
			bits[i] = compute.F16(binary.LittleEndian.Uint16(m.Weights[2*i:]))
		}
		m.Weights = m.Weights[2*n:]
		return b.Cast(b.Upload(bits, shape...), compute.Float32)
	}
	all := m.Weights
	x := b.Scale(b.Upload(picture, 1, m.Widths[0]), 1.0/16)
	for i, in := range m.Widths[:len(m.Widths)-1] {
		weights, bias := take(in, m.Widths[i+1]), take(m.Widths[i+1])
		if i > 0 {
			x = b.ReLU(x)
		}
		x = b.MatMulWithBias(x, weights, bias)
	}
	m.Weights = all
	p := b.Read(b.Softmax(x))
	require.NoError(t, b.Run(t.Context()))
	return p.Float32s()
}

// drawings are digits as strokes on a pad of 100 × 100, drawn by hand.
var drawings = map[int]string{
	0: "50,15 34,22 27,40 27,60 34,78 50,86 66,78 73,60 73,40 66,22 50,15",
	1: "38,30 52,16 52,86",
	2: "30,30 38,18 54,15 68,22 70,36 60,50 44,66 28,84 74,84",
	3: "30,22 44,14 62,18 66,32 56,44 44,48 60,52 70,64 64,80 46,87 28,80",
	4: "56,14 40,36 26,58 74,58|60,36 60,88",
	5: "70,15 36,15 32,46 50,42 66,50 70,66 62,82 44,87 28,80",
	6: "62,13 44,28 32,50 30,70 42,86 60,86 70,74 66,58 50,52 34,62",
	7: "28,16 72,16 58,44 46,86",
	8: "50,48 34,38 34,22 50,14 66,22 66,36 50,48 32,62 30,78 50,88 70,78 68,62 50,48",
	9: "68,30 58,16 42,16 32,28 36,44 52,50 66,40 68,30 66,60 56,86",
}

func testDigits(s site) {
	text, err := os.ReadFile(filepath.Join(built, "digits.json"))
	require.NoError(s.t, err)
	var m model
	require.NoError(s.t, json.Unmarshal(text, &m))
	require.Len(s.t, m.Samples, 10)
	// Nobody but the plan remembers the weights.
	_, err = chromedp.Call(s.Context(), heapprofiler.CollectGarbage, cdp.Empty{})
	require.NoError(s.t, err)
	for i, sample := range m.Samples {
		s.Click(s.t, fmt.Sprintf("#digits-samples button:nth-child(%d)", i+1))
		s.wait("digits-status", fmt.Sprintf("This is a %d,", sample.Label))
		want := m.probabilities(s.t, sample.Picture)
		for digit, p := range bars(s) {
			require.InDelta(s.t, 100*want[digit], p, 0.06, "sample %d", i)
		}
	}

	for digit := range 10 {
		s.Click(s.t, "#digits-clear")
		require.Equal(s.t, "Draw a digit.", s.text("#digits-status"))
		draw(s, drawings[digit])
		s.wait("digits-status", fmt.Sprintf("This is a %d,", digit)) // half a digit may have been another one
	}

	s.Click(s.t, "#digits-clear")
	touch(s, [2]float64{30, 16}, [2]float64{50, 16}, [2]float64{72, 16}, [2]float64{58, 50}, [2]float64{46, 86})
	s.wait("digits-status", "This is a 7,")
}

// touch draws a stroke with a finger.
func touch(s site, stroke ...[2]float64) {
	s.t.Helper()
	box := browser.Eval[[]float64](s.t, s.Page, `{ const r = document.getElementById("digits-pad").getBoundingClientRect(); [r.left, r.top, r.width / 100] }`)
	send := func(kind input.DispatchTouchEventType, points ...*input.TouchPoint) {
		s.t.Helper()
		if points == nil {
			points = []*input.TouchPoint{}
		}
		_, err := chromedp.Call(s.Context(), input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: points})
		require.NoError(s.t, err)
	}
	kind := input.DispatchTouchEventTypeTouchStart
	for _, p := range stroke {
		send(kind, &input.TouchPoint{X: box[0] + p[0]*box[2], Y: box[1] + p[1]*box[2]})
		kind = input.DispatchTouchEventTypeTouchMove
	}
	send(input.DispatchTouchEventTypeTouchEnd)
}

// draw draws strokes with the mouse.
func draw(s site, strokes string) {
	s.t.Helper()
	s.Exec(s.t, `document.getElementById("digits-pad").scrollIntoView({block: "center"})`)
	box := browser.Eval[[]float64](s.t, s.Page, `{ const r = document.getElementById("digits-pad").getBoundingClientRect(); [r.left, r.top, r.width / 100] }`)
	for _, stroke := range strings.Split(strokes, "|") {
		var last [2]float64
		for i, point := range strings.Fields(stroke) {
			x, y, _ := strings.Cut(point, ",")
			for axis, v := range []string{x, y} {
				f, err := strconv.ParseFloat(v, 64)
				require.NoError(s.t, err)
				last[axis] = box[axis] + f*box[2]
			}
			kind := chromedp.MouseMoved
			if i == 0 {
				kind = chromedp.MousePressed
			}
			require.NoError(s.t, chromedp.Do(s.Context(), chromedp.MouseEvent(kind, last[0], last[1], chromedp.ButtonLeft, chromedp.ClickCount(1))))
		}
		require.NoError(s.t, chromedp.Do(s.Context(), chromedp.MouseEvent(chromedp.MouseReleased, last[0], last[1], chromedp.ButtonLeft, chromedp.ClickCount(1))))
	}
}

// bars are the probabilities shown, in per cent.
func bars(s site) []float64 {
	s.t.Helper()
	texts := browser.Eval[[]string](s.t, s.Page, `[...document.querySelectorAll("#digits-bars .value")].map((e) => e.textContent)`)
	require.Len(s.t, texts, 10)
	values := make([]float64, len(texts))
	for i, text := range texts {
		v, err := strconv.ParseFloat(strings.TrimSuffix(text, " %"), 64)
		require.NoError(s.t, err)
		values[i] = v
	}
	return values
}
