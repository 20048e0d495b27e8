package wgslkernels

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"text/template"

	"github.com/stretchr/testify/require"
)

// both executes templates by text/template as well, and notes where the results differ.
type both struct {
	ours   templates
	theirs *template.Template

	mu    sync.Mutex
	wrong []string
}

func (b *both) ExecuteTemplate(w io.Writer, name string, data any) error {
	var ours, theirs strings.Builder
	err := b.ours.ExecuteTemplate(&ours, name, data)
	theirErr := b.theirs.ExecuteTemplate(&theirs, name, data)
	b.mu.Lock()
	if err != nil || theirErr != nil || ours.String() != theirs.String() {
		b.wrong = append(b.wrong, fmt.Sprintf("%s of %+v: %v, text/template says %v", name, data, err, theirErr))
	}
	b.mu.Unlock()
	io.WriteString(w, ours.String())
	return err
}

// TestMain makes all rendering of this package's tests a comparison with text/template. TestListing renders every kernel.
func TestMain(m *testing.M) {
	b, err := compareTemplates()
	if err != nil {
		panic(err)
	}
	code := m.Run()
	for _, w := range b.wrong {
		fmt.Println("FAIL: templates differ:", w)
		code = 1
	}
	os.Exit(code)
}

func compareTemplates() (*both, error) {
	library := template.FuncMap{}
	for name, f := range functions {
		switch name {
		case "seq", "add", "sub", "mul", "div", "rem":
			library[name] = f
		}
	}
	t, err := template.New("").Funcs(library).ParseFS(files, "kernels/*.wgsl")
	b := &both{ours: sources().(templates), theirs: t}
	sources = func() executor { return b }
	return b, err
}

// What templates may not do is an error, not another text.
func TestTemplateErrors(t *testing.T) {
	trees := mustParse(files, "kernels")
	for name, text := range map[string]string{"no such field": "{{.Nothing}}", "no number": `{{add "a" 1}}`, "no template": `{{template "none"}}`,
		"no function": "{{none 1}}", "no variable": "{{$x}}"} {
		trees.parse(name, text)
		require.Error(t, trees.ExecuteTemplate(io.Discard, name, struct{ Some int }{1}), name)
	}
	for _, text := range []string{"{{if .Some}}", "{{range .Some}}{{else}}{{end}}", "{{end}}", "{{", "{{.Some", `{{"}}`, "{{template .Some}}", "{{add 1 a}}",
		"{{add (add 1 2}}", "{{.Some | printf}}", "{{$x :=}}"} {
		require.Panics(t, func() { templates{}.parse("bad", text) }, text)
	}
	require.Error(t, trees.ExecuteTemplate(io.Discard, "none", nil))
}
