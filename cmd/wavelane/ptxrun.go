//go:build !js

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/profile"
	"github.com/wavelane/wavelane/ptx/roofline"
	"github.com/wavelane/wavelane/ptx/sanitize"
	"github.com/wavelane/wavelane/ptx/sim"
)

type runFlags struct {
	kernel, grid, block, cluster string
	shared                       int
	args, buffers, symbols       []string
	save, expect                 []string
	tol                          tolerance
	sanitize                     string
	errorExit                    int
	annotate, perturb, json      bool
	seed                         uint64
	schedules                    int
	profile                      []string
	gpu                          string
	sources                      []string
	shown                        int
	fromFlags, rtolSet, atolSet  bool
	seedSet                      bool
}

func ptxRunCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run FILE.ptx|KERNEL|LAUNCHES.json",
		Short: "Execute kernels without a GPU: sanitize, compare, profile",
		Long: `Execute a kernel on the software GPU, with every check on: one of a PTX file, which nvcc -ptx, clang, NVRTC or Triton has made, or of
this library. A guide is docs/cuda-ci.md.

Arguments are given in the kernel's order, each with --arg VALUE, or --arg NAME=VALUE to name a buffer:
` + valueHelp + valueTypeNames() + `.

After the run, the buffers that have changed are printed, saved (--save), or compared (--expect). Both take NAME=FILE.npy, N=FILE.npy for the N-th argument,
counted from 0, or FILE.npy alone where one buffer has changed.

Several launches, one after the other over the same buffers, are a file in JSON; names of files are relative to it:

  {
    "module": "kernels.ptx",
    "buffers": {"x": "x.npy", "y": "zeros:f32:1024"},
    "symbols": {"coefficients": "f32:0.5"},
    "launches": [
      {"kernel": "scale", "grid": 4, "block": [256, 1], "args": ["x", "y", "f32:2"]},
      {"kernel": "total", "grid": 1, "block": 256, "shared": 1024, "args": ["y", "empty:f32:1"]}
    ],
    "save": {"y": "y.npy"},
    "expect": {"y": "want.npy"}, "rtol": 1e-5, "atol": 1e-8
  }

Errors are reported as compute-sanitizer reports them, with the line of the source where the PTX has it (-lineinfo). A kernel goes on after
races, accesses out of bounds and uninitialised values, so one run finds many; alike ones are one error. The exit status is 1 when there
are errors, or --error-exitcode; 1 when results differ; 2 when the command was called wrongly.`,
		Example: `  wavelane ptx run saxpy.ptx --grid 4 --block 256 --arg x.npy --arg y=y.npy --arg 2.5 --arg 1000 --expect y=want.npy
  wavelane ptx run kernels.ptx --kernel reduce --block 256 --arg rand:f32:4096 --arg empty:f32:1 --sanitize racecheck,initcheck
  wavelane ptx run launches.json --profile=profile.html --gpu H200
  wavelane ptx run add_flat --arg 1 --arg 0 --arg buf:f32:1,2,3,4 --arg buf:f32:10,20,30,40 --arg zeros:f32:4`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, files []string) error {
			f.rtolSet, f.atolSet, f.seedSet = c.Flags().Changed("rtol"), c.Flags().Changed("atol"), c.Flags().Changed("seed")
			for _, name := range []string{"kernel", "grid", "block", "cluster", "shared", "arg", "buffer", "symbol"} {
				f.fromFlags = f.fromFlags || c.Flags().Changed(name)
			}
			return ptxRun(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), files[0], f)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.kernel, "kernel", "", "`name` of the kernel, mangled or not; not needed where there is one")
	flags.StringVar(&f.grid, "grid", "1", "blocks, `X,Y,Z`; what is missing is 1")
	flags.StringVar(&f.block, "block", "", "threads of a block, `X,Y,Z`; without it the kernel's .reqntid, or 1")
	flags.StringVar(&f.cluster, "cluster", "", "blocks of a cluster, `X,Y,Z`")
	flags.IntVar(&f.shared, "shared", 0, "`bytes` of dynamic shared memory")
	flags.StringArrayVar(&f.args, "arg", nil, "an argument, `[NAME=]VALUE`, see above; repeat it in the kernel's order")
	flags.StringArrayVar(&f.buffers, "buffer", nil, "a buffer, `NAME=VALUE`, for arguments to name")
	flags.StringArrayVar(&f.symbols, "symbol", nil, "the value of a __device__ or __constant__ variable, `NAME=VALUE`")
	flags.StringArrayVar(&f.save, "save", nil, "write a buffer to a .npy file, `[NAME=]FILE`")
	flags.StringArrayVar(&f.expect, "expect", nil, "compare a buffer with a .npy file, `[NAME=]FILE`; if they differ the exit status is 1")
	flags.Float64Var(&f.tol.rel, "rtol", 1e-5, "tolerated difference, relative to what is expected")
	flags.Float64Var(&f.tol.abs, "atol", 1e-8, "tolerated difference, absolute, to which the relative one is added")
	flags.StringVar(&f.sanitize, "sanitize", "all", "`tools`: a list of memcheck, racecheck, initcheck and synccheck, or all, or none; bounds and barriers are always checked")
	flags.IntVar(&f.errorExit, "error-exitcode", 1, "exit status when the tools have found errors")
	flags.BoolVar(&f.annotate, "annotate", false, "print errors as GitHub's annotations too")
	flags.StringArrayVar(&f.sources, "source-dir", nil, "`folder` in which to look for the source files that the PTX names")
	flags.Uint64Var(&f.seed, "seed", 0, "`number` that random buffers and the order of blocks, warps and completions follow")
	flags.IntVar(&f.schedules, "schedules", 1, "run so `many` times, by following seeds of the order, and compare the results")
	flags.BoolVar(&f.perturb, "perturb", false, "give approximate instructions their largest allowed error")
	flags.StringArrayVar(&f.profile, "profile", nil, "profile to a `file`, .html or .json; without a file, as a table to standard error")
	flags.Lookup("profile").NoOptDefVal = "-"
	flags.StringVar(&f.gpu, "gpu", "H100", "the `GPU` whose occupancy and roofline a profile shows: "+strings.Join(roofline.Names(), ", "))
	flags.BoolVar(&f.json, "json", false, "print the buffers as JSON: an array of {name, type, shape, values}")
	flags.IntVar(&f.shown, "show", 32, "print so `many` values of a buffer")
	return c
}

