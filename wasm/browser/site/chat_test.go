package site

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/browser"
	"github.com/wavelane/wavelane/wasm/internal/jstest"
)

// testChat opens a language model and talks with it; what it says is of no meaning, as its weights are random.
func testChat(s site) {
	model := filepath.Join(s.t.TempDir(), "small.gguf")
	require.NoError(s.t, os.WriteFile(model, jstest.LanguageModel(s.t), 0o600))
	open := func(file string) {
		require.NoError(s.t, chromedp.Do(s.Context(), chromedp.SetUploadFiles("#chat-file", []string{file})))
	}
	paragraphs := func() []string {
		return browser.Eval[[]string](s.t, s.Page, `[...document.querySelectorAll("#chat-log p")].map((e) => e.textContent)`)
	}
	ask := func(text string) {
		s.Exec(s.t, `document.getElementById("chat-message").focus()`)
		s.key(text + "\r")
	}

	require.True(s.t, browser.Eval[bool](s.t, s.Page, `document.getElementById("chat-send").disabled`))
	open(model)
	s.wait("chat-status", "^random weights .llama, .* on ")
	s.set("chat-temperature", 0)
	ask("the thing")
	s.wait("chat-status", "^\\d+ tokens, 0 of them known; .*tokens per second")
	first := paragraphs()
	require.Len(s.t, first, 2)
	require.Equal(s.t, "the thing", first[0])
	require.NotEmpty(s.t, first[1])

	s.Click(s.t, "#chat-anew")
	require.Empty(s.t, paragraphs())
	ask("the thing")
	s.wait("chat-status", "^\\d+ tokens, [1-9]\\d* of them known")
	require.Equal(s.t, first, paragraphs())

	s.Click(s.t, "#chat-anew")
	ask(strings.Repeat("the ", 200))
	s.wait("chat-status", "TooLargeError")
	wrong := filepath.Join(s.t.TempDir(), "wrong.gguf")
	require.NoError(s.t, os.WriteFile(wrong, []byte("no model"), 0o600))
	open(wrong)
	s.wait("chat-status", "ArgumentError")
	require.False(s.t, browser.Eval[bool](s.t, s.Page, `document.getElementById("chat-send").disabled`), "the model before stays")
}
