module github.com/wavelane/wavelane/wasm/browser

go 1.26.0

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.22.1
	github.com/stretchr/testify v1.12.1
	github.com/wavelane/wavelane v0.0.0
	github.com/wavelane/wavelane/internal/browser v0.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.37.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)

replace (
	github.com/wavelane/wavelane => ../..
	github.com/wavelane/wavelane/internal/browser => ../../internal/browser
)