// ptxRun runs a plan and tells what came of it: the report first, then differences, then buffers.
func ptxRun(ctx context.Context, out, errOut io.Writer, file string, f runFlags) error {
	tools, err := sanitize.ParseTools(f.sanitize)
	if err != nil {
		return usagef("--sanitize: %w", err)
	}
	if f.schedules < 1 || f.errorExit < 0 || f.errorExit > 255 {
		return usagef("--schedules %d, --error-exitcode %d: at least 1, and 0 to 255", f.schedules, f.errorExit)
	}
	p, err := f.plan(file)
	if err != nil {
		return err
	}
	source, err := readModule(p.Module)
	if err != nil {
		return err
	}
	r := &runner{plan: p, source: source, out: out, errOut: errOut, flags: f, report: sanitize.NewReport(tools)}
	r.report.SourceDirs = append(slices.Clone(f.sources), filepath.Dir(p.Module), p.dir)
	if len(f.profile) > 0 {
		model, err := roofline.Named(f.gpu)
		if err != nil {
			return usagef("--gpu: %w", err)
		}
		r.profile = &profile.Profile{GPU: model, SourceDirs: r.report.SourceDirs}
	}
	for n := range f.schedules {
		results, err := r.run(ctx, p.Seed+uint64(n))
		if err != nil {
			return err
		}
		if n == 0 {
			r.results = results
		} else if err := r.same(results, n); err != nil {
			return err
		}
		if len(r.report.Errors) > 0 {
			break
		}
	}
	return r.finish()
}

