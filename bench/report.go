package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Report is everything that a run found.
type Report struct {
	Date     string            `json:"date"`
	Machine  Machine           `json:"machine"`
	Tier     string            `json:"tier"`  // of the subject wavelane
	Peers    map[string]string `json:"peers"` // versions of what was measured in processes of its own
	Results  []Result          `json:"results"`
	Verdicts []Verdict         `json:"verdicts"`
}

// Verdict holds a claim against what was measured.
type Verdict struct {
	Case    string  `json:"case"`
	Threads int     `json:"threads"`
	Against string  `json:"against"`
	Ratio   float64 `json:"ratio"` // time of the other ÷ time of wavelane
	AtLeast float64 `json:"at_least,omitempty"`
	Aim     float64 `json:"aim"`
}

// Word says how the claim stands.
func (v Verdict) Word() string {
	switch {
	case v.Ratio < v.AtLeast:
		return "MISSED"
	case v.Ratio < v.Aim:
		return "met"
	}
	return "aim met"
}

// judge compares times, where the other has been measured.
func judge(c Case, results []Result) []Verdict {
	ns := map[string]float64{}
	for _, r := range results {
		ns[r.Subject] = r.NS
	}
	var verdicts []Verdict
	for _, claim := range c.Claims {
		other, ok := ns[claim.Against]
		if !ok {
			continue
		}
		verdicts = append(verdicts, Verdict{c.Name, results[0].Threads, claim.Against, other / ns[ours], claim.AtLeast, claim.Aim})
	}
	return verdicts
}

// writeTable writes one case for people.
func writeTable(w io.Writer, results []Result) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	var own float64
	for _, r := range results {
		if r.Subject == ours {
			own = r.NS
		}
	}
	fmt.Fprintf(w, "%s, %s\n", results[0].Case, threadsName(results[0].Threads))
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%s\t%.4g %s\t%.2f×\t\n", r.Subject, duration(r.NS), r.Rate, r.Unit, r.NS/own)
	}
	t.Flush()
}

func threadsName(n int) string {
	if n == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", n)
}

func duration(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.1f ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.2f µs", ns/1e3)
	}
	return fmt.Sprintf("%.2f ms", ns/1e6)
}

func writeVerdicts(w io.Writer, verdicts []Verdict) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "case\tthreads\tagainst\tratio\tat least\taim\t")
	for _, v := range verdicts {
		fmt.Fprintf(t, "%s\t%d\t%s\t%.2f\t%g\t%g\t%s\n", v.Case, v.Threads, v.Against, v.Ratio, v.AtLeast, v.Aim, v.Word())
	}
	t.Flush()
}

// writeText writes all samples in the format of go test -bench, which benchstat reads.
func (r *Report) writeText(w io.Writer) error {
	fmt.Fprintf(w, "goos: %s\ncpu: %s\n", strings.ReplaceAll(r.Machine.OS, "/", "\ngoarch: "), r.Machine.CPU)
	for _, x := range r.Results {
		name, size, _ := strings.Cut(x.Case, "/")
		for _, ns := range x.Samples {
			_, err := fmt.Fprintf(w, "Benchmark%s/size=%s/threads=%d/subject=%s 1 %.1f ns/op %.4g %s\n",
				strings.ToUpper(name[:1])+name[1:], size, x.Threads, strings.ReplaceAll(x.Subject, "/", "-"), ns, x.Rate*x.NS/ns, x.Unit)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "\t")
	return e.Encode(r)
}
