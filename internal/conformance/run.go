package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wavelane/wavelane/internal/testseed"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// Seed returns the seed of the random inputs.
func Seed() uint64 { return testseed.Value() }

// Run runs the whole suite on a device: every entry of the catalogue, programs, errors and, unless testing.Short, the limits.
// Name tells devices apart in reports, such as "cpu (go, 2 workers)".
func Run(t *testing.T, name string, dev program.Executor) { run(t, name, dev, 1, 1) }

// RunSampled is Run with the limits of one entry in [limitsOf], for devices that compute on the processor: they take long at limits.
func RunSampled(t *testing.T, name string, dev program.Executor) { run(t, name, dev, 1, limitsOf) }

// limitsOf = n runs the large cases of one in n entries, chosen by the seed and the same on each such device; the environment
// variable WAVELANE_SAMPLE overrides it.
const limitsOf = 8

// run takes one in so many of the cases of each entry, the first among them, and the limits of one entry in so many.
func run(t *testing.T, name string, dev program.Executor, of, limits int) {
	d := newDevice(name, dev)
	t.Cleanup(func() { d.log(t) })
	for _, e := range catalogue.All() {
		t.Run(e.Name, func(t *testing.T) { d.entry(t, e, of) })
	}
	for _, p := range programs {
		t.Run("program/"+p.name, func(t *testing.T) { d.program(t, p) })
	}
	if testing.Short() {
		t.Logf("conformance: testing.Short leaves out the large cases on %s", name)
		return
	}
	for _, e := range withLarge(limits) {
		t.Run("large/"+e.Name, func(t *testing.T) {
			if limits > 1 { // the reference takes about as long
				t.Parallel()
				overlapping <- struct{}{}
				defer func() { <-overlapping }()
			}
			d.large(t, e)
		})
	}
}

// overlapping bounds the large cases at a time: each may need a gigabyte. While one waits for the device, the other computes what
// to expect.
var overlapping = make(chan struct{}, 2)

// again is of how many cases a device takes one, others by each seed, when it has been through all and is now forced into other
// variants, limits or numbers of workers.
const again = 12

// RunEntries runs cases of some entries and nothing else, one in [again].
func RunEntries(t *testing.T, name string, dev program.Executor, entries ...*program.Entry) {
	d := newDevice(name, dev)
	t.Cleanup(func() { d.log(t) })
	for _, e := range entries {
		t.Run(e.Name, func(t *testing.T) {
			cases, err := casesOf(e)
			require.NoError(t, err)
			d.cases(t, sample(cases, again))
		})
	}
}

// RunEach runs one in n cases of some entries, other ones by each seed, in parallel and with a device for each entry.
func RunEach(t *testing.T, name string, n int, open func(t *testing.T) program.Executor, entries ...*program.Entry) {
	all := newDevice(name, nil)
	t.Cleanup(func() { all.log(t) })
	for _, e := range entries {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			cases, err := casesOf(e)
			require.NoError(t, err)
			d := &testDevice{Executor: open(t), name: name, count: all.count}
			d.cases(t, sample(cases, n))
		})
	}
}

// testDevice is a device under test.
type testDevice struct {
	program.Executor
	name  string
	count *atomic.Int64 // of cases that ran
}

var (
	countsMu sync.Mutex
	counts   []*count
)

type count struct {
	name string
	n    atomic.Int64
}

func newDevice(name string, dev program.Executor) *testDevice {
	countsMu.Lock()
	defer countsMu.Unlock()
	c := &count{name: name}
	counts = append(counts, c)
	return &testDevice{Executor: dev, name: name, count: &c.n}
}

func (d *testDevice) log(t *testing.T) {
	t.Logf("conformance: %d cases on %s, seed %d", d.count.Load(), d.name, Seed())
}

// Summary says in one line per device how many cases ran; for TestMain.
func Summary() string {
	s := ""
	for _, c := range counts {
		s += fmt.Sprintf("conformance: %d cases on %s\n", c.n.Load(), c.name)
	}
	return s
}

// entry runs the cases of an entry. It goes on after failures, but reports only the first few.
func (d *testDevice) entry(t require.TestingT, e *program.Entry, of int) {
	cases, err := casesOf(e)
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	d.cases(t, sample(cases, of))
}

// sample returns the first case and one in n of all, other ones by each seed. testing.Short, which is for emulated processors, takes
// at least 3 for n.
func sample[T any](cases []T, n int) []T {
	if testing.Short() {
		n = max(n, 3)
	}
	n = sampleOf(n)
	var some []T
	drawn := int(Seed() % uint64(n))
	for i, c := range cases {
		if i == 0 || i%n == drawn {
			some = append(some, c)
		}
	}
	return some
}

// sampleOf is of how many one is taken: n, or what WAVELANE_SAMPLE says, where 1 is all of them everywhere.
func sampleOf(n int) int {
	if s := os.Getenv("WAVELANE_SAMPLE"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil || n < 1 {
			panic(fmt.Sprintf("WAVELANE_SAMPLE=%s is no positive number", s))
		}
	}
	return n
}

const reported = 8