// plan makes a plan of a launch file, or of the flags.
func (f *runFlags) plan(file string) (*plan, error) {
	if strings.EqualFold(filepath.Ext(file), ".json") {
		if f.fromFlags {
			return nil, usagef("kernels, their extents and arguments stand in %s, not in flags", file)
		}
		p, err := readPlan(file)
		if err != nil {
			return nil, err
		}
		if f.seedSet {
			p.Seed = f.seed
		}
		if p.Rtol != nil && !f.rtolSet {
			f.tol.rel = *p.Rtol
		}
		if p.Atol != nil && !f.atolSet {
			f.tol.abs = *p.Atol
		}
		return p, p.parse()
	}
	l := launch{Kernel: f.kernel, Shared: f.shared, Args: f.args}
	for _, d := range []struct {
		name, value string
		to          *dim
	}{{"grid", f.grid, &l.Grid}, {"block", f.block, &l.Block}, {"cluster", f.cluster, &l.Cluster}} {
		if d.value == "" {
			continue
		}
		v, err := parseDim(d.value)
		if err != nil {
			return nil, usagef("--%s %w", d.name, err)
		}
		*d.to = dim(v)
	}
	if f.shared < 0 {
		return nil, usagef("--shared %d: want a number of bytes", f.shared)
	}
	p := &plan{Module: file, Buffers: map[string]string{}, Symbols: map[string]string{}, Launches: []launch{l}, Seed: f.seed}
	for _, pairs := range []struct {
		flag string
		list []string
		to   map[string]string
	}{{"buffer", f.buffers, p.Buffers}, {"symbol", f.symbols, p.Symbols}} {
		for _, s := range pairs.list {
			name, v, ok := strings.Cut(s, "=")
			if _, twice := pairs.to[name]; !ok || twice {
				return nil, usagef("--%s %q: want NAME=VALUE, each name once", pairs.flag, s)
			}
			pairs.to[name] = v
		}
	}
	if err := p.parse(); err != nil {
		return nil, usageError{err}
	}
	return p, nil
}

// runner runs a plan.
type runner struct {
	plan        *plan
	source      *ir.Module
	flags       runFlags
	out, errOut io.Writer
	report      *sanitize.Report
	profile     *profile.Profile
	results     map[string][]byte // of the first schedule

	reading, unwritten bool // the host reads, and has met bytes that nothing has written
}

// run runs all launches on a new GPU and returns the buffers as they are then.
func (r *runner) run(ctx context.Context, seed uint64) (map[string][]byte, error) {
	var printed io.Writer // by kernels, in the first schedule
	if r.results == nil {
		printed = r.out
	}
	gpu := sim.New(sim.Config{Checks: r.report.Tools.Checks(), Seed: seed, Perturb: r.flags.perturb, Counters: r.profile != nil,
		Report: r.met, Output: printed})
	module, err := gpu.Load(r.source)
	if err != nil {
		return nil, err
	}
	addresses := map[string]uint64{}
	for _, name := range r.plan.names() {
		v := r.plan.values[name]
		a, err := gpu.Alloc(max(1, len(v.bytes)))
		if err == nil && !v.unset {
			err = gpu.Write(a, v.bytes)
		}
		if err == nil {
			err = gpu.Label(a, name)
		}
		if err != nil {
			return nil, err
		}
		addresses[name] = a
	}
	mem := &memory{r.plan, gpu, addresses}
	for _, name := range slices.Sorted(maps.Keys(r.plan.Symbols)) {
		if err := r.setSymbol(mem, module, name); err != nil {
			return nil, fmt.Errorf("symbol %s: %w", name, err)
		}
	}
	for i := range r.plan.Launches {
		if err := r.launch(ctx, mem, module, &r.plan.Launches[i]); err != nil {
			if len(r.plan.Launches) > 1 {
				err = fmt.Errorf("launch %d: %w", i, err)
			}
			return nil, err
		}
	}
	return r.read(gpu, addresses)
}

