package toolbus

import (
	"errors"
	"net/http"
	"testing"
	"time"
)

type carrier func(*http.Request) (*http.Response, error)

func (c carrier) RoundTrip(request *http.Request) (*http.Response, error) { return c(request) }

func TestAKeyThatEndsItsLineIsSentWithoutItsEnd(t *testing.T) {
	sent := ""
	client := &http.Client{Transport: carrier(func(request *http.Request) (*http.Response, error) {
		sent = request.Header.Get("Authorization")
		return nil, errors.New("seen")
	})}
	toolbus := New(Options{APIKey: "key\n", Patience: time.Millisecond, HTTPClient: client})
	if _, err := toolbus.Run(t.Context(), "clerk", "hello", RunOptions{}); err == nil || sent != "Bearer key" {
		t.Errorf("sent %q, and got %v", sent, err)
	}
}
