//go:build linux && !android && amd64

package wgpu

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// headers are those that scripts/setup has put beside the tests' libraries, by the major version.
func headers(t *testing.T, major uint32) string {
	dir, err := filepath.Abs(filepath.Join("..", "..", "..", "out", "wgpu", strconv.Itoa(int(major))))
	require.NoError(t, err)
	_, err = os.Stat(filepath.Join(dir, "wgpu.h"))
	require.NoError(t, err, "scripts/setup test puts the headers there")
	return dir
}

// TestLayout has a C compiler say where the fields of every struct are and what every constant is, by the headers of each version. Another one, for
// the other systems, is given what it has said.
func TestLayout(t *testing.T) {
	structs := reflect.TypeFor[Structs]()
	for i := range abis {
		abi := &abis[i]
		t.Run(fmt.Sprint(abi.Major), func(t *testing.T) {
			want, lines, asserts := map[string]uint64{}, []string{}, []string{}
			ask := func(value uint64, label, expression string) {
				want[label] = value
				lines = append(lines, fmt.Sprintf(`printf("%s %%llu\n", (unsigned long long)(%s));`, label, expression))
				if !strings.HasPrefix(label, "constant:") { // the same everywhere, and some are variables to C
					asserts = append(asserts, fmt.Sprintf(`_Static_assert((%s) == %d, "%s");`, expression, value, label))
				}
			}
			seen := map[string]bool{}
			var visit func(typ reflect.Type)
			visit = func(typ reflect.Type) {
				for typ.Kind() == reflect.Array {
					typ = typ.Elem()
				}
				if typ.Kind() != reflect.Struct || typ.PkgPath() != reflect.TypeFor[Structs]().PkgPath() {
					return
				}
				name, old := typ.Name(), abi.Major == 27
				switch {
				case seen[name] || old == (name == "BindGroupLayoutEntry") && (old || name == "layoutEntry27"):
					return
				case name == "layoutEntry27":
					name = "BindGroupLayoutEntry"
				case old && name == "ComputeState":
					name = "ProgrammableStageDescriptor"
				}
				seen[typ.Name()] = true
				newer := false
				for i := range typ.NumField() {
					f := typ.Field(i)
					visit(f.Type)
					if f.Name == "_" || old && since29[typ.Name()+"."+f.Name] {
						newer = newer || f.Name != "_"
						continue
					}
					field := strings.ToLower(f.Name[:1]) + f.Name[1:]
					ask(uint64(f.Offset), name+"."+field, fmt.Sprintf("offsetof(WGPU%s, %s)", name, field))
					ask(uint64(f.Type.Size()), "size:"+name+"."+field, fmt.Sprintf("sizeof(((WGPU%s *)0)->%s)", name, field))
				}
				if !newer { // an older version reads less than there is
					ask(uint64(typ.Size()), name, fmt.Sprintf("sizeof(WGPU%s)", name))
				}
			}
			for i := range structs.NumField() {
				visit(structs.Field(i).Type)
			}
			require.Greater(t, len(seen), 25)
			visit(reflect.TypeFor[UncapturedErrorCallbackInfo]())
			for _, name := range []string{"QueueWorkDoneCallbackInfo", "DeviceLostCallbackInfo", "RequestDeviceCallbackInfo"} {
				info := reflect.TypeFor[BufferMapCallbackInfo]()
				ask(uint64(info.Size()), name, "sizeof(WGPU"+name+")")
				for _, f := range []string{"Mode", "Callback", "Userdata1", "Userdata2"} {
					field, _ := info.FieldByName(f)
					f = strings.ToLower(f[:1]) + f[1:]
					ask(uint64(field.Offset), name+"."+f, fmt.Sprintf("offsetof(WGPU%s, %s)", name, f))
				}
			}
			constants := map[string]uint64{"SType_InstanceExtras": uint64(abi.SType_InstanceExtras),
				"FeatureName_TimestampQuery": uint64(abi.FeatureName_TimestampQuery), "FeatureName_ShaderF16": uint64(abi.FeatureName_ShaderF16)}
			if checks := abi.ShaderRuntimeChecks_BoundsChecks; checks != 0 {
				constants["ShaderRuntimeChecks_BoundsChecks"] = uint64(checks)
			}
			for name, value := range constantsOf(t) {
				constants[name] = value
			}
			require.Greater(t, len(constants), 30)
			for name, value := range constants {
				ask(value, "constant:"+name, "WGPU"+name)
			}
			got := compile(t, headers(t, abi.Major), lines)
			for label, value := range want {
				require.Equal(t, value, got[label], label)
			}
			require.Len(t, got, len(want))
			for _, target := range []string{"aarch64-linux-gnu", "arm64-apple-macos11", "x86_64-apple-macos11", "x86_64-pc-windows-msvc", "aarch64-pc-windows-msvc"} {
				assert(t, target, headers(t, abi.Major), asserts)
			}
		})
	}
}