// met notes a fault after which the GPU goes on. The host may read what nobody has written: compute-sanitizer does not mind either.
func (r *runner) met(f *sim.Fault) bool {
	if r.reading {
		r.unwritten = true
		if f.Other == nil {
			return true
		}
	}
	return r.report.Add(f)
}

// read returns all buffers. A read reports the first byte that has no value; where there is one, the rest is read by element.
func (r *runner) read(gpu *sim.GPU, addresses map[string]uint64) (map[string][]byte, error) {
	results := map[string][]byte{}
	r.reading = true
	defer func() { r.reading = false }()
	for _, name := range r.plan.names() {
		v := r.plan.values[name]
		b := make([]byte, len(v.bytes))
		r.unwritten = false
		if err := gpu.Read(b, addresses[name]); err != nil {
			return nil, err
		}
		for i := 0; r.unwritten && i < len(b); i += v.typ.Size() {
			r.unwritten = false
			if err := gpu.Read(b[i:i+v.typ.Size()], addresses[name]+uint64(i)); err != nil {
				return nil, err
			}
			r.unwritten = true
		}
		results[name] = b
	}
	return results, nil
}

func (r *runner) setSymbol(mem *memory, module *sim.Module, name string) error {
	v, err := parseValue(r.plan.Symbols[name], r.plan.dir, nil)
	if err != nil {
		return err
	}
	if isReference(r.source, name) {
		return mem.bind(module, name, &v)
	}
	a, size, err := module.Global(name)
	if err != nil {
		return err
	}
	b := v.bytes
	switch {
	case v.fields != nil:
		b, err = v.layout(mem.pointer)
	case v.buffer != "":
		var at uint64
		at, err = mem.pointer(&v)
		b = appendBits(nil, ir.U64, at)
	case v.text != "":
		err = fmt.Errorf("%q needs a type, such as f32:%s", v.text, v.text)
	}
	if err == nil && len(b) > size {
		err = fmt.Errorf("%d bytes for a variable of %d", len(b), size)
	}
	if err != nil {
		return err
	}
	return mem.gpu.Write(a, b)
}

func (r *runner) launch(ctx context.Context, mem *memory, module *sim.Module, l *launch) error {
	name, err := entryNamed(r.source, l.Kernel)
	if err != nil {
		return err
	}
	kernel, err := module.Kernel(name)
	if err != nil {
		return err
	}
	run := sim.Launch{Grid: sim.Dim3(l.Grid), Block: sim.Dim3(l.Block), Cluster: sim.Dim3(l.Cluster), Shared: l.Shared, Cooperative: l.Cooperative}
	if run.Grid == (sim.Dim3{}) {
		run.Grid.X = 1
	}
	if run.Block == (sim.Dim3{}) {
		b := r.source.Func(name).Bounds.ReqThreads
		run.Block = sim.Dim3{X: max(1, b[0]), Y: max(1, b[1]), Z: max(1, b[2])}
	}
	if run.Params, err = pack(kernel, l.values, mem); err != nil {
		return err
	}
	stats, err := mem.gpu.Run(ctx, kernel, run)
	if r.profile != nil && err == nil {
		r.profile.Add(r.source, run, stats)
	}
	return r.report.Ended(err)
}

// entryNamed finds a kernel by its name, by that of its C++ function, or because there is only one.
func entryNamed(m *ir.Module, name string) (string, error) {
	var all, like []string
	for _, f := range m.Funcs {
		if !f.Entry || f.Body == nil {
			continue
		}
		if f.Name == name {
			return name, nil
		}
		all = append(all, f.Name)
		if strings.HasPrefix(f.Name, fmt.Sprintf("_Z%d%s", len(name), name)) {
			like = append(like, f.Name)
		}
	}
	switch {
	case len(all) == 0:
		return "", errors.New("no kernel (.entry) in this file")
	case len(like) == 1:
		return like[0], nil
	case name != "" && len(like) > 1:
		return "", usagef("kernel %s: which of %s?", name, strings.Join(like, ", "))
	case name != "":
		return "", fmt.Errorf("no kernel %s; there are %s", name, strings.Join(all, ", "))
	case len(all) == 1:
		return all[0], nil
	}
	return "", usagef("--kernel is needed, one of %s", strings.Join(all, ", "))
}

