package batch

import (
	"encoding/json"
	"io"
)

// traceEvent is an event in the Trace Event Format of Chromium, which Perfetto and chrome://tracing open.
type traceEvent struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"` // X: complete, M: metadata
	Begin    float64        `json:"ts"` // µs
	Duration *float64       `json:"dur,omitempty"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	Args     map[string]any `json:"args,omitempty"`
}

// Trace writes the profile as JSON that Perfetto (ui.perfetto.dev) and chrome://tracing open: the steps one after the other, with
// their figures. Time between steps is not in it.
func (p *Profile) Trace(w io.Writer) error {
	events := []traceEvent{
		{Name: "process_name", Phase: "M", Process: 1, Args: map[string]any{"name": "wavelane"}},
		{Name: "thread_name", Phase: "M", Process: 1, Thread: 1, Args: map[string]any{"name": "steps of the batch"}},
	}
	at := 0.0
	for i, s := range p.Steps {
		took := float64(s.Time.Nanoseconds()) / 1e3
		e := traceEvent{Name: s.Operation, Category: "step", Phase: "X", Begin: at, Duration: &took, Process: 1, Thread: 1,
			Args: map[string]any{"step": i, "recorded": s.Recorded, "operands": s.Operands, "results": s.Results, "bytes": s.Bytes,
				"flops": s.Flops, "GB/s": s.GBps, "GFLOP/s": s.GFLOPps}}
		if s.Bound != "" {
			e.Args["roofline"], e.Args["bound"] = s.Roofline, s.Bound
		}
		events = append(events, e)
		at += took
	}
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": events, "displayTimeUnit": "ns"})
}
