package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/browser"
	"github.com/wavelane/wavelane/wasm"
	"github.com/wavelane/wavelane/wasm/internal/jstest"
)

// folder has the package and nothing else.
var folder string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "wavelane-npm")
	code := 1
	if err == nil {
		folder = filepath.Join(dir, "wavelane")
		err = wasm.Pack(context.Background(), filepath.Join("..", ".."), folder)
	}
	if err == nil {
		code = m.Run()
	} else {
		fmt.Println(err)
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// devices are what pages open. Chromium's WebGPU is SwiftShader here, a software adapter.
var devices = map[string]string{"webgpu": `{device: "webgpu", software: true}`, "cpu": `{device: "cpu"}`}

// job runs one of page.js, in the page or in a worker.
func job[T any](t *testing.T, p *browser.Page, name, options string, worker bool) T {
	call := fmt.Sprintf("m.jobs.%s(%s)", name, options)
	if worker {
		call = fmt.Sprintf("m.jobs.worker(%q, %s)", name, options)
	}
	return browser.Eval[T](t, p, `import("/test/page.js").then((m) => `+call+`)`)
}

// TestConformance runs cases of every operation through the API of a page.
func TestConformance(t *testing.T) {
	b := browser.Start(t)
	for device, options := range devices {
		t.Run(device, func(t *testing.T) {
			r := jstest.Serve(t, folder)
			p := b.Page(t, r.URL)
			var info struct{ Kind, Name, Reason string }
			require.NoError(t, json.Unmarshal(job[json.RawMessage](t, p, "info", options, false), &info))
			require.Equal(t, device, info.Kind)
			done := make(chan int, 1)
			t.Cleanup(func() { r.Finish(); <-done }) // a page that ends early leaves nobody waiting
			go func() {
				defer close(done)
				done <- r.Conform(t, 1)
				r.Finish()
			}()
			p.Exec(t, fmt.Sprintf(`import("/test/page.js").then((m) => { globalThis.answered = m.jobs.conform(%s); })`, options))
			n := <-done
			<-done
			require.Equal(t, n, browser.Eval[int](t, p, "answered"))
			require.Empty(t, p.Errors())
			t.Logf("%d cases of the catalogue through JavaScript on %s (%s)", n, device, info.Name)
		})
	}
}

// TestAPI runs what api.js tests.
func TestAPI(t *testing.T) {
	b := browser.Start(t)
	for device, options := range devices {
		t.Run(device, func(t *testing.T) {
			r := jstest.Serve(t, folder)
			p := b.Page(t, r.URL)
			// In a worker the CPU, which is where pages should have it; TestInterop has WebGPU there.
			job[jstest.Report](t, p, "api", options, device == "cpu").Check(t, 10)
			require.Empty(t, p.Errors())
		})
	}
}

// TestONNX runs what onnx.js tests.
func TestONNX(t *testing.T) {
	b := browser.Start(t)
	r := jstest.Serve(t, folder)
	for device, options := range devices {
		t.Run(device, func(t *testing.T) {
			p := b.Page(t, r.URL)
			job[jstest.Report](t, p, "onnx", options, device == "cpu").Check(t, 6)
			require.Empty(t, p.Errors())
		})
	}
}

// TestLLM runs what llm.js tests, in workers that the package starts and, on the CPU, in one of the page's as well.
func TestLLM(t *testing.T) {
	b := browser.Start(t)
	r := jstest.Serve(t, folder)
	for _, c := range []struct {
		device string
		worker bool
	}{{"webgpu", false}, {"cpu", false}, {"cpu", true}} {
		t.Run(fmt.Sprintf("%s worker=%v", c.device, c.worker), func(t *testing.T) {
			p := b.Page(t, r.URL)
			job[jstest.Report](t, p, "llm", devices[c.device], c.worker).Check(t, 10)
			require.Empty(t, p.Errors())
		})
	}
	t.Run("storage", func(t *testing.T) {
		p := b.Page(t, r.URL)
		require.True(t, job[bool](t, p, "keeps", "undefined", false))
	})
}

// TestRealModels runs models of others, of which WebGPU's software adapter has the smallest.
func TestRealModels(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("scripts/setup fetches the models on linux/amd64")
	}
	b := browser.Start(t)
	r := jstest.Serve(t, folder)
	all := []string{"ch_ppocr_mobile_v2.0_cls_infer", "silero_vad", "magika", "ch_PP-OCRv4_rec_infer", "ch_PP-OCRv4_det_infer"}
	for device, options := range devices {
		models := all
		if device == "webgpu" {
			models = all[:2]
		}
		list, err := json.Marshal(models)
		require.NoError(t, err)
		t.Run(device, func(t *testing.T) {
			p := b.Page(t, r.URL)
			job[jstest.Report](t, p, "real", fmt.Sprintf("{...%s, models: %s}", options, list), device == "cpu").Check(t, len(models))
			require.Empty(t, p.Errors())
		})
	}
}

// TestInterop is about devices and buffers of the page, and devices that are lost.
func TestInterop(t *testing.T) {
	r := jstest.Serve(t, folder)
	b := browser.Start(t)
	for _, worker := range []bool{false, true} {
		t.Run(fmt.Sprintf("worker=%v", worker), func(t *testing.T) {
			p := b.Page(t, r.URL)
			job[jstest.Report](t, p, "interop", "undefined", worker).Check(t, 3)
			require.Empty(t, p.Errors())
		})
	}
}

