package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

func TestProfileCPU(t *testing.T) {
	_, d := openCPU(t)
	plan := testProfile(t, d)
	require.ErrorIs(t, plan.Code(&bytes.Buffer{}), compute.ErrUnsupported)
}

// testProfile profiles a matmul with company on a device, and shows what the plan is in all forms.
func testProfile(t *testing.T, dev batch.Device) *batch.Plan {
	b := batch.New(dev, batch.WithProfile(), batch.WithPeaks(batch.Peaks{Memory: 1e10, Math: 1e10, Product: 1e11}),
		batch.WithGuard(batch.NaN, batch.Report))
	const m, k, n = 48, 64, 32
	x := b.Reshape(b.Upload(filled(m*k, 1), m*k), m, k) // takes no time
	product := b.MatMul(x, b.Upload(filled(k*n, 0.5), k, n))
	out := b.Read(b.Softmax(product))
	again := b.Read(b.MatMul(x, b.Upload(filled(k*n, 1), k, n)))
	plan, err := b.Compile(context.Background())
	require.NoError(t, err)
	t.Cleanup(func() { plan.Close() })
	_, err = plan.Profile()
	require.ErrorIs(t, err, compute.ErrNotRun)
	require.NoError(t, plan.Start().Await(context.Background()))
	require.InDelta(t, 1.0/n, out.Float32s()[0], 1e-6)
	require.Equal(t, float32(k), again.Float32s()[5])

	p, err := plan.Profile()
	require.NoError(t, err)
	var first *batch.StepProfile
	for i := range p.Steps {
		if s := &p.Steps[i]; first == nil && strings.Contains(s.Operation, "matmul") {
			first = s
		}
		require.GreaterOrEqual(t, p.Steps[i].Time.Nanoseconds(), int64(0))
	}
	require.NotNil(t, first)
	require.Equal(t, []int{1}, first.Recorded)
	require.Equal(t, 2.0*m*k*n, first.Flops)
	require.Equal(t, 4.0*(m*k+k*n+m*n), first.Bytes)
	require.Equal(t, []string{"[48 64]", "[64 32]"}, first.Operands)
	require.Positive(t, p.Time)
	require.Greater(t, p.Wall, p.Time/2, "clocks differ a little")
	if first.Time > 0 {
		require.InEpsilon(t, first.Flops/first.Time.Seconds()/1e9, first.GFLOPps, 1e-9)
		require.Equal(t, "memory", first.Bound, "8 flops a byte are fewer than the 10 of the peaks")
		require.InEpsilon(t, first.Bytes/1e10/first.Time.Seconds(), first.Roofline, 1e-9)
	}
	table := p.String()
	for _, want := range []string{"GFLOP/s", "matmul", "softmax", "inspect", "[48 64] [64 32]", "steps in"} {
		require.Contains(t, table, want)
	}
	data, err := json.Marshal(p)
	require.NoError(t, err)
	var back batch.Profile
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, *p, back)
	checkTrace(t, p)

	listing := plan.String()
	for _, want := range []string{"upload [3072]", "recorded as 0", "; added", "read v", "matmul("} {
		require.Contains(t, listing, want)
	}
	checkDot(t, plan.Dot())
	return plan
}

// checkTrace holds a trace against the Trace Event Format: complete events with numbers for ts, dur, pid and tid, one after the other.
func checkTrace(t *testing.T, p *batch.Profile) {
	var w bytes.Buffer
	require.NoError(t, p.Trace(&w))
	var trace struct {
		TraceEvents []struct {
			Name     *string
			Ph       string
			Ts, Dur  *float64
			Pid, Tid *int
			Args     map[string]any
		}
		DisplayTimeUnit string
	}
	require.NoError(t, json.Unmarshal(w.Bytes(), &trace))
	require.Contains(t, []string{"ms", "ns"}, trace.DisplayTimeUnit)
	steps, end := 0, 0.0
	for _, e := range trace.TraceEvents {
		require.NotNil(t, e.Name)
		require.NotNil(t, e.Pid)
		require.NotNil(t, e.Tid)
		switch e.Ph {
		case "M":
			require.Contains(t, []string{"process_name", "thread_name"}, *e.Name)
			require.IsType(t, "", e.Args["name"])
		case "X":
			require.NotNil(t, e.Ts)
			require.NotNil(t, e.Dur)
			require.InDelta(t, end, *e.Ts, 1e-6)
			end = *e.Ts + *e.Dur
			require.Equal(t, p.Steps[steps].Operation, *e.Name)
			steps++
		default:
			t.Errorf("phase %q", e.Ph)
		}
	}
	require.Len(t, p.Steps, steps)
	require.InDelta(t, float64(p.Time.Nanoseconds())/1e3, end, 1e-3)
}

// checkDot parses what Graphviz would: statements of nodes and edges with attributes in brackets, all nodes declared before use.
func checkDot(t *testing.T, text string) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	require.Equal(t, "digraph plan {", lines[0])
	require.Equal(t, "}", lines[len(lines)-1])
	nodes, edges := map[string]bool{}, 0
	for _, line := range lines[1 : len(lines)-1] {
		statement, ok := strings.CutSuffix(strings.TrimSpace(line), ";")
		require.True(t, ok, line)
		subject, attributes, has := strings.Cut(statement, " [")
		if has {
			attributes, ok = strings.CutSuffix(attributes, "]")
			require.True(t, ok, line)
			require.Zero(t, strings.Count(strings.ReplaceAll(attributes, `\"`, ""), `"`)%2, line)
			require.Contains(t, attributes, "=")
		}
		from, to, edge := strings.Cut(subject, " -> ")
		switch {
		case edge:
			require.True(t, nodes[from] && nodes[to], line)
			edges++
		case has && subject != "node":
			require.Regexp(t, `^[a-z]+[0-9]+$`, subject)
			nodes[subject] = true
		}
	}
	require.Greater(t, edges, 5)
}