// pack is the kernel's parameter block. Sizes must agree, and numbers must be floating-point where the kernel says so.
func pack(k *sim.Kernel, list []value, mem *memory) ([]byte, error) {
	params := k.Params()
	if len(params) != len(list) {
		return nil, usagef("%s has %d parameters, and there are %d arguments: %s", k.Name(), len(params), len(list), signature(params))
	}
	values := make([]any, len(list))
	for i := range list {
		v, p := &list[i], &params[i]
		b, typ, what := v.bytes, v.typ, v.typ.String()
		var err error
		switch {
		case v.fields != nil:
			b, err = v.layout(mem.pointer)
			what = fmt.Sprintf("structure of %d bytes", len(b))
		case v.buffer != "":
			var a uint64
			a, err = mem.pointer(v)
			b, what = appendBits(nil, ir.U64, a), "buffer"
		case v.text != "":
			typ, what = numberType(p.Type, v.text), "number"
			if len(p.Dims) == 0 {
				b, err = appendValue(nil, typ, v.text)
			}
		}
		if err != nil {
			return nil, usagef("argument %d: %w", i, err)
		}
		if differ := v.fields == nil && p.Type.Class() != ir.Bits && p.Type.IsFloat() != typ.IsFloat(); p.Size() != len(b) || differ {
			return nil, usagef("argument %d is a %s, and the kernel wants %s", i, what, p.String())
		}
		values[i] = b
	}
	return k.Pack(values...)
}

func signature(params []ir.Var) string {
	list := make([]string, len(params))
	for i := range params {
		list[i] = params[i].String()
	}
	return "(" + strings.Join(list, ", ") + ")"
}

// same compares the results of another schedule with those of the first.
func (r *runner) same(results map[string][]byte, schedule int) error {
	for _, name := range r.plan.names() {
		if a, b := r.results[name], results[name]; !bytes.Equal(a, b) {
			n := r.plan.values[name].typ.Size()
			i := 0
			for a[i] == b[i] {
				i++
			}
			t, at := r.plan.values[name].typ, i/n*n
			return fmt.Errorf("%s depends on the order in which blocks and warps run: %s%v is %v by seed %d and %v by seed %d", name, name,
				position(i/n, r.plan.values[name].shape), element(t, load(a[at:at+n])), r.plan.Seed, element(t, load(b[at:at+n])), r.plan.Seed+uint64(schedule))
		}
	}
	return nil
}

// exitError ends the command with a status of its own; all has been said.
type exitError struct{ status int }

func (e exitError) Error() string { return fmt.Sprint("exit status ", e.status) }

// finish writes what the run was for.
func (r *runner) finish() error {
	if r.profile != nil {
		for _, file := range r.flags.profile {
			if err := writeProfile(r.profile, file, r.errOut); err != nil {
				return err
			}
		}
	}
	var failed error
	if len(r.report.Errors) > 0 {
		if err := r.report.WriteText(r.errOut); err != nil {
			return err
		}
		if r.flags.annotate {
			if err := r.report.WriteAnnotations(r.out); err != nil {
				return err
			}
		}
		failed = exitError{r.flags.errorExit}
	}
	changed := r.changed()
	wrong, quiet, err := r.deliver(changed)
	if err != nil {
		return err
	}
	if err := r.print(changed, quiet); err != nil {
		return err
	}
	switch {
	case failed != nil && wrong != nil:
		fmt.Fprintln(r.errOut, "wavelane:", wrong)
	case wrong != nil:
		return wrong
	}
	return failed
}