func (d *testDevice) cases(t require.TestingT, cases []*testCase) {
	failed := 0
	for _, c := range cases {
		if err := d.run(c); err != nil {
			if failed++; failed <= reported {
				t.Errorf("%s: %v\nrepeat with WAVELANE_SEED=%d", d.name, err, Seed())
			}
			if errors.Is(err, compute.ErrDeviceLost) || errors.Is(err, errHangs) {
				t.Errorf("%s: giving up", d.name)
				return
			}
		}
	}
	if failed > reported {
		t.Errorf("%s: %s: %d of %d cases fail", d.name, cases[0].entry.Name, failed, len(cases))
	}
}

// run executes one case as a program of one step and judges its result.
func (d *testDevice) run(c *testCase) error {
	d.count.Add(1)
	in := c.inputs(newSource(Seed(), c.entry.Name, c.number))
	if c.same {
		for i := range in {
			in[i] = in[0]
		}
	}
	x, err := c.expectations(in)
	if err == nil {
		err = d.compare(c, in, x)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.describe(in), err)
	}
	return nil
}

func (d *testDevice) compare(c *testCase, in []operand, x []*expectation) error {
	p := &program.Program{}
	io := &program.IO{}
	slots := make([]program.Slot, len(in))
	var checks []func() error
	for _, result := range x {
		dst, check := destination(result.out)
		io.Read = append(io.Read, dst)
		checks = append(checks, check)
	}
	for i, o := range in {
		if c.same && i > 0 {
			slots[i] = slots[0]
			continue
		}
		slots[i] = p.Add(o.Type, program.FromHost)
		io.Host = append(io.Host, o.clone().data)
	}
	aliased := -1
	if c.alias != apart {
		if io.Read[0], aliased = overlap(io.Host, x[0].out, c.alias); aliased < 0 {
			return fmt.Errorf("no operand has the result's element type: no case for aliasing")
		}
	}
	out, err := p.ApplyAll(c.entry, c.attr, slots...)
	if err != nil {
		return err
	}
	p.Read = out
	if err := d.execute(p, io); err != nil {
		return err
	}
	for i, slice := range io.Host {
		if i != aliased && !sameBits(slice, in[i].data) {
			return fmt.Errorf("operand %d was written to", i)
		}
	}
	for i, result := range x {
		err := checks[i]()
		if err == nil {
			err = result.judge(io.Read[i])
		}
		if err != nil && len(x) > 1 {
			return fmt.Errorf("%s: %w", c.entry.Results[i], err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// execute compiles a program and runs it once.
func (d *testDevice) execute(p *program.Program, io *program.IO) error {
	ex, err := d.Compile(context.Background(), p)
	if err != nil {
		return err
	}
	if err := await(ex.Start(io)); err != nil {
		return err
	}
	return ex.Close()
}

// patience is how long a run may take before it counts as hanging.
const patience = 3 * time.Minute

var errHangs = errors.New("hangs")

func await(f *compute.Future) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := f.Await(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no result after %v: %w", patience, errHangs)
	}
	return err
}

// guard is the number of elements on either side of a destination that must stay as they are.
const guard = 9

// destination returns a poisoned slice for the elements of t, not aligned to anything, and a check of what lies around it.
func destination(t program.Type) (dst any, check func() error) {
	n := t.Len()
	whole := program.MakeSlice(program.Type{DType: t.DType, Shape: []int{n + 2*guard}})
	poisonAll(whole)
	return subslice(whole, guard, n), func() error {
		for i := range guard {
			if !poisoned(whole, i) || !poisoned(whole, guard+n+i) {
				return fmt.Errorf("memory beside the destination was written to")
			}
		}
		return nil
	}
}

// overlap lays the destination and the first operand of its element type over each other and returns the former.
func overlap(host []any, out program.Type, a alias) (dst any, operand int) {
	for i, h := range host {
		if d, n, _ := program.TypeOf(h); d == out.DType {
			at := 0
			if a == shifted {
				at = out.Len() / 2
			}
			whole := program.MakeSlice(program.Type{DType: d, Shape: []int{at + max(n, out.Len())}})
			poisonAll(whole)
			copy(program.Bytes(subslice(whole, at, n)), program.Bytes(h))
			host[i] = subslice(whole, at, n)
			return subslice(whole, 0, out.Len()), i
		}
	}
	return nil, -1
}

func subslice(s any, at, n int) any {
	switch s := s.(type) {
	case []float32:
		return s[at : at+n : at+n]
	case []int32:
		return s[at : at+n : at+n]
	case []uint32:
		return s[at : at+n : at+n]
	case []compute.F16:
		return s[at : at+n : at+n]
	case []uint8:
		return s[at : at+n : at+n]
	case []compute.BF16:
		return s[at : at+n : at+n]
	}
	return nil
}

func poisonAll(s any) {
	switch s := s.(type) {
	case []float32:
		for i := range s {
			s[i] = math.Float32frombits(poison)
		}
	case []int32:
		for i := range s {
			s[i] = poison
		}
	case []uint32:
		for i := range s {
			s[i] = poison
		}
	case []compute.F16:
		for i := range s {
			s[i] = poisonF16
		}
	case []uint8:
		for i := range s {
			s[i] = poisonU8
		}
	case []compute.BF16:
		for i := range s {
			s[i] = poisonBF16
		}
	}
}

func sameBits(a, b any) bool { return string(program.Bytes(a)) == string(program.Bytes(b)) }