// since29 are fields that version 27 does not have, all at the ends of structs.
var since29 = map[string]bool{
	"InstanceDescriptor.RequiredFeatureCount": true, "InstanceDescriptor.RequiredFeatures": true, "InstanceDescriptor.RequiredLimits": true,
	"InstanceExtras.Dx12PresentationSystem": true, "InstanceExtras.BudgetForDeviceCreation": true, "InstanceExtras.BudgetForDeviceLoss": true,
	"InstanceExtras.DisplayHandle": true, "AdapterInfo.SubgroupMinSize": true, "AdapterInfo.SubgroupMaxSize": true,
	"Limits.MaxImmediateSize": true, "PipelineLayoutDescriptor.ImmediateSize": true,
}

// constantsOf reads the constants that carry names of C from their source.
func constantsOf(t *testing.T) map[string]uint64 {
	text, err := os.ReadFile("abi.go")
	require.NoError(t, err)
	_, text2, ok := strings.Cut(string(text), "const (\n")
	require.True(t, ok)
	block, _, _ := strings.Cut(text2, "\n)")
	all := map[string]uint64{}
	for line := range strings.Lines(block) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			v, err := strconv.ParseUint(strings.TrimSpace(value), 0, 64)
			require.NoError(t, err, line)
			all[strings.TrimSpace(name)] = v
		}
	}
	return all
}

// assert has clang check these lines for another system, of which it needs nothing: it has the headers of C that every compiler has.
func assert(t *testing.T, target, include string, lines []string) {
	dir := t.TempDir()
	source := filepath.Join(dir, "assert.c")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "math.h"), nil, 0o600))
	text := "#include <stddef.h>\n#include \"webgpu.h\"\n#include \"wgpu.h\"\n" + strings.Join(lines, "\n") + "\n"
	require.NoError(t, os.WriteFile(source, []byte(text), 0o600))
	out, err := exec.Command("clang", "-target", target, "-std=c11", "-ffreestanding", "-fsyntax-only", "-I", include, "-I", dir, source).CombinedOutput()
	require.NoError(t, err, "%s: %s", target, out)
}

// compile runs a program of these lines, and returns what it prints.
func compile(t *testing.T, include string, lines []string) map[string]uint64 {
	dir := t.TempDir()
	source, program := filepath.Join(dir, "layout.c"), filepath.Join(dir, "layout")
	text := "#include <stddef.h>\n#include <stdio.h>\n#include \"webgpu.h\"\n#include \"wgpu.h\"\nint main(void) {\n" + strings.Join(lines, "\n") + "\nreturn 0;\n}\n"
	require.NoError(t, os.WriteFile(source, []byte(text), 0o600))
	out, err := exec.Command("cc", "-I", include, "-o", program, source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(program).Output()
	require.NoError(t, err)
	got := map[string]uint64{}
	for line := range strings.Lines(string(out)) {
		label, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		got[label], err = strconv.ParseUint(value, 10, 64)
		require.NoError(t, err)
	}
	return got
}
