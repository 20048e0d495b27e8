package wasm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Version is that of the npm package.
const Version = "0.1.0"

// Pack builds the npm package in dir, which is made if it does not exist; root is the root of this module. It needs the go command.
func Pack(ctx context.Context, root, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	goRoot, err := output(ctx, root, "go", "env", "GOROOT")
	if err != nil {
		return err
	}
	goRoot = strings.TrimSpace(goRoot)
	sources, err := filepath.Glob(filepath.Join(root, "wasm", "js", "*.*s"))
	if err != nil || len(sources) == 0 {
		return fmt.Errorf("pack: no JavaScript in %s", root)
	}
	copies := map[string]string{"README.md": filepath.Join(root, "wasm", "README.md"), "LICENSE": filepath.Join(root, "LICENSE"),
		"LICENSE-go": filepath.Join(goRoot, "LICENSE")}
	for _, s := range sources {
		copies[filepath.Base(s)] = s
	}
	files := map[string][]byte{"package.json": manifest(), "version.js": fmt.Appendf(nil, "export const version = %q;\n", Version)}
	for name, from := range copies {
		if files[name], err = os.ReadFile(from); err != nil {
			return fmt.Errorf("pack: %w", err)
		}
	}
	if files["go.js"], err = support(goRoot); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return fmt.Errorf("pack: %w", err)
		}
	}
	for name, tags := range map[string]string{"wavelane.wasm": "", "wavelane-onnx.wasm": "onnx", "wavelane-llm.wasm": "llm"} {
		if err := build(ctx, root, filepath.Join(dir, name), tags); err != nil {
			return err
		}
	}
	return nil
}

// build compiles the bridge with some tags. Neither the way to the sources nor the state of the repository is the page's business. Functions of
// fmt and wgslkernels are not inlined: that takes 60 KB off the compressed program, most of it what fmt.Errorf becomes wherever it is called,
// and no measurable time.
func build(ctx context.Context, root, program, tags string) error {
	if _, err := output(ctx, root, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-gcflags=fmt=-l",
		"-gcflags=github.com/wavelane/wavelane/internal/wgslkernels=-l", "-tags", tags, "-o", program, "./wasm/bridge"); err != nil {
		return err
	}
	linked, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	joined, err := joinSegments(linked)
	if err != nil {
		return err
	}
	if err := os.WriteFile(program, joined, 0o644); err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	return nil
}

// support is Go's wasm_exec.js as a module: a function, so that what the file takes from the global scope can be given to it.
func support(goRoot string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(goRoot, "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	var b bytes.Buffer
	b.WriteString("// Go's support for WebAssembly, lib/wasm/wasm_exec.js of the Go distribution; LICENSE-go applies.\n\n")
	b.WriteString("export default function (fs, process, path, crypto) {\n")
	b.Write(text)
	b.WriteString("}\n")
	return b.Bytes(), nil
}

// manifest is package.json.
func manifest() []byte {
	text, err := json.MarshalIndent(struct {
		Name        string            `json:"name"`
		Version     string            `json:"version"`
		Description string            `json:"description"`
		Keywords    []string          `json:"keywords"`
		License     string            `json:"license"`
		Repository  map[string]string `json:"repository"`
		Type        string            `json:"type"`
		Exports     map[string]any    `json:"exports"`
		Types       string            `json:"types"`
		SideEffects bool              `json:"sideEffects"`
		Engines     map[string]string `json:"engines"`
	}{
		Name: "wavelane", Version: Version, License: "MIT", Type: "module", Types: "./wavelane.d.ts",
		Description: "GPU compute in the browser: matmul, convolution, attention and a hundred more on WebGPU, or on the CPU with WebAssembly SIMD",
		Keywords:    []string{"webgpu", "wasm", "simd", "gpgpu", "matmul", "compute"},
		Repository:  map[string]string{"type": "git", "url": "git+https://github.com/wavelane/wavelane.git", "directory": "wasm"},
		Exports: map[string]any{
			".":                    map[string]string{"types": "./wavelane.d.ts", "default": "./wavelane.js"},
			"./onnx":               map[string]string{"types": "./onnx.d.ts", "default": "./onnx.js"},
			"./llm":                map[string]string{"types": "./llm.d.ts", "default": "./llm.js"},
			"./wavelane.wasm":      "./wavelane.wasm",
			"./wavelane-onnx.wasm": "./wavelane-onnx.wasm",
			"./wavelane-llm.wasm":  "./wavelane-llm.wasm",
		},
		Engines: map[string]string{"node": ">=18"},
	}, "", "  ")
	if err != nil {
		panic(err) // the value is above
	}
	return append(text, '\n')
}

// output runs a command in the module and returns what it prints.
func output(ctx context.Context, root, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("pack: %s %s: %w\n%s", name, strings.Join(args, " "), err, problems.String())
	}
	return out.String(), nil
}
