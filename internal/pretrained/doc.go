// Package pretrained reads folders in which models are published for the transformers library: config.json, weights in safetensors and
// tokenizer.json. [Open] presents one as a GGUF file with the names and layouts that llama.cpp's converter gives, so that whatever reads
// such files reads folders, too. Tensors are converted when they are read, and may be quantised then.
//
// A folder is taken for hostile: what its files claim is checked before anything is allocated, and what is not understood is an error.
package pretrained
