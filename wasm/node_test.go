package wasm_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/wasm"
	"github.com/wavelane/wavelane/wasm/internal/jstest"
)

// folder has the package, and under test what runs beside it.
var folder string

func TestMain(m *testing.M) {
	code, err := pack(m)
	if err != nil {
		fmt.Println(err)
	}
	os.Exit(code)
}

func pack(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "wavelane-npm")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	folder = filepath.Join(dir, "node_modules", "wavelane")
	if err := wasm.Pack(context.Background(), "..", folder); err != nil {
		return 1, err
	}
	if err := os.CopyFS(filepath.Join(folder, "..", "..", "test"), jstest.Files); err != nil {
		return 1, err
	}
	if err := os.WriteFile(filepath.Join(dir, "test", "package.json"), []byte(`{"type": "module"}`), 0o644); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// patience is how long Node.js may take for a test: some ten times what it needs, and a small part of what go test allows.
const patience = 3 * time.Minute

// node runs Node.js and returns its output. To take too long is an error, and so is to complain.
func node(t *testing.T, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.WaitDelay = time.Second
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("node %v hangs: not done after %v\n%s%s", args, patience, &out, &problems)
	case err != nil || problems.Len() > 0:
		return nil, fmt.Errorf("node %v (these tests need Node.js): %v\n%s%s", args, err, &out, &problems)
	}
	t.Logf("%v of CPU time", cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	return out.Bytes(), nil
}

// module is the path of a module of package jstest. Each finds the library's folder as its first argument.
func module(name string) string { return filepath.Join(folder, "..", "..", "test", name) }

// report runs a module that tests by itself.
func report(t *testing.T, least int, args ...string) {
	out, err := node(t, append(args, folder)...)
	require.NoError(t, err)
	var r jstest.Report
	require.NoError(t, json.Unmarshal(out, &r), "%s", out)
	r.Check(t, least)
}

// TestConformance runs cases of every operation through the API: arrays, tensors, batches and plans in turn.
func TestConformance(t *testing.T) {
	r := jstest.Serve(t, folder)
	ended := make(chan error, 1)
	go func() {
		defer r.Finish() // should it end early, so does what waits for its answers
		_, err := node(t, module("node.js"), folder, r.URL)
		ended <- err
	}()
	n := r.Conform(t, 6)
	r.Finish()
	require.NoError(t, <-ended)
	t.Logf("%d cases of the catalogue through JavaScript on the CPU device", n)
}

// TestAPI runs what api.js tests: mistakes of every kind, batches, plans, signals, memory, and the end of the program.
func TestAPI(t *testing.T) { report(t, 15, module("api_node.js")) }

// TestONNX runs what onnx.js tests: models on the CPU device.
func TestONNX(t *testing.T) { report(t, 6, module("onnx_node.js")) }

// TestLLM runs what llm.js tests: language models on the CPU device.
func TestLLM(t *testing.T) {
	r := jstest.Serve(t, folder)
	report(t, 10, module("llm_node.js"), r.URL)
}

// TestForgotten runs what forgotten.js tests: the garbage collector takes nothing from calls that wait.
func TestForgotten(t *testing.T) { report(t, 6, "--expose-gc", module("forgotten.js")) }

// TestReadme runs the README's JavaScript as it stands, with the package in node_modules. That of the repository's is the first part of it.
func TestReadme(t *testing.T) {
	require.Contains(t, jstest.Snippet(t, "README.md"), jstest.Snippet(t, filepath.Join("..", "README.md")))
	script := filepath.Join(folder, "..", "..", "readme.mjs")
	require.NoError(t, os.WriteFile(script, []byte(jstest.Snippet(t, "README.md")+"\nconsole.log(JSON.stringify([...c, ...probabilities, ...y]));\n"), 0o644))
	out, err := node(t, script)
	require.NoError(t, err)
	var got []float64
	require.NoError(t, json.Unmarshal(out, &got), "%s", out)
	require.InDeltaSlice(t, jstest.SnippetResults, got, 1e-5)
}

// TestSize holds the downloads to their budgets: what a page loads, and what one with models loads.
func TestSize(t *testing.T) {
	programs := map[string]struct {
		scripts string // that no other program has
		budget  int
	}{"wavelane.wasm": {"none", 2_149_000}, "wavelane-onnx.wasm": {"onnx*.js", 2_783_000}, "wavelane-llm.wasm": {"llm*.js", 2_866_000}}
	own := func(name string) string {
		for program, p := range programs {
			if ok, err := filepath.Match(p.scripts, name); err == nil && ok {
				return program
			}
		}
		return ""
	}
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	sizes := map[string]int{} // of programs with their own scripts, and of the scripts of all
	for _, f := range files {
		if ext := filepath.Ext(f.Name()); ext != ".wasm" && ext != ".js" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, f.Name()))
		require.NoError(t, err)
		var b bytes.Buffer
		w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		require.NoError(t, err)
		_, err = w.Write(text)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		if filepath.Ext(f.Name()) == ".wasm" {
			t.Logf("%s: %d bytes compressed", f.Name(), b.Len())
			sizes[f.Name()] += b.Len()
		} else {
			sizes[own(f.Name())] += b.Len()
		}
	}
	for program, p := range programs {
		total := sizes[program] + sizes[""]
		t.Logf("%s: %d bytes with the scripts, the budget is %d", program, total, p.budget)
		require.Less(t, total, p.budget, program)
	}
}

// TestFiles checks that the package has what its manifest and its modules name.
func TestFiles(t *testing.T) {
	var manifest struct {
		Name, Version, Types string
		Exports              map[string]any
	}
	text, err := os.ReadFile(filepath.Join(folder, "package.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &manifest))
	require.Equal(t, []string{"wavelane", wasm.Version}, []string{manifest.Name, manifest.Version})
	names := []string{manifest.Types, "README.md", "LICENSE", "LICENSE-go"}
	for _, export := range manifest.Exports {
		switch x := export.(type) {
		case string:
			names = append(names, x)
		case map[string]any:
			for _, name := range x {
				names = append(names, name.(string))
			}
		}
	}
	sources, err := filepath.Glob(filepath.Join(folder, "*.js"))
	require.NoError(t, err)
	for _, s := range sources {
		text, err := os.ReadFile(s)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`from "(\./[^"]+)"`).FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	require.Greater(t, len(names), 10)
	for _, name := range names {
		require.FileExists(t, filepath.Join(folder, name))
	}
}
