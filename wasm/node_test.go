package wasm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	folder = filepath.Join(dir, "wavelane")
	if err := wasm.Pack(context.Background(), "..", folder); err != nil {
		return 1, err
	}
	if err := os.CopyFS(filepath.Join(dir, "test"), jstest.Files); err != nil {
		return 1, err
	}
	if err := os.WriteFile(filepath.Join(dir, "test", "package.json"), []byte(`{"type": "module"}`), 0o644); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// node starts a module of package jstest, which finds the library's folder as its first argument.
func node(t *testing.T, file string, args ...string) (wait func() []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "node", append([]string{filepath.Join(folder, "..", "test", file), folder}, args...)...)
	var out bytes.Buffer
	var problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	require.NoError(t, cmd.Start(), "the tests of the JavaScript API need Node.js")
	return func() []byte {
		require.NoError(t, cmd.Wait(), "%s%s", &out, &problems)
		require.Empty(t, problems.String())
		t.Logf("%s: %v of CPU time", file, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		return out.Bytes()
	}
}

// TestConformance runs cases of every operation through the API: arrays, tensors, batches and plans in turn.
func TestConformance(t *testing.T) {
	r := jstest.Serve(t, folder)
	wait := node(t, "node.js", r.URL)
	n := r.Conform(t, 6)
	r.Finish()
	wait()
	t.Logf("%d cases of the catalogue through JavaScript on the CPU device", n)
}

// TestAPI runs what api.js tests: mistakes of every kind, batches, plans, signals, memory, and the end of the program.
func TestAPI(t *testing.T) {
	var report jstest.Report
	require.NoError(t, json.Unmarshal(node(t, "api_node.js")(), &report))
	report.Check(t)
}
