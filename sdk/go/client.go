// Package toolbus runs agents of a toolbus suite, and offers them tools of this program.
//
// It does nothing that the suite does not confirm: each of its words is one of the contract, and what it adds is to send again what was
// not answered, and to take up streams where they broke.
package toolbus

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"

	"toolbus.dev/gen/go/toolbus/caller/v1/callerv1connect"
	"toolbus.dev/gen/go/toolbus/run/v1/runv1connect"
	"toolbus.dev/gen/go/toolbus/session/v1/sessionv1connect"
	"toolbus.dev/gen/go/toolbus/space/v1/spacev1connect"
	"toolbus.dev/gen/go/toolbus/tool/v1/toolv1connect"
)

// Options say where the suite is, and who asks. Their zero value takes TOOLBUS_URL and TOOLBUS_API_KEY.
type Options struct {
	// URL of the gateway; http://127.0.0.1:7480 where nothing says otherwise.
	URL string
	// APIKey is an API key or a JWT.
	APIKey string
	// Patience is for how long a suite that cannot be reached is tried again; 15 s unless given.
	Patience time.Duration
	// HTTPClient carries the requests; one that speaks HTTP/2, without TLS too, unless given.
	HTTPClient *http.Client
}

// Client is a suite, as a program outside uses it. It is safe for concurrent use.
type Client struct {
	patience time.Duration
	runs     runv1connect.RunServiceClient
	sessions sessionv1connect.SessionServiceClient
	callers  callerv1connect.CallerServiceClient
	calls    toolv1connect.ToolCallServiceClient
	spaces   spacev1connect.SpaceServiceClient
}

// New sends nothing before the first request.
func New(options Options) *Client {
	url := cmp.Or(options.URL, os.Getenv("TOOLBUS_URL"), "http://127.0.0.1:7480")
	key := strings.TrimSpace(cmp.Or(options.APIKey, os.Getenv("TOOLBUS_API_KEY"))) // the line of a file, as it was read
	carrier := options.HTTPClient
	if carrier == nil {
		carrier = carrierFor(url)
	}
	client := authorized{key: key, client: carrier}
	grpc := connect.WithGRPC()
	return &Client{
		patience: cmp.Or(options.Patience, 15*time.Second),
		runs:     runv1connect.NewRunServiceClient(client, url, grpc),
		sessions: sessionv1connect.NewSessionServiceClient(client, url, grpc),
		callers:  callerv1connect.NewCallerServiceClient(client, url, grpc),
		calls:    toolv1connect.NewToolCallServiceClient(client, url, grpc),
		spaces:   spacev1connect.NewSpaceServiceClient(client, url, grpc),
	}
}

type authorized struct {
	key    string
	client *http.Client
}

func (a authorized) Do(request *http.Request) (*http.Response, error) {
	if a.key != "" {
		request.Header.Set("Authorization", "Bearer "+a.key)
	}
	return a.client.Do(request)
}

// carrierFor notices in time that a connection is cut, which sends no end.
func carrierFor(url string) *http.Client {
	protocols := new(http.Protocols)
	if strings.HasPrefix(url, "https:") {
		protocols.SetHTTP2(true)
	} else {
		protocols.SetUnencryptedHTTP2(true)
	}
	liveness := &http.HTTP2Config{SendPingTimeout: 2 * time.Second, PingTimeout: 2 * time.Second}
	return &http.Client{Transport: &http.Transport{Protocols: protocols, HTTP2: liveness}}
}

// randomName is one that nobody else has.
func randomName() string { return strings.ToLower(rand.Text()) }