// TestGPUProcessEnds ends the browser's GPU process while calls wait, as the system does when memory runs out: what waits is rejected,
// and the page can open a device again, without being loaded anew.
func TestGPUProcessEnds(t *testing.T) {
	r := jstest.Serve(t, folder)
	b := browser.Start(t)
	p := b.Page(t, r.URL)
	p.Exec(t, `import("/package/wavelane.js").then(async (w) => {
		globalThis.w = w;
		globalThis.dev = await w.open(`+devices["webgpu"]+`);
		globalThis.kept = await dev.upload(new Float32Array(1 << 20));
	})`)
	p.Exec(t, `globalThis.outcome = Promise.allSettled([dev.matmul(new Float32Array(1 << 20), new Float32Array(1 << 20), 1024, 1024, 1024),
		kept.read(), dev.lost]).then(async ([product, read, lost]) => {
			const late = await dev.relu(new Float32Array(2)).catch((e) => e);
			return [product.reason?.name, lost.value?.name, late?.name];
		}); undefined`)
	require.NoError(t, b.EndGPU())
	got := browser.Eval[[]string](t, p, "outcome")
	require.Equal(t, []string{"DeviceLostError", "DeviceLostError", "DeviceLostError"}, got)
	again := browser.Eval[[]float64](t, p, `(async () => {
		kept.close(); dev.close();
		for (let i = 0; ; i++) { // until the browser has its GPU process again
			try {
				const dev = await w.open(`+devices["webgpu"]+`);
				return [...await dev.relu(new Float32Array([-1, 2]))];
			} catch (error) {
				if (i >= 100) throw error;
				await new Promise((r) => setTimeout(r, 50));
			}
		}
	})()`)
	require.Equal(t, []float64{0, 2}, again)
}

// TestHidden hides a page behind another tab while a batch runs and calls wait: all are answered there, though the browser holds back
// timers, and so are calls that the hidden page makes.
func TestHidden(t *testing.T) {
	var throttled []chromedp.ExecAllocatorOption
	for _, name := range []string{"background-timer-throttling", "backgrounding-occluded-windows", "renderer-backgrounding"} {
		throttled = append(throttled, chromedp.Flag("disable-"+name, false)) // chromedp's default is true
	}
	b := browser.Start(t, throttled...)
	for device, options := range devices {
		t.Run(device, func(t *testing.T) {
			r := jstest.Serve(t, folder)
			p := b.Page(t, r.URL, chromedp.WithNewWindow(false))
			other := b.Page(t, "about:blank", chromedp.WithNewWindow(false))
			front(t, p)
			p.Exec(t, `import("/test/page.js").then((m) => { globalThis.outcome = m.jobs.hidden(`+options+`); })`)
			p.Exec(t, `Promise.race([outcome, (async () => { while (!globalThis.working) await new Promise((r) => setTimeout(r, 5)); })()])`)
			front(t, other)
			var o struct {
				Before, After   float64
				Waiting         int
				VisibilityState string
				Results         []string
			}
			require.NoError(t, json.Unmarshal(browser.Eval[json.RawMessage](t, p, "outcome"), &o))
			t.Logf("a timer of 10 ms takes %.0f ms in sight and %.0f ms hidden, where %d sets of calls waited", o.Before, o.After, o.Waiting)
			require.Equal(t, "hidden", o.VisibilityState)
			require.Positive(t, o.Waiting)
			require.Len(t, o.Results, 1)
			var got [][]float64
			require.NoError(t, json.Unmarshal([]byte(o.Results[0]), &got))
			const e = 0.002472623
			want := [][]float64{{0, 2}, {1, -2}, {e, 1 - e}, {0, 2}, {0, 3}, {-1, 2}}
			require.Len(t, got, len(want))
			for i := range want {
				require.InDeltaSlice(t, want[i], got[i], 1e-5)
			}
			require.Empty(t, p.Errors())
		})
	}
}

// front shows a tab instead of the others of its window.
func front(t *testing.T, p *browser.Page) {
	_, err := chromedp.Run(p.Context(), func(ctx context.Context, tab *chromedp.Target) (cdp.Empty, error) {
		return cdp.Call(ctx, tab, page.BringToFront, cdp.Empty{})
	})
	require.NoError(t, err)
}

// TestReadme runs the README's JavaScript on a server that has the package's files only. Without a hardware adapter it is the CPU that
// computes, and the device says why.
func TestReadme(t *testing.T) {
	p := browser.Start(t).Page(t, browser.Serve(t, folder)+"/LICENSE")
	code := strings.Replace(jstest.Snippet(t, filepath.Join("..", "README.md")), `"wavelane"`, `"BASE/wavelane.js"`, 1)
	text, err := json.Marshal(code + "\nexport const results = [...c, ...probabilities, ...y], info = dev.info;\n")
	require.NoError(t, err)
	var got struct {
		Results []float64
		Info    struct{ Kind, Reason string }
	}
	out := browser.Eval[json.RawMessage](t, p, fmt.Sprintf(`import(URL.createObjectURL(new Blob([%s.replace("BASE", location.origin)],
		{type: "text/javascript"}))).then((m) => ({results: m.results, info: m.info}))`, text))
	require.NoError(t, json.Unmarshal(out, &got))
	require.InDeltaSlice(t, jstest.SnippetResults, got.Results, 1e-5)
	require.Equal(t, "cpu", got.Info.Kind)
	require.Contains(t, got.Info.Reason, "ask for one with the option software: true")
	require.NotContains(t, got.Info.Reason, "WithSoftware")
}
