module github.com/wavelane/wavelane/internal/randomprograms

go 1.26.0

require (
	github.com/wavelane/wavelane v0.0.0
	github.com/x448/float16 v0.8.4
	pgregory.net/rapid v1.3.0
)

replace github.com/wavelane/wavelane => ../..
