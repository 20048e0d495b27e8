// Package rope has the kernels of rotary position embeddings and their gradients.
package rope
