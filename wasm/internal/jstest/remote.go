// Package jstest drives the JavaScript API from Go tests: [Remote] makes a device in JavaScript one that the conformance suite can judge.
package jstest

import (
	"bytes"
	"context"
	"embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// Files are the modules that run in Node.js and in pages.
//
//go:embed *.js
var Files embed.FS

// Remote is a device that is open in JavaScript: programs of one step become calls of the API, which remote.js fetches and answers. It
// serves the files of the package under /package/, those of this one under /test/, and language models under /models/.
type Remote struct {
	program.Executor // nil: nobody calls the other methods
	URL              string

	calls chan call
	done  chan struct{}

	mu      sync.Mutex
	number  int
	waiting map[int]waiter
}

type call struct {
	number int
	body   []byte
}

type waiter struct {
	resolve compute.Resolve
	read    []any
}

// Serve starts a server for the length of a test.
func Serve(t testing.TB, packageDir string) *Remote {
	r := &Remote{calls: make(chan call, 1<<16), done: make(chan struct{}), waiting: map[int]waiter{}}
	mux := http.NewServeMux()
	mux.Handle("/package/", http.StripPrefix("/package/", http.FileServer(http.Dir(packageDir))))
	mux.Handle("/test/", http.StripPrefix("/test/", http.FileServerFS(Files)))
	mux.Handle("/models/", &models{t: t})
	if cache, err := os.UserCacheDir(); err == nil { // real models of ONNX, which scripts/setup test writes
		if found, _ := filepath.Glob(filepath.Join(cache, "wavelane", "onnx-*", "cases", "real")); len(found) > 0 {
			mux.Handle("/real/", http.StripPrefix("/real/", http.FileServer(http.Dir(found[0]))))
		}
	}
	mux.HandleFunc("GET /call", r.next)
	mux.HandleFunc("POST /result/{number}", r.result)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `<!doctype html><title>test</title><link rel="icon" href="data:,">`)
	})
	s := httptest.NewServer(mux)
	r.URL = s.URL
	t.Cleanup(func() { r.Finish(); s.Close() })
	return r
}

// errEnded is the error of calls that nobody answers any more.
var errEnded = errors.New("JavaScript has ended")

// Finish tells JavaScript that there are no more calls, and those who wait for answers that there will be none.
func (r *Remote) Finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished() {
		return
	}
	close(r.done)
	for _, w := range r.waiting {
		w.resolve(errEnded, nil)
	}
	clear(r.waiting)
}

func (r *Remote) finished() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func (r *Remote) next(w http.ResponseWriter, q *http.Request) {
	select {
	case c := <-r.calls:
		w.Header().Set("Number", strconv.Itoa(c.number))
		w.Write(c.body)
	case <-r.done:
		w.WriteHeader(http.StatusNoContent)
	case <-q.Context().Done():
	}
}

// Value describes an array of a call or a result; its bytes follow the header.
type Value struct {
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
	Bytes int    `json:"bytes"`
}

// Call is the header of a call.
type Call struct {
	Operation int      `json:"operation"` // in the catalogue's order
	Number    int      `json:"number"`    // for choosing a way to make the call
	Operands  []Value  `json:"operands"`
	Same      []int    `json:"same"`    // for each argument the operand that it is
	Numbers   []string `json:"numbers"` // which may be NaN or infinite
	Options   []any    `json:"options"` // values of the fields, in their order
}

// answer is the header of a result.
type answer struct {
	Error   string  `json:"error"`
	Results []Value `json:"results"`
}

// Compile implements program.Executor for programs of one step.
func (r *Remote) Compile(_ context.Context, p *program.Program) (program.Executable, error) {
	if len(p.Steps) != 1 {
		return nil, fmt.Errorf("%d steps: %w", len(p.Steps), compute.ErrUnsupported)
	}
	return executable{remote: r, program: p}, nil
}

type executable struct {
	program.Executable // nil: nobody calls the other methods
	remote             *Remote
	program            *program.Program
}

