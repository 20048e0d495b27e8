// Command pack builds the npm package: go run ./wasm/cmd/pack [folder], from the root of the module.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/wavelane/wavelane/wasm"
)

func main() {
	dir := "out/npm/wavelane"
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := wasm.Pack(ctx, ".", dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
