//go:build !js

package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wavelane/wavelane/llm"
)

// metrics are what the server counts itself; the scheduler counts the rest.
type metrics struct {
	mu         sync.Mutex
	requests   map[served]int
	firstToken *histogram
	answer     *histogram
}

// served says which requests are counted together.
type served struct {
	path   string
	status int
}

func newMetrics() metrics {
	return metrics{requests: map[served]int{}, firstToken: &histogram{}, answer: &histogram{}}
}

func (m *metrics) count(path string, status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[served{path, status}]++
}

// bounds of the buckets of histograms, in seconds.
var bounds = [...]float64{0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100}

// histogram counts times.
type histogram struct {
	mu      sync.Mutex
	buckets [len(bounds) + 1]int // the last is for longer ones
	sum     float64
}

func (h *histogram) observe(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i, _ := slices.BinarySearch(bounds[:], d.Seconds())
	h.buckets[i]++
	h.sum += d.Seconds()
}

// write writes the histogram in Prometheus's text format: each bucket counts shorter times, too.
func (h *histogram) write(out *strings.Builder, name, help string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name)
	n := 0
	for i, of := range h.buckets {
		n += of
		bound := "+Inf"
		if i < len(bounds) {
			bound = fmt.Sprint(bounds[i])
		}
		fmt.Fprintf(out, "%s_bucket{le=%q} %d\n", name, bound, n)
	}
	fmt.Fprintf(out, "%s_sum %g\n%s_count %d\n", name, h.sum, name, n)
}

// writeMetrics writes all numbers in Prometheus's text format.
func (s *server) writeMetrics(w http.ResponseWriter, _ *http.Request) error {
	var out strings.Builder
	var of llm.SchedulerStats
	if s.scheduler != nil {
		of = s.scheduler.Stats()
	}
	for _, m := range []struct {
		name, kind, help string
		value            int64
	}{
		{"texts_running", "gauge", "Texts that are continued now.", int64(of.Running)},
		{"texts_waiting", "gauge", "Texts that wait.", int64(of.Waiting)},
		{"cache_tokens", "gauge", "Tokens that the cache has room for.", int64(of.CacheTokens)},
		{"cache_used_tokens", "gauge", "Tokens of the cache that belong to running texts.", int64(of.CacheUsed)},
		{"steps_total", "counter", "Steps of the model.", of.Steps},
		{"prompt_tokens_total", "counter", "Tokens of prompts.", of.Prompt},
		{"prompt_known_tokens_total", "counter", "Tokens of prompts that had been computed for another text.", of.Known},
		{"tokens_total", "counter", "Tokens that were chosen.", of.Tokens},
		{"drafted_tokens_total", "counter", "Tokens that a draft expected.", of.Drafted},
		{"accepted_tokens_total", "counter", "Of these, tokens that were chosen.", of.Accepted},
		{"put_off_total", "counter", "Times that a text was put off as the cache was full.", of.PutOff},
	} {
		fmt.Fprintf(&out, "# HELP wavelane_%[1]s %[2]s\n# TYPE wavelane_%[1]s %[3]s\nwavelane_%[1]s %[4]d\n", m.name, m.help, m.kind, m.value)
	}
	out.WriteString("# HELP wavelane_requests_total Requests, by path and status.\n# TYPE wavelane_requests_total counter\n")
	s.metrics.mu.Lock()
	for _, r := range slices.SortedFunc(maps.Keys(s.metrics.requests), func(a, b served) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.status, b.status))
	}) {
		fmt.Fprintf(&out, "wavelane_requests_total{path=%q,status=\"%d\"} %d\n", r.path, r.status, s.metrics.requests[r])
	}
	s.metrics.mu.Unlock()
	s.metrics.firstToken.write(&out, "wavelane_first_token_seconds", "Time from a request to its first token.")
	s.metrics.answer.write(&out, "wavelane_answer_seconds", "Time from a request to the end of its answer.")
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, err := w.Write([]byte(out.String()))
	return err
}
