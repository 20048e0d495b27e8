// Package jinja renders the chat templates of model files: the part of Jinja that such templates are written in, as Hugging Face's library
// sets it up (trim_blocks, lstrip_blocks, loop controls, the tags of generation).
//
// A template comes from a file that nobody has read. It can do nothing but make text from its variables, and what it may spend is
// bounded: nesting, steps, and bytes of all texts that it makes. What is not understood is an [Error] that names it. Nothing is escaped
// for HTML: safe is a filter that changes nothing.
//
// Source: the Jinja documentation, "Template Designer Documentation", https://jinja.palletsprojects.com.
package jinja

import "fmt"

// Error says what is wrong in a template, and where.
type Error struct {
	Line    int    // from 1
	Message string // says what is not understood, or what went wrong
	Raised  bool   // by the template itself, with raise_exception
}

func (e *Error) Error() string {
	if e.Raised {
		return e.Message
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Message)
}

// Limits of a template.
const (
	maxSource = 1 << 20  // bytes of the template
	maxDepth  = 200      // nesting of statements and expressions, and of calls of macros
	maxSteps  = 2 << 20  // nodes evaluated
	maxMade   = 64 << 20 // bytes of all values made while rendering
)