// changed are the buffers in which a kernel has changed something, and those in which nothing was.
func (r *runner) changed() (list []string) {
	for _, name := range r.plan.names() {
		if v := r.plan.values[name]; v.unset || !bytes.Equal(v.bytes, r.results[name]) {
			list = append(list, name)
		}
	}
	return list
}

// deliver saves and compares buffers. It returns the differences, and which buffers need not be printed.
func (r *runner) deliver(changed []string) (wrong error, quiet map[string]bool, err error) {
	list := func(flag string, flags []string, inPlan map[string]string) []string {
		for _, name := range slices.Sorted(maps.Keys(inPlan)) {
			flags = append(flags, name+"="+inPlan[name])
		}
		return flags
	}
	quiet = map[string]bool{}
	for _, s := range list("save", r.flags.save, r.plan.Save) {
		name, file, err := r.plan.pick("save", s, changed)
		if err != nil {
			return nil, nil, err
		}
		v := r.plan.values[name]
		if err := os.WriteFile(file, npyOf(&v, v.shape, r.results[name]).Encode(), 0o644); err != nil {
			return nil, nil, err
		}
		quiet[name] = true
	}
	expected := list("expect", nil, r.plan.Expect)
	for i, s := range expected {
		name, file, _ := strings.Cut(s, "=")
		expected[i] = name + "=" + resolve(r.plan.dir, file)
	}
	for _, s := range append(slices.Clone(r.flags.expect), expected...) {
		name, file, err := r.plan.pick("expect", s, changed)
		if err != nil {
			return nil, nil, err
		}
		want, err := readArray(file)
		if err != nil {
			return nil, nil, err
		}
		got := r.plan.values[name]
		got.bytes = r.results[name]
		if got.typ == ir.BF16 && want.typ == ir.U16 { // NumPy has no bfloat16: its bits
			want.typ = ir.BF16
		}
		if err := r.flags.tol.compare(name, &got, &want, file); err != nil {
			wrong = errors.Join(wrong, err)
		}
		quiet[name] = true
	}
	return wrong, quiet, nil
}

// print prints the buffers that have changed, or all if none has, but for those that were saved or compared.
func (r *runner) print(changed []string, quiet map[string]bool) error {
	type buffer struct {
		Name   string `json:"name"`
		Type   string `json:"type"`
		Shape  []int  `json:"shape"`
		Values []any  `json:"values"`
	}
	buffers := []buffer{}
	var text strings.Builder
	if changed == nil {
		changed = r.plan.names()
	}
	for _, name := range changed {
		if quiet[name] {
			continue
		}
		v, b := r.plan.values[name], r.results[name]
		n := len(b) / v.typ.Size()
		if r.flags.json {
			buffers = append(buffers, buffer{name, v.typ.String(), v.shape, elements(v.typ, b)})
			continue
		}
		fmt.Fprintf(&text, "%s, %s%v:", name, v.typ, v.shape)
		for _, e := range elements(v.typ, b[:min(n, max(0, r.flags.shown))*v.typ.Size()]) {
			fmt.Fprintf(&text, " %v", e)
		}
		if n > r.flags.shown {
			fmt.Fprintf(&text, " … (%d values; --save %s=FILE.npy writes them)", n, name)
		}
		text.WriteByte('\n')
	}
	if r.flags.json {
		return writeJSON(r.out, buffers)
	}
	_, err := io.WriteString(r.out, text.String())
	return err
}

func writeProfile(p *profile.Profile, file string, errOut io.Writer) error {
	write := p.WriteText
	switch {
	case file == "-":
		return write(errOut)
	case strings.HasSuffix(file, ".html"):
		write = p.WriteHTML
	case strings.HasSuffix(file, ".json"):
		write = func(w io.Writer) error { return writeJSON(w, p) }
	case !strings.HasSuffix(file, ".txt"):
		return usagef("--profile=%s: want a file that ends in .html, .json or .txt", file)
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(write(out), out.Close())
}