func (x executable) Close() error { return nil }

// Start sends the call.
func (x executable) Start(data *program.IO) *compute.Future {
	step := &x.program.Steps[0]
	r := x.remote
	r.mu.Lock()
	r.number++
	c := Call{Operands: []Value{}, Operation: slices.Index(catalogue.All(), step.Entry), Number: r.number}
	r.mu.Unlock()
	for i, s := range x.program.Host {
		t := x.program.Values[s]
		c.Operands = append(c.Operands, Value{t.DType.String(), append([]int{}, t.Shape...), len(program.Bytes(data.Host[i]))})
	}
	for _, s := range step.In {
		c.Same = append(c.Same, slices.Index(x.program.Host, s))
	}
	for _, v := range step.Attr.Scalars {
		c.Numbers = append(c.Numbers, number(float64(v)))
	}
	c.Options = fieldsOf(step.Attr.Options)
	body, err := encode(c, data.Host)
	if err != nil {
		return compute.Failed(err)
	}
	f, resolve := compute.NewFuture(nil)
	r.mu.Lock()
	finished := r.finished()
	if !finished {
		r.waiting[c.Number] = waiter{resolve, data.Read}
	}
	r.mu.Unlock()
	if finished {
		return compute.Failed(errEnded)
	}
	r.calls <- call{c.Number, body}
	return f
}

// fieldsOf lists the fields of options as JavaScript's table of operations does.
func fieldsOf(options any) []any {
	v := reflect.ValueOf(options)
	if !v.IsValid() {
		return nil
	}
	if v.Kind() != reflect.Struct {
		return []any{plain(v)}
	}
	var list []any
	for i := range v.NumField() {
		list = append(list, plain(v.Field(i)))
	}
	return list
}

// plain is a field as JSON can say it: numbers that may be NaN or infinite are strings.
func plain(v reflect.Value) any {
	if v.Kind() == reflect.Float32 {
		return number(v.Float())
	}
	return v.Interface()
}

func number(x float64) string {
	return strings.Replace(strconv.FormatFloat(x, 'g', -1, 64), "Inf", "Infinity", 1)
}

// encode writes a header and arrays, each at a multiple of 8 bytes.
func encode(header any, arrays []any) ([]byte, error) {
	text, err := json.Marshal(header)
	if err != nil {
		return nil, err
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	b = append(b, text...)
	for _, a := range arrays {
		b = append(pad(b), program.Bytes(a)...)
	}
	return b, nil
}

func pad(b []byte) []byte { return append(b, make([]byte, -len(b)&7)...) }

func (r *Remote) result(_ http.ResponseWriter, q *http.Request) {
	number, _ := strconv.Atoi(q.PathValue("number"))
	body, err := io.ReadAll(q.Body)
	r.mu.Lock()
	w, ok := r.waiting[number]
	delete(r.waiting, number)
	r.mu.Unlock()
	if !ok {
		return
	}
	if err == nil {
		err = deliver(body, w.read)
	}
	w.resolve(err, nil)
}

func deliver(body []byte, read []any) error {
	var a answer
	n := binary.LittleEndian.Uint32(body)
	if err := json.NewDecoder(bytes.NewReader(body[4 : 4+n])).Decode(&a); err != nil {
		return err
	}
	if a.Error != "" {
		return errors.New(a.Error)
	}
	if len(a.Results) != len(read) {
		return fmt.Errorf("%d results, want %d", len(a.Results), len(read))
	}
	at := int(4 + n)
	for i, v := range a.Results {
		at += -at & 7
		d, _, err := program.TypeOf(read[i])
		if err != nil {
			return err
		}
		to := program.Bytes(read[i])
		if name := d.String(); v.DType != name || v.Bytes != len(to) {
			return fmt.Errorf("result %d is %d bytes of %s, want %d of %s", i, v.Bytes, v.DType, len(to), name)
		}
		copy(to, body[at:at+v.Bytes])
		at += v.Bytes
	}
	return nil
}
