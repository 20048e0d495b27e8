package onnx_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/onnx"
)

// Example is the code of the guide.
func Example() {
	folder, err := os.MkdirTemp("", "onnx")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "model.onnx")
	if err := os.WriteFile(path, model(perceptron()), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	dev, err := cpu.Open(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	if err := guide(ctx, dev, path, []float32{1, 2, 3, 4, 5, 6}); err != nil {
		fmt.Println(err)
	}
	// Output: [12 29 39 65]
}

func guide(ctx context.Context, dev onnx.Device, path string, x []float32) error {
	m, err := onnx.Open(path)
	if err != nil {
		return err
	}
	defer m.Close()
	s, err := m.Session(ctx, dev) // fails with a list of all that is lacking
	if err != nil {
		return err
	}
	defer s.Close()
	out, err := s.Run(ctx, map[string]onnx.Tensor{"x": onnx.Of(x, 2, 3)})
	if err != nil {
		return err
	}
	y, err := onnx.Elements[float32](out["y"])
	if err != nil {
		return err
	}
	fmt.Println(y)
	return nil
}
