// Package llm generates text with language models from GGUF files, on every device of this module, in pure Go.
//
//	m, err := llm.Open("model.gguf")
//	w, err := m.Load(ctx, dev)
//	s, err := w.NewSession(ctx)
//	for token, err := range s.Generate(ctx, "The sea is", llm.WithMaxTokens(64)) {
//		fmt.Print(token.Text)
//	}
//
// A [Model] is what a file says, [Weights] are the model on a device, and a [Session] is one text with its cache of keys and values.
// [Session.Generate] continues a prompt, [Session.Chat] answers a conversation in the form that the model was trained on, by the chat
// template of its file. A [Scheduler] has the same methods and continues many texts at once. An [Embedder] makes vectors of texts.
//
// # Prompts
//
// Each call of Generate and Chat gives the whole text. What it has in common with the text before, the session does not compute again, so
// that a conversation that grows costs what is new of it.
//
// # Sampling
//
// The zero value of [Sampling] takes the most likely token. Its fields are applied in this order: penalties, TopK, TopP, MinP, Temperature.
// The same seed, prompt and device give the same text, as long as the same parts of it are computed together: a prompt whose beginning is
// known, or a text beside others, may round otherwise.
//
// # Errors
//
// Errors wrap those of package compute, quant and quant/gguf, and name the metadata, the tensor or the tag of the template that is wrong
// or not understood. A [TemplateError] says where in the chat template. Nothing is printed, and no file makes these functions panic.
//
// # Concurrency
//
// A [Model], [Weights], a [Scheduler] and an [Embedder] may be used by many goroutines, a [Session] by one at a time: a second call beside one under way is
// [compute.ErrInFlight]. Sessions of the same weights are independent and may run at the same time.
package llm
