//go:build !js

package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/wavelane/wavelane/llm"
)

// limits of what requests may ask for.
type limits struct {
	tokens  int   // of an answer; 0 for as many as there is room for
	body    int64 // bytes of a request
	choices int   // texts of a request
	write   time.Duration
}

// server answers requests with one model.
type server struct {
	http.Handler
	scheduler  *llm.Scheduler // nil for a model that makes embeddings alone
	embeddings *embeddings
	model      *llm.Model
	name       string
	keys       [][sha256.Size]byte // none lets everybody in
	limits     limits
	log        *slog.Logger
	metrics    metrics
	began      time.Time
	stopping   atomic.Bool
}

func newServer(scheduler *llm.Scheduler, e *embeddings, name string, keys []string, l limits, log *slog.Logger) *server {
	s := &server{scheduler: scheduler, embeddings: e, model: e.weights.Model(), name: name, limits: l, log: log, began: time.Now(), metrics: newMetrics()}
	for _, k := range keys {
		s.keys = append(s.keys, sha256.Sum256([]byte(k)))
	}
	routes := http.NewServeMux()
	routes.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, &apiError{status: http.StatusNotFound, Message: "there is no " + r.URL.Path, Code: "not_found"})
	})
	s.route(routes, http.MethodGet, "/health", s.health, false)
	s.route(routes, http.MethodGet, "/metrics", s.writeMetrics, true)
	s.route(routes, http.MethodGet, "/v1/models", s.models, true)
	s.route(routes, http.MethodGet, "/v1/models/{model}", s.oneModel, true)
	chat, complete := s.chat, s.complete
	if scheduler == nil {
		chat = func(http.ResponseWriter, *http.Request) error { return errEncoder }
		complete = chat
	}
	s.route(routes, http.MethodPost, "/v1/chat/completions", chat, true)
	s.route(routes, http.MethodPost, "/v1/completions", complete, true)
	s.route(routes, http.MethodPost, "/v1/embeddings", s.embed, true)
	// A page of another site must not use the server of who looks at it. Beside this, what a page may post without being asked is no JSON.
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeError(w, &apiError{status: http.StatusForbidden, Message: "requests from pages of other sites are not answered", Code: "cross_origin"})
	}))
	s.Handler = guard.Handler(routes)
	return s
}

// route adds a path. What it writes is counted, an error that it returns is written.
func (s *server) route(routes *http.ServeMux, method, path string, f func(w http.ResponseWriter, r *http.Request) error, locked bool) {
	routes.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		c := &counted{ResponseWriter: w, status: http.StatusOK}
		defer func() { s.metrics.count(path, c.status) }()
		var err error
		switch {
		case r.Method != method && !(method == http.MethodGet && r.Method == http.MethodHead):
			c.Header().Set("Allow", method)
			err = &apiError{status: http.StatusMethodNotAllowed, Message: "need " + method + ", not " + r.Method, Code: "method_not_allowed"}
		case locked && !s.allowed(r):
			c.Header().Set("WWW-Authenticate", "Bearer")
			err = &apiError{status: http.StatusUnauthorized, Message: "need an API key: Authorization: Bearer KEY", Code: "invalid_api_key"}
		default:
			err = f(c, r)
		}
		switch {
		case err == nil || c.wrote: // after the beginning of an answer nothing can be said any more
		case errors.Is(err, context.Canceled) && !s.stopping.Load():
			c.status = clientGone
		default:
			writeError(c, asError(err))
		}
	})
}

// clientGone is the status that requests are counted under whose client did not wait for the answer.
const clientGone = 499

// counted remembers the status, and whether the answer has begun.
type counted struct {
	http.ResponseWriter
	status int
	wrote  bool
}

func (c *counted) WriteHeader(status int) {
	c.status, c.wrote = status, true
	c.ResponseWriter.WriteHeader(status)
}

func (c *counted) Write(p []byte) (int, error) {
	c.wrote = true
	return c.ResponseWriter.Write(p)
}

func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// allowed compares the key with all there are, in a time that says nothing about them.
func (s *server) allowed(r *http.Request) bool {
	if len(s.keys) == 0 {
		return true
	}
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(key)))
	found := 0
	for i := range s.keys {
		found |= subtle.ConstantTimeCompare(sum[:], s.keys[i][:])
	}
	return found == 1 && strings.EqualFold(scheme, "Bearer")
}

func (s *server) health(w http.ResponseWriter, _ *http.Request) error {
	if s.stopping.Load() {
		return errStopping
	}
	return writeJSON(w, map[string]string{"status": "ok"})
}

func (s *server) info() map[string]any {
	context := s.model.Info().Context
	if s.scheduler != nil {
		context = s.scheduler.Context()
	}
	return map[string]any{"id": s.name, "object": "model", "created": s.began.Unix(), "owned_by": "wavelane", "context_length": context}
}

func (s *server) models(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, map[string]any{"object": "list", "data": []any{s.info()}})
}

func (s *server) oneModel(w http.ResponseWriter, r *http.Request) error {
	if name := r.PathValue("model"); name != s.name {
		return unknownModel(name)
	}
	return writeJSON(w, s.info())
}

// decode reads the body of a request, which must be JSON with the fields of into and no others.
func (s *server) decode(w http.ResponseWriter, r *http.Request, into any) error {
	if s.stopping.Load() {
		return errStopping
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &apiError{status: http.StatusUnsupportedMediaType, Message: "need Content-Type: application/json", Code: "unsupported_media_type"}
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, s.limits.body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return jsonError(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return invalid("", "there is something after the JSON")
	}
	return nil
}

func writeJSON(w http.ResponseWriter, x any) error {
	text, err := json.Marshal(x)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(append(text, '\n'))
	return err
}
