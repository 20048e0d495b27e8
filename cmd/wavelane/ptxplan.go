//go:build !js

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

// plan is what ptx run does: launches over buffers that they share.
type plan struct {
	Module   string            `json:"module"`
	Buffers  map[string]string `json:"buffers"`
	Symbols  map[string]string `json:"symbols"`
	Launches []launch          `json:"launches"`
	Save     map[string]string `json:"save"`
	Expect   map[string]string `json:"expect"`
	Rtol     *float64          `json:"rtol"`
	Atol     *float64          `json:"atol"`
	Seed     uint64            `json:"seed"`

	dir    string // which the names of files are relative to
	values map[string]value
}

// launch is one of them.
type launch struct {
	Kernel      string   `json:"kernel"`
	Grid        dim      `json:"grid"`
	Block       dim      `json:"block"`
	Cluster     dim      `json:"cluster"`
	Shared      int      `json:"shared"`
	Cooperative bool     `json:"cooperative"`
	Args        []string `json:"args"`

	values []value
}

// dim is an extent: in JSON a number, an array of one to three, or a text "X,Y,Z".
type dim sim.Dim3

func (d *dim) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) != nil {
		text = strings.Trim(string(b), "[]")
	}
	v, err := parseDim(text)
	*d = dim(v)
	return err
}

// readPlan reads a launch file.
func readPlan(file string) (*plan, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return decodePlan(file, text)
}

// decodePlan reads the text of a launch file.
func decodePlan(file string, text []byte) (*plan, error) {
	p := &plan{dir: filepath.Dir(file)}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(p); err != nil {
		at := d.InputOffset()
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = syntax.Offset
		}
		return nil, fmt.Errorf("%s:%d: %w ('wavelane ptx run --help' shows a launch file)", file, 1+bytes.Count(text[:min(at, int64(len(text)))], []byte("\n")), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: more than one JSON value", file)
	}
	switch {
	case p.Module == "":
		return nil, fmt.Errorf(`%s: "module" names the PTX file, and is missing`, file)
	case len(p.Launches) == 0:
		return nil, fmt.Errorf(`%s: there are no "launches"`, file)
	}
	if _, err := os.Stat(resolve(p.dir, p.Module)); err == nil { // else a kernel of the library
		p.Module = resolve(p.dir, p.Module)
	}
	for name, out := range p.Save {
		p.Save[name] = resolve(p.dir, out)
	}
	return p, nil
}

// parse reads all values. Buffers that a launch names must be there; arrays among arguments become buffers with names of their own.
func (p *plan) parse() error {
	rng := rand.New(rand.NewPCG(p.Seed, 0x9e3779b97f4a7c15))
	p.values = map[string]value{}
	for _, name := range slices.Sorted(maps.Keys(p.Buffers)) {
		v, err := parseValue(p.Buffers[name], p.dir, rng)
		switch {
		case err != nil:
			return fmt.Errorf("buffer %s: %w", name, err)
		case !isName(name):
			return fmt.Errorf("buffer %q: a name consists of letters, digits and _", name)
		case !v.array || v.image != nil:
			return fmt.Errorf("buffer %s: %q is no array, such as zeros:f32:1024 or x.npy", name, p.Buffers[name])
		}
		p.values[name] = v
	}
	for i := range p.Launches {
		l := &p.Launches[i]
		for j, text := range l.Args {
			where := fmt.Sprintf("argument %d", j)
			if len(p.Launches) > 1 {
				where = fmt.Sprintf("launch %d, argument %d", i, j)
			}
			name, rest, named := strings.Cut(text, "=")
			if named = named && isName(name); named {
				text = rest
			} else {
				name = fmt.Sprint("arg", j)
				if len(p.Launches) > 1 {
					name = fmt.Sprintf("arg%d.%d", i, j)
				}
			}
			v, err := parseValue(text, p.dir, rng)
			if err != nil {
				return fmt.Errorf("%s: %w", where, err)
			}
			if named && !v.array {
				return fmt.Errorf("%s: %q is no buffer that could have a name", where, text)
			}
			if v.array {
				if _, twice := p.values[name]; twice {
					return fmt.Errorf("%s: there are two buffers %s", where, name)
				}
				m := v.image
				v.image = nil
				p.values[name] = v
				v = value{typ: ir.U64, buffer: name, image: m}
			}
			l.values = append(l.values, v)
		}
	}
	for i := range p.Launches {
		for _, v := range p.Launches[i].values {
			for _, f := range append(v.fields, v) {
				if _, ok := p.values[f.buffer]; f.buffer != "" && !ok {
					return p.noBuffer(f.buffer)
				}
			}
		}
	}
	return nil
}

func (p *plan) noBuffer(name string) error {
	if len(p.values) == 0 {
		return fmt.Errorf("there is no buffer %q, nor any other", name)
	}
	return fmt.Errorf("there is no buffer %q: there are %s", name, strings.Join(p.names(), ", "))
}

// names are those of the buffers, arguments in their order.
func (p *plan) names() []string {
	list := slices.Sorted(maps.Keys(p.values))
	index := func(name string) int {
		n, err := strconv.Atoi(strings.TrimPrefix(name, "arg"))
		if err != nil {
			return -1
		}
		return n
	}
	slices.SortStableFunc(list, func(a, b string) int { return index(a) - index(b) })
	return list
}

// pick finds the buffer that a flag means: NAME=FILE, N=FILE for the N-th argument, or FILE alone where one buffer has changed, or there
// is only one.
func (p *plan) pick(flag, text string, changed []string) (name, file string, err error) {
	name, file, named := strings.Cut(text, "=")
	if !named {
		switch {
		case len(p.values) == 1:
			return p.names()[0], text, nil
		case len(changed) == 1:
			return changed[0], text, nil
		}
		return "", "", usagef("--%s %s: which buffer? Say --%s NAME=%s with one of %s", flag, text, flag, text, strings.Join(p.names(), ", "))
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < len(p.Launches[0].values) {
		if b := p.Launches[0].values[n].buffer; b != "" {
			name = b
		}
	}
	if _, ok := p.values[name]; !ok {
		return "", "", usagef("--%s %s: %w", flag, text, p.noBuffer(name))
	}
	return name, file, nil
}
