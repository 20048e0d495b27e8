//go:build !js

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/llm"
	"github.com/wavelane/wavelane/quant/gguf"
)

// apiError is an error as the API writes it.
type apiError struct {
	status  int
	Message string
	Param   string // field of the request, if it is about one
	Code    string
}

func (e *apiError) Error() string { return e.Message }

// invalid is an error in a field of the request.
func invalid(param, format string, args ...any) error {
	return &apiError{status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Param: param, Code: "invalid_value"}
}

// unsupported is something that the API has and this server has not.
func unsupported(param string) error {
	return &apiError{status: http.StatusBadRequest, Message: param + " is not supported here", Param: param, Code: "unsupported_parameter"}
}

func unknownModel(name string) error {
	return &apiError{status: http.StatusNotFound, Message: fmt.Sprintf("there is no model %q: see /v1/models", name), Param: "model", Code: "model_not_found"}
}

var errEncoder = &apiError{status: http.StatusBadRequest, Message: "the model does not continue texts: see /v1/embeddings", Param: "model", Code: "unsupported_model"}

var errStopping = &apiError{status: http.StatusServiceUnavailable, Message: "the server is stopping", Code: "stopping"}

// asError says what an error is in the API.
func asError(err error) *apiError {
	var known *apiError
	var template *llm.TemplateError
	e := &apiError{status: http.StatusBadRequest, Message: err.Error(), Code: "invalid_value"}
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, llm.ErrBusy):
		e.status, e.Message, e.Code = http.StatusTooManyRequests, "too many requests wait: try again later", "rate_limit_exceeded"
	case errors.Is(err, compute.ErrClosed), errors.Is(err, context.Canceled):
		return errStopping
	case errors.As(err, &template):
		e.Param, e.Code = "messages", "invalid_messages"
	case errors.Is(err, gguf.ErrMissing):
		e.Message, e.Param, e.Code = "the model has no chat template: see /v1/completions", "messages", "no_chat_template"
	case errors.Is(err, compute.ErrTooLarge):
		e.Code = "context_length_exceeded"
	case !errors.Is(err, compute.ErrArgument):
		e.status, e.Code = http.StatusInternalServerError, "internal_error"
	}
	return e
}

// jsonError is an error of the body of a request.
func jsonError(err error) error {
	var known *apiError
	var kind *json.UnmarshalTypeError
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &large):
		return &apiError{status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("the request is larger than %d bytes", large.Limit), Code: "request_too_large"}
	case errors.As(err, &kind):
		field := strings.TrimPrefix(kind.Field, "common.") // which is embedded
		return &apiError{status: http.StatusBadRequest, Message: fmt.Sprintf("%q must not be a JSON %s", field, kind.Value), Param: field, Code: "invalid_type"}
	}
	return &apiError{status: http.StatusBadRequest, Message: "the body is not the JSON that is needed: " + err.Error(), Code: "invalid_json"}
}

// body is the JSON of an error.
func (e *apiError) body() map[string]any {
	kind := "invalid_request_error"
	switch {
	case e.status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case e.status >= http.StatusInternalServerError:
		kind = "server_error"
	}
	var param any
	if e.Param != "" {
		param = e.Param
	}
	return map[string]any{"error": map[string]any{"message": e.Message, "type": kind, "param": param, "code": e.Code}}
}

func writeError(w http.ResponseWriter, e *apiError) {
	if e.status == http.StatusTooManyRequests || e.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	text, _ := json.Marshal(e.body()) // strings alone
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.status)
	_, _ = w.Write(append(text, '\n'))
}
