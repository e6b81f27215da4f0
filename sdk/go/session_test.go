package toolbus

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	callerv1 "toolbus.dev/gen/go/toolbus/caller/v1"
	"toolbus.dev/gen/go/toolbus/caller/v1/callerv1connect"
	sessionv1 "toolbus.dev/gen/go/toolbus/session/v1"
	"toolbus.dev/gen/go/toolbus/session/v1/sessionv1connect"
)

// sessionSuite sends the first stream of a program one request, and the second one the same, once it is moved.
type sessionSuite struct {
	sessionv1connect.UnimplementedSessionServiceHandler
	callerv1connect.UnimplementedCallerServiceHandler
	streams   atomic.Int32
	moving    chan struct{}
	responses chan string
}

func (s *sessionSuite) CreateSession(context.Context, *connect.Request[sessionv1.CreateSessionRequest]) (*connect.Response[sessionv1.CreateSessionResponse], error) {
	return connect.NewResponse(&sessionv1.CreateSessionResponse{}), nil
}

func (s *sessionSuite) DeclareTools(context.Context, *connect.Request[callerv1.DeclareToolsRequest]) (*connect.Response[callerv1.DeclareToolsResponse], error) {
	return connect.NewResponse(&callerv1.DeclareToolsResponse{}), nil
}

func (s *sessionSuite) Respond(_ context.Context, request *connect.Request[callerv1.RespondRequest]) (*connect.Response[callerv1.RespondResponse], error) {
	s.responses <- request.Msg.GetRequestId()
	return connect.NewResponse(&callerv1.RespondResponse{}), nil
}

func (s *sessionSuite) WatchCaller(ctx context.Context, _ *connect.Request[callerv1.WatchCallerRequest], stream *connect.ServerStream[callerv1.WatchCallerResponse]) error {
	isFirst := s.streams.Add(1) == 1
	send := func(request *callerv1.CallerToolRequest) {
		_ = stream.Send(&callerv1.WatchCallerResponse{Event: &callerv1.WatchCallerResponse_Request{Request: request}})
	}
	_ = stream.Send(&callerv1.WatchCallerResponse{Event: &callerv1.WatchCallerResponse_Attached{Attached: &callerv1.CallerAttached{}}})
	if !isFirst {
		<-s.moving
	}
	send(&callerv1.CallerToolRequest{RequestId: "greeting", Tool: "greet"})
	if !isFirst {
		send(&callerv1.CallerToolRequest{RequestId: "finding", Tool: "find"})
	}
	<-ctx.Done()
	return nil
}

func TestARequestThatAnotherStreamTakesOverWhileItIsExecutedIsNotExecutedAgain(t *testing.T) {
	suite := &sessionSuite{moving: make(chan struct{}), responses: make(chan string, 3)}
	mux := http.NewServeMux()
	mux.Handle(sessionv1connect.NewSessionServiceHandler(suite))
	mux.Handle(callerv1connect.NewCallerServiceHandler(suite))
	server := httptest.NewUnstartedServer(mux)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()

	session, err := New(Options{URL: server.URL}).OpenSession(t.Context(), "clerk", "")
	if err != nil {
		t.Fatal(err)
	}
	begun, ending := make(chan struct{}, 2), make(chan struct{})
	greet := Tool{Name: "greet", Run: func(context.Context, json.RawMessage) (any, error) {
		begun <- struct{}{}
		<-ending
		return nil, nil
	}}
	find := Tool{Name: "find", Run: func(context.Context, json.RawMessage) (any, error) { return nil, nil }}
	first, err := session.Offer(t.Context(), "desk", greet)
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	second, err := session.Offer(t.Context(), "desk", greet, find)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	first.Close()
	close(suite.moving)
	if answered := <-suite.responses; answered != "finding" {
		t.Errorf("answered %q first", answered)
	}
	close(ending)
	if answered := <-suite.responses; answered != "greeting" {
		t.Errorf("answered %q at last", answered)
	}
	if again := len(begun); again > 0 {
		t.Errorf("executed %d times more", again)
	}
}
