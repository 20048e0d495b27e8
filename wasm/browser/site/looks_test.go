package site

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/browser"
)

// testKeyboard works the page without a mouse: every control can be reached in order, has a name and shows the focus.
func testKeyboard(s site) {
	// The order starts where the focus was last: at the top.
	s.Exec(s.t, `document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute("tabindex")`)
	s.key(kb.Tab)
	require.Equal(s.t, "Skip to the panels", browser.Eval[string](s.t, s.Page, `document.activeElement.textContent`))
	require.Positive(s.t, browser.Eval[float64](s.t, s.Page, `document.activeElement.getBoundingClientRect().bottom`), "it is seen when it has the focus")

	expected := browser.Eval[[]string](s.t, s.Page, `{
		const all = [...document.querySelectorAll("a, button, input, select, textarea, [tabindex]")].filter((e) => !e.disabled && e.checkVisibility() && e.tabIndex >= 0);
		globalThis.stops = all.filter((e) => e.type !== "radio" || e.checked); // a group of radio buttons is one stop
		stops.map((e) => e.id || e.textContent.trim().slice(0, 20));
	}`)
	require.Greater(s.t, len(expected), 40)
	for i := 1; i < len(expected); i++ {
		s.key(kb.Tab)
		require.Equal(s.t, i, browser.Eval[int](s.t, s.Page, `stops.indexOf(document.activeElement)`), "after %q comes %q", expected[i-1], expected[i])
		outline := browser.Eval[bool](s.t, s.Page, `{
			const seen = (e) => e && getComputedStyle(e).outlineStyle !== "none" && parseFloat(getComputedStyle(e).outlineWidth) >= 1;
			const e = document.activeElement;
			seen(e) || seen(e.closest(".editor")) || seen(e.nextElementSibling) || seen(e.previousElementSibling);
		}`)
		require.True(s.t, outline, "%q shows the focus", expected[i])
	}

	s.Exec(s.t, `document.querySelector("#digits-samples button:nth-child(6)").focus()`)
	s.key(" ")
	s.wait("digits-status", "This is a 5")
	s.Exec(s.t, `document.getElementById("picture-brightness").focus()`)
	before := s.text("output[for=picture-brightness]")
	s.key(kb.ArrowRight)
	require.NotEqual(s.t, before, s.text("output[for=picture-brightness]"))

	unnamed := browser.Eval[[]string](s.t, s.Page, `[...document.querySelectorAll("button, input, select, textarea, progress, canvas, [role=img], [role=region]")].filter((e) =>
		!e.closest("[aria-hidden=true]") && !(e.ariaLabel || e.labels?.[0]?.textContent.trim() || e.textContent.trim() && e.tagName === "BUTTON")).map((e) => e.outerHTML)`)
	require.Empty(s.t, unnamed, "every control and picture has a name")
	for _, id := range []string{"device", "picture", "matmul", "batch", "playground", "digits", "models", "chat"} {
		require.Equal(s.t, "status", browser.Eval[string](s.t, s.Page, fmt.Sprintf(`document.getElementById("%s-status").getAttribute("role")`, id)), "a live region")
	}
}

// lowContrast lists texts whose contrast with what is behind them is below 4.5 (WCAG 2.2, AA).
const lowContrast = `{
	const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
	const rgb = (color) => { // as the browser paints it
		probe.clearRect(0, 0, 1, 1);
		probe.fillStyle = color;
		probe.fillRect(0, 0, 1, 1);
		return probe.getImageData(0, 0, 1, 1).data;
	};
	const luminance = (c) => {
		const [r, g, b] = [0, 1, 2].map((i) => { const v = c[i] / 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const background = (e) => {
		for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; }
		return rgb("Canvas");
	};
	const low = [];
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walker.nextNode()) {
		const e = walker.currentNode.parentElement;
		if (!walker.currentNode.textContent.trim() || !e.checkVisibility() || e.closest(":disabled, option, noscript")) continue;
		const svg = e instanceof SVGElement;
		const [a, b] = [luminance(rgb(getComputedStyle(e)[svg ? "fill" : "color"])), luminance(background(e))];
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) low.push(e.tagName + " " + walker.currentNode.textContent.trim().slice(0, 30) + ": " + ratio.toFixed(2));
	}
	low;
}`

// testLooks photographs the page light and dark, wide and narrow, and measures contrast and overflow.
func testLooks(s site) {
	defer chromedp.Do(s.Context(), chromedp.EmulateViewport(1200, 900))
	for _, scheme := range []string{"light", "dark"} {
		_, err := chromedp.Call(s.Context(), emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		})
		require.NoError(s.t, err)
		for _, width := range []int64{1200, 360} {
			require.NoError(s.t, chromedp.Do(s.Context(), chromedp.EmulateViewport(width, 900)))
			s.Exec(s.t, `scrollTo(0, 0); new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))`)
			sticking := browser.Eval[[]string](s.t, s.Page, fmt.Sprintf(`[...document.querySelectorAll("body *")].filter((e) =>
				e.checkVisibility() && e.getBoundingClientRect().right > %d && !e.closest(".scroll, .code, .editor")).map((e) => e.outerHTML.slice(0, 80))`, width))
			require.LessOrEqual(s.t, browser.Eval[int64](s.t, s.Page, `document.documentElement.scrollWidth`), width, "nothing sticks out: %q", sticking)
			png, err := chromedp.Run(s.Context(), chromedp.FullScreenshot(100))
			require.NoError(s.t, err)
			require.NoError(s.t, os.MkdirAll(shots, 0o755))
			require.NoError(s.t, os.WriteFile(filepath.Join(shots, fmt.Sprintf("site-%s-%d.png", scheme, width)), png, 0o644))
		}
		require.Empty(s.t, browser.Eval[[]string](s.t, s.Page, lowContrast), scheme)
	}
	// The button goes before the system.
	dark := browser.Eval[string](s.t, s.Page, `getComputedStyle(document.body).backgroundColor`)
	s.Exec(s.t, `document.getElementById("theme").click()`)
	require.NotEqual(s.t, dark, browser.Eval[string](s.t, s.Page, `getComputedStyle(document.body).backgroundColor`))
	s.Exec(s.t, `document.getElementById("theme").click(); document.getElementById("theme").click()`)
}
