// Package tune decides between variants of kernels by measuring them, and keeps the decisions in a file.
package tune

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/wavelane/wavelane/compute"
)

// Chooser decides between variants of a kernel for a class of operations and a problem, which names sizes. It returns an index of
// candidates, of which the first is the default.
type Chooser = func(class, problem string, candidates []string) int

// Config is what a tuner decides by besides measurements.
type Config struct {
	Forced      map[string]string // variant by class
	Mode        compute.TuneMode
	Dir         string // of the file, "" for the user's cache directory
	Memory      bool   // keep measurements in this process only, in no file
	Fingerprint string // of hardware and driver; measurements are valid for it
	Log         compute.Logger
}

// Tuner decides between variants. It is safe for concurrent use.
type Tuner struct {
	config Config
	cache  *cache

	measuring sync.Mutex // one measurement at a time: two would disturb each other

	mu      sync.Mutex
	choices map[string]*compute.Choice // by key
	keys    map[[2]string]string
}

// New returns a tuner. Nothing is read before the first decision.
func New(c Config) *Tuner {
	return &Tuner{config: c, cache: newCache(c), choices: map[string]*compute.Choice{}, keys: map[[2]string]string{}}
}

// Choices lists the decisions that compilations have taken, by class and problem.
func (t *Tuner) Choices() []compute.Choice {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []compute.Choice
	for _, c := range t.choices {
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b compute.Choice) int {
		return strings.Compare(a.Class+" "+a.Problem+" "+a.Variant, b.Class+" "+b.Problem+" "+b.Variant)
	})
	return list
}

// FirstUse reports whether variants are to be measured before a program that could take them is compiled.
func (t *Tuner) FirstUse() bool { return t.config.Mode == compute.TuneFirstUse }

// Compilation takes the decisions of one compilation, each once. A step that is lowered several times gets the same
// code each time, whatever is measured meanwhile.
type Compilation struct {
	t      *Tuner
	taken  map[string]string // variant by key
	counts []func()
	err    error
}

// Compilation returns the decisions of a new compilation.
func (t *Tuner) Compilation() *Compilation { return &Compilation{t: t, taken: map[string]string{}} }

// Choose is a [Chooser] that decides as a compilation would now, for those who ask whether there will be code. It counts nothing. Where a
// forced variant is not among the candidates it takes the default.
func (t *Tuner) Choose(class, problem string, candidates []string) int {
	variant, _ := t.decide(class, t.key(class, problem, candidates), candidates)
	return max(0, slices.Index(candidates, variant))
}

// Err returns an error wrapping compute.ErrUnsupported if a forced variant was not among the candidates.
func (c *Compilation) Err() error { return c.err }

// Choose is the [Chooser] of the compilation.
func (c *Compilation) Choose(class, problem string, candidates []string) int {
	key := c.t.key(class, problem, candidates)
	variant, again := c.taken[key]
	why := ""
	if !again {
		variant, why = c.t.decide(class, key, candidates)
	}
	i := slices.Index(candidates, variant)
	if i < 0 {
		c.err = fmt.Errorf("%s %s has no variant %q, only %v: %w", class, problem, variant, candidates, compute.ErrUnsupported)
		return 0
	}
	if !again {
		c.taken[key] = variant
		c.counts = append(c.counts, func() { c.t.count(class, problem, key, variant, why) })
	}
	return i
}

// Count counts the decisions of a compilation that has succeeded.
func (c *Compilation) Count() {
	for _, count := range c.counts {
		count()
	}
}

func (t *Tuner) decide(class, key string, candidates []string) (variant, why string) {
	if v, ok := t.config.Forced[class]; ok {
		return v, "forced"
	}
	if t.config.Mode != compute.TuneOff {
		if v, ok := t.cache.lookup(key); ok && slices.Contains(candidates, v) {
			return v, "measured"
		}
	}
	return candidates[0], "default"
}

func (t *Tuner) count(class, problem, key, variant, why string) {
	key += " " + variant
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.choices[key]
	if c == nil {
		c = &compute.Choice{Class: class, Problem: roundSizes(problem), Variant: variant}
		t.choices[key] = c
	}
	c.Why = why
	c.Uses++
}

// key names a decision in the cache. It contains the candidates, so that measurements without a variant that exists now do not count;
// sorted, since problems of one magnitude may have different defaults, which come first.
func (t *Tuner) key(class, problem string, candidates []string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	rounded, ok := t.keys[[2]string{class, problem}]
	if !ok {
		rounded = class + " " + roundSizes(problem)
		t.keys[[2]string{class, problem}] = rounded
	}
	return rounded + " of " + strings.Join(slices.Sorted(slices.Values(candidates)), ",")
}

// roundSizes rounds the numbers above 8 in a problem to powers of two, so that sizes of the same magnitude share a decision. Numbers
// after a minus sign are flags, not sizes, and stay.
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
