package toolbus

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	callerv1 "toolbus.dev/gen/go/toolbus/caller/v1"
	runv1 "toolbus.dev/gen/go/toolbus/run/v1"
	sessionv1 "toolbus.dev/gen/go/toolbus/session/v1"
)

// Session is a conversation with an agent, which goes on from run to run.
type Session struct {
	ID       string
	Agent    string
	client   *Client
	requests *requests
}

// OpenSession opens one of that id, or of one that nobody else has where it is empty. One which this key has opened before is taken up again.
func (c *Client) OpenSession(ctx context.Context, agent, id string) (*Session, error) {
	if id == "" {
		id = randomName()
	}
	_, err := send(ctx, c.patience, c.sessions.CreateSession, &sessionv1.CreateSessionRequest{SessionId: id, Agent: agent})
	if err != nil {
		return nil, err
	}
	return &Session{ID: id, Agent: agent, client: c, requests: &requests{
		client: c, sessionID: id, offered: map[string]Function{}, running: map[string]context.CancelFunc{},
	}}, nil
}

// Run starts a run in the session.
func (s *Session) Run(ctx context.Context, words string, options RunOptions) (*Run, error) {
	return s.client.start(ctx, &runv1.CreateRunRequest{SessionId: s.ID}, words, options)
}

// Close ends the session, and what is offered in it.
func (s *Session) Close(ctx context.Context) error {
	_, err := send(ctx, s.client.patience, s.client.sessions.CloseSession, &sessionv1.CloseSessionRequest{SessionId: s.ID})
	return err
}

// Attachment is tools of this program in a session, offered until it is closed.
type Attachment struct {
	*Stream
	// Names are those that the agent sees.
	Names []string
}

// reconnectGrace is how long requests wait for this program when its connection breaks.
const reconnectGrace = 10 * time.Second

// Offer offers the agent tools of this program, as <callerID>_<name>, in place of those that were offered before. Each request is executed once, however often the connection breaks.
func (s *Session) Offer(ctx context.Context, callerID string, tools ...Tool) (*Attachment, error) {
	declaration := &callerv1.CallerDeclaration{CallerId: callerID}
	for _, tool := range tools {
		declaration.Tools = append(declaration.Tools, &callerv1.CallerTool{
			Name: tool.Name, Description: tool.Description, InputSchemaJson: string(tool.InputSchema),
		})
	}
	s.requests.mutex.Lock()
	maps.Copy(s.requests.offered, byName(tools))
	s.requests.mutex.Unlock()
	declaring := &callerv1.DeclareToolsRequest{SessionId: s.ID, Declaration: declaration}
	declared, err := send(ctx, s.client.patience, s.client.callers.DeclareTools, declaring)
	if err != nil {
		return nil, err
	}
	watching := &callerv1.WatchCallerRequest{SessionId: s.ID, StreamId: randomName(), ReconnectGrace: durationpb.New(reconnectGrace)}
	open := func(ctx context.Context) iter.Seq2[*callerv1.WatchCallerResponse, error] {
		return watched(ctx, s.client.callers.WatchCaller, watching)
	}
	stream := keepStream(ctx, open, s.requests.take)
	stream.endsWellBy = "SESSION_CLOSED"
	if err := stream.whenStanding(ctx); err != nil {
		return nil, err
	}
	return &Attachment{Stream: stream, Names: declared.GetNames()}, nil
}

func (r *requests) function(name string) Function {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.offered[name]
}

// maxOver is more requests than are answered while one that was sent again is on its way.
const maxOver = 1_000

// requests are those to this program in a session: each of its streams gets those for all that was offered, and those that another one
// was executing.
type requests struct {
	client    *Client
	sessionID string

	mutex   sync.Mutex
	offered map[string]Function
	running map[string]context.CancelFunc
	over    []string // the last maxOver
}

func (r *requests) take(ctx context.Context, message *callerv1.WatchCallerResponse) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if canceled := message.GetCanceled(); canceled != nil {
		if cancel, isRunning := r.running[canceled.GetRequestId()]; isRunning {
			cancel()
		}
		return
	}
	request := message.GetRequest()
	if request == nil || r.running[request.GetRequestId()] != nil {
		return
	}
	if slices.Contains(r.over, request.GetRequestId()) { // sent again when the stream broke before its answer was there
		return
	}
	executing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.running[request.GetRequestId()] = cancel
	go r.execute(executing, request)
}

func (r *requests) execute(ctx context.Context, request *callerv1.CallerToolRequest) {
	defer func() {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.running[request.GetRequestId()]()
		delete(r.running, request.GetRequestId())
		r.over = append(r.over, request.GetRequestId())
		if len(r.over) > maxOver {
			r.over = slices.Delete(r.over, 0, 1)
		}
	}()
	answered := outcomeOf(ctx, r.function(request.GetTool()), request.GetArgumentsJson())
	_ = answered.answer(func(result outcome, submissionID string) error { // nobody was told: the request ends in its time
		answer := &callerv1.RespondRequest{SessionId: r.sessionID, RequestId: request.GetRequestId(), SubmissionId: submissionID}
		if result.fault != "" {
			answer.Outcome = &callerv1.RespondRequest_Error{Error: result.fault}
		} else {
			answer.Outcome = &callerv1.RespondRequest_ResultJson{ResultJson: result.resultJSON}
		}
		_, err := send(ctx, r.client.patience, r.client.callers.Respond, answer)
		return err
	})
}
