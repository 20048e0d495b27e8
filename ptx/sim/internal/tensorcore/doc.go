// Package tensorcore is the arithmetic and the data layouts of tensor cores: products of small matrices as mma, wmma and wgmma round
// them, which element of a matrix lies in which register of which lane, the shapes that there are, and matrix descriptors of wgmma. It
// knows nothing of warps or memory.
package tensorcore
