package gpu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// TuneMode says when kernel variants are measured.
type TuneMode uint8

// Tune modes.
const (
	// TuneCached uses what was measured before, by this process or an earlier one; it never measures by itself.
	TuneCached TuneMode = iota
	// TuneOff always takes the default variant.
	TuneOff
	// TuneFirstUse measures when an operation meets a problem of a new magnitude, before it runs: once with each variant and
	// some more with the fast ones. Browsers do not have it.
	TuneFirstUse
)

// Choice is a decision between variants of a kernel.
type Choice struct {
	Class   string `json:"class"`   // of operations: "matmul"
	Problem string `json:"problem"` // sizes rounded to powers of two
	Variant string `json:"variant"`
	Why     string `json:"why"`  // "forced", "measured" (also by an earlier process), "default"
	Uses    int    `json:"uses"` // compilations that took it
}

// tuner decides between variants.
type tuner struct {
	d      *core
	mode   TuneMode
	forced map[string]string // variant by class
	cache  *tuneCache

	measuring sync.Mutex // one measurement at a time: two would disturb each other

	mu      sync.Mutex
	choices map[string]*Choice // by key
	keys    map[[2]string]string
}

func newTuner(d *core, c *config) *tuner {
	return &tuner{
		d: d, mode: c.tune, forced: c.variants, cache: newTuneCache(c.tuneDir, fingerprint(d.info), c.log),
		choices: map[string]*Choice{}, keys: map[[2]string]string{},
	}
}

// Choices lists the decisions between kernel variants that compilations have taken, by class and problem.
func (d *core) Choices() []Choice {
	t := d.tuner
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []Choice
	for _, c := range t.choices {
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b Choice) int {
		return strings.Compare(a.Class+" "+a.Problem+" "+a.Variant, b.Class+" "+b.Problem+" "+b.Variant)
	})
	return list
}

// plan prepares a program with the variants that are chosen for it, which are measured first if the mode says so.
func (t *tuner) plan(p *program.Program) (*plan, error) {
	if t.mode == TuneFirstUse {
		if err := t.measureProgram(p); err != nil {
			return nil, err
		}
	}
	c := &choosing{t: t}
	pl, err := t.d.plan(p, c.choose)
	if c.err != nil {
		return nil, c.err
	}
	return pl, err
}

// choosing is the chooser of one compilation.
type choosing struct {
	t   *tuner
	err error // a chooser cannot return one
}

func (c *choosing) choose(class, problem string, candidates []string) int {
	variant, why := c.t.decide(class, problem, candidates)
	i := slices.Index(candidates, variant)
	if i < 0 {
		c.err = fmt.Errorf("%s %s has no variant %q, only %v: %w", class, problem, variant, candidates, compute.ErrUnsupported)
		return 0
	}
	c.t.count(class, problem, candidates, variant, why)
	return i
}

func (t *tuner) decide(class, problem string, candidates []string) (variant, why string) {
	if v, ok := t.forced[class]; ok {
		return v, "forced"
	}
	if t.mode != TuneOff {
		if v, ok := t.cache.lookup(t.key(class, problem, candidates)); ok && slices.Contains(candidates, v) {
			return v, "measured"
		}
	}
	return candidates[0], "default"
}

func (t *tuner) count(class, problem string, candidates []string, variant, why string) {
	key := t.key(class, problem, candidates) + " " + variant
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.choices[key]
	if c == nil {
		c = &Choice{Class: class, Problem: roundSizes(problem), Variant: variant}
		t.choices[key] = c
	}
	c.Why = why
	c.Uses++
}

// key names a choice in the cache. It holds the candidates, so that what was measured without a variant that exists now
// does not count.
func (t *tuner) key(class, problem string, candidates []string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	rounded, ok := t.keys[[2]string{class, problem}]
	if !ok {
		rounded = class + " " + roundSizes(problem)
		t.keys[[2]string{class, problem}] = rounded
	}
	return rounded + " of " + strings.Join(candidates, ",")
}

// roundSizes rounds the numbers in a problem above 8 to powers of two: sizes of the same magnitude share a choice.
// No size follows a minus sign: such numbers are flags, and stay.
func roundSizes(problem string) string {
	var b strings.Builder
	for problem != "" {
		const digits = "0123456789"
		at := max(0, strings.IndexAny(problem, digits))
		end := at
		for end < len(problem) && strings.IndexByte(digits, problem[end]) >= 0 {
			end++
		}
		if end == at { // no more numbers
			at, end = len(problem), len(problem)
		}
		number := problem[at:end]
		if n, err := strconv.ParseInt(number, 10, 62); err == nil && n > 8 && !strings.HasSuffix(problem[:at], "-") {
			power := int64(16)
			for n >= power*3/2 {
				power *= 2
			}
			number = strconv.FormatInt(power, 10)
		}
		b.WriteString(problem[:at] + number)
		problem = problem[end:]
	}
	return b.String()
}

// fingerprint names what choices depend on: the adapter, its driver and the limits granted.
func fingerprint(a AdapterInfo) string {
	return fmt.Sprintf("%s|%s|%x:%x|%s|%s|%s|%+v", a.Backend, a.Type, a.Vendor, a.Device, a.Name, a.Driver, a.DriverInfo, a.Caps())
}
