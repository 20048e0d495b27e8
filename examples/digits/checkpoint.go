//go:build !js

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/wavelane/wavelane/dist"
	"github.com/wavelane/wavelane/dist/training"
	"github.com/wavelane/wavelane/quant/safetensors"
)

// checkpoint is what training goes on from, at the end of an epoch.
type checkpoint struct {
	seed           uint64
	step           int32
	epochs, shards int
	source         rand.PCG
	all            [][]float32 // weights and biases in turn
	state          *training.State
}

// pattern of names of checkpoints, which sort by step.
const pattern = "digits-*.safetensors"

// keep is how many checkpoints there are at most: one more than the newest, which may turn out to be damaged.
const keep = 2

// checkpoint writes what the network has learned after a step. Only rank 0 does, as all ranks know the same, but all take part in reading
// the optimiser's state.
func (n *network) checkpoint(ctx context.Context, world *dist.World, adam *training.Adam, o options, step int32, source *rand.PCG) error {
	learned, err := adam.State(ctx)
	if err != nil || world.Rank() != 0 {
		return err
	}
	state, err := source.MarshalBinary()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.folder, 0o777); err != nil {
		return err
	}
	err = safetensors.WriteFile(filepath.Join(o.folder, fmt.Sprintf("digits-%09d.safetensors", step)), func(w *safetensors.Writer) error {
		for key, value := range map[string]string{"seed": strconv.FormatUint(o.seed, 10), "step": strconv.Itoa(int(step)),
			"epochs": strconv.Itoa(o.epochs), "shards": strconv.Itoa(o.shards), "random": base64.StdEncoding.EncodeToString(state)} {
			if err := w.Set(key, value); err != nil {
				return err
			}
		}
		for i, p := range n.parameters() {
			for part := range parts {
				if err := w.AddTensor(tensorName(i, part), "F32", p.Shape()...); err != nil {
					return err
				}
			}
		}
		for i, p := range n.parameters() {
			value := make([]float32, len(learned.Mean[i]))
			if err := p.ReadAsync(value).Await(ctx); err != nil {
				return err
			}
			for _, data := range [][]float32{value, learned.Mean[i], learned.Square[i]} {
				if err := binary.Write(w, binary.LittleEndian, data); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	names, err := checkpoints(o.folder)
	if err != nil {
		return err
	}
	for _, name := range names[min(keep, len(names)):] {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// checkpoints returns the names of the checkpoints in a folder, the newest first.
func checkpoints(folder string) ([]string, error) {
	names, err := filepath.Glob(filepath.Join(folder, pattern))
	slices.Sort(names)
	slices.Reverse(names)
	return names, err
}

// parts are what belongs to a parameter.
var parts = []string{"value", "mean", "square"}

// tensorName names a part: parameters are weights and biases in turn.
func tensorName(parameter, part int) string {
	return fmt.Sprintf("layer%d.%s.%s", parameter/2, []string{"weights", "bias"}[parameter%2], parts[part])
}

// sizes are the numbers of elements of weights and biases in turn.
func sizes() (all []int) {
	for i, in := range widths[:len(widths)-1] {
		all = append(all, in*widths[i+1], widths[i+1])
	}
	return all
}

// findCheckpoint returns the newest whole checkpoint of rank 0, which sends it to the other ranks: they need not see its folder. It
// returns nil if there is none.
func findCheckpoint(ctx context.Context, w io.Writer, world *dist.World, o options) (*checkpoint, error) {
	if o.folder == "" {
		return nil, nil
	}
	var data []byte
	if world.Rank() == 0 {
		names, err := checkpoints(o.folder)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if data, err = os.ReadFile(name); err != nil {
				return nil, err
			}
			c, err := readCheckpoint(data)
			if err == nil {
				fmt.Fprintf(w, "goes on from %s, after step %d\n", name, c.step)
				break
			}
			fmt.Fprintf(w, "%s is damaged: %v\n", name, err)
			data = nil
		}
	}
	size := []int32{int32(len(data))}
	if err := world.Broadcast(ctx, size, 0); err != nil || size[0] == 0 {
		return nil, err
	}
	if world.Rank() != 0 {
		data = make([]byte, size[0])
	}
	if err := world.Broadcast(ctx, data, 0); err != nil {
		return nil, err
	}
	c, err := readCheckpoint(data)
	if err != nil {
		return nil, err
	}
	if c.epochs != o.epochs || c.shards != o.shards || o.seed != 0 && c.seed != o.seed {
		return nil, fmt.Errorf("the checkpoint in %s is of -epochs %d -shards %d -seed %d: go on with those, or with another folder",
			o.folder, c.epochs, c.shards, c.seed)
	}
	return c, nil
}

// readCheckpoint reads the content of a file.
func readCheckpoint(data []byte) (*checkpoint, error) {
	f, err := safetensors.New(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	c, m := new(checkpoint), f.Metadata()
	state, err := base64.StdEncoding.DecodeString(m["random"])
	if err != nil {
		return nil, err
	}
	if err := c.source.UnmarshalBinary(state); err != nil {
		return nil, err
	}
	if _, err := fmt.Sscan(m["seed"]+" "+m["step"]+" "+m["epochs"]+" "+m["shards"], &c.seed, &c.step, &c.epochs, &c.shards); err != nil {
		return nil, err
	}
	c.state = new(training.State)
	for i, size := range sizes() {
		for part, to := range []*[][]float32{&c.all, &c.state.Mean, &c.state.Square} {
			t, err := f.Tensor(tensorName(i, part))
			if err != nil {
				return nil, err
			}
			data := make([]float32, size)
			if err := t.Float32s(data); err != nil {
				return nil, err
			}
			*to = append(*to, data)
		}
	}
	return c, nil
}
