package dist_test

import (
	"context"
	"fmt"
	"log"

	"github.com/wavelane/wavelane/dist"
)

// Under a launcher the same program has as many ranks as that has started.
func Example() {
	ctx := context.Background()
	w, err := dist.Init(ctx)
	if err != nil {
		log.Fatal(err)
	}
	x := []float32{float32(w.Rank() + 1)}
	if err := w.AllReduce(ctx, x, x, dist.Sum); err != nil {
		log.Fatal(err)
	}
	if w.Rank() == 0 {
		fmt.Println(w.Size(), "ranks, sum", x[0])
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: 1 ranks, sum 1
}
