// Opens a session, offers it a tool of this program, and lets an agent call it. On the way its stream is lost once.
//
// Run it with `go run . A-17`, the suite's address in TOOLBUS_URL and a key in TOOLBUS_API_KEY.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	callerv1 "toolbus.dev/gen/go/toolbus/caller/v1"
	"toolbus.dev/gen/go/toolbus/caller/v1/callerv1connect"
	contentv1 "toolbus.dev/gen/go/toolbus/content/v1"
	runv1 "toolbus.dev/gen/go/toolbus/run/v1"
	"toolbus.dev/gen/go/toolbus/run/v1/runv1connect"
	sessionv1 "toolbus.dev/gen/go/toolbus/session/v1"
	"toolbus.dev/gen/go/toolbus/session/v1/sessionv1connect"
)

const schema = `{"type":"object","properties":{"order":{"type":"string"}},"required":["order"]}`

func main() {
	order := "A-17"
	if len(os.Args) > 1 {
		order = os.Args[1]
	}
	if err := run(context.Background(), order); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, order string) error {
	url := cmp.Or(os.Getenv("TOOLBUS_URL"), "http://127.0.0.1:7480")
	client := authorized{key: os.Getenv("TOOLBUS_API_KEY"), client: plaintextHTTP2()}

	sessions := sessionv1connect.NewSessionServiceClient(client, url, connect.WithGRPC())
	opened, err := sessions.CreateSession(ctx, connect.NewRequest(&sessionv1.CreateSessionRequest{Agent: "clerk"}))
	if err != nil {
		return fmt.Errorf("create session: %w", err)
	}
	desk := &desk{
		callers:   callerv1connect.NewCallerServiceClient(client, url, connect.WithGRPC()),
		sessionID: opened.Msg.GetSession().GetId(),
		answers:   map[string]string{},
	}
	if err := desk.declare(ctx); err != nil {
		return fmt.Errorf("declare: %w", err)
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- desk.serve(serving) }()

	ended, err := desk.ask(ctx, runv1connect.NewRunServiceClient(client, url, connect.WithGRPC()), order)
	stop()
	if err := errors.Join(err, <-served); err != nil {
		return err
	}
	fmt.Printf("the run ended: %s: %s\n", ended.GetState(), ended.GetOutputText())
	isRight := ended.GetState() == runv1.RunState_RUN_STATE_COMPLETED && strings.Contains(ended.GetOutputText(), order+" is on its way")
	if !desk.wasLost || !isRight {
		return errors.New("the agent was not told where the order is")
	}
	return nil
}

// desk is the tools of this program in one session.
type desk struct {
	callers   callerv1connect.CallerServiceClient
	sessionID string
	answers   map[string]string
	wasLost   bool
}

func (d *desk) declare(ctx context.Context) error {
	tool := &callerv1.CallerTool{Name: "find_order", Description: "Tells where an order is", InputSchemaJson: schema}
	declaration := &callerv1.CallerDeclaration{CallerId: "desk", Tools: []*callerv1.CallerTool{tool}}
	_, err := d.callers.DeclareTools(ctx, connect.NewRequest(&callerv1.DeclareToolsRequest{SessionId: d.sessionID, Declaration: declaration}))
	return err
}

// serve attaches again whenever the stream is lost, under the same name, so that what is open comes again.
func (d *desk) serve(ctx context.Context) error {
	attach := &callerv1.WatchCallerRequest{
		SessionId: d.sessionID, StreamId: rand.Text(), ReconnectGrace: durationpb.New(10 * time.Second),
	}
	for ctx.Err() == nil {
		err := d.watch(ctx, attach)
		switch code := connect.CodeOf(err); {
		case ctx.Err() != nil:
			return nil
		case code != connect.CodeCanceled && code != connect.CodeUnavailable && code != connect.CodeAborted:
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

func (d *desk) watch(ctx context.Context, attach *callerv1.WatchCallerRequest) error {
	ctx, lose := context.WithCancel(ctx)
	defer lose()
	stream, err := d.callers.WatchCaller(ctx, connect.NewRequest(attach))
	if err != nil {
		return err
	}
	defer stream.Close()
	for stream.Receive() {
		fmt.Printf("%T\n", stream.Msg().GetEvent())
		request := stream.Msg().GetRequest()
		switch {
		case request == nil:
		case !d.wasLost:
			d.wasLost = true
			lose() // stands for a network that fails here
		default:
			if err := d.answer(ctx, request); err != nil {
				return err
			}
		}
	}
	return stream.Err()
}

// answer does a request once, by its id: the same one comes again when the stream was lost before it was answered.
func (d *desk) answer(ctx context.Context, request *callerv1.CallerToolRequest) error {
	id := request.GetRequestId()
	if _, isDone := d.answers[id]; !isDone {
		found := map[string]any{}
		if err := json.Unmarshal([]byte(request.GetArgumentsJson()), &found); err != nil {
			return err
		}
		found["state"] = "on its way"
		result, err := json.Marshal(found)
		if err != nil {
			return err
		}
		d.answers[id] = string(result)
	}
	_, err := d.callers.Respond(ctx, connect.NewRequest(&callerv1.RespondRequest{
		SessionId: d.sessionID, RequestId: id, SubmissionId: id,
		Outcome: &callerv1.RespondRequest_ResultJson{ResultJson: d.answers[id]},
	}))
	return err
}

func (d *desk) ask(ctx context.Context, runs runv1connect.RunServiceClient, order string) (*runv1.RunEnded, error) {
	content := []*contentv1.ContentPart{{Part: &contentv1.ContentPart_Text{Text: order}}}
	message := &runv1.InputMessage{Role: runv1.Role_ROLE_USER, Content: content}
	input := []*runv1.InputItem{{Item: &runv1.InputItem_Message{Message: message}}}
	created, err := runs.CreateRun(ctx, connect.NewRequest(&runv1.CreateRunRequest{SessionId: d.sessionID, Agent: "clerk", Input: input}))
	if err != nil {
		return nil, fmt.Errorf("create run: %w", err)
	}
	whole := &runv1.WatchRunRequest{RunId: created.Msg.GetRun().GetId(), FromSequence: new(uint64)} // 0: all events
	updates, err := runs.WatchRun(ctx, connect.NewRequest(whole))
	if err != nil {
		return nil, fmt.Errorf("watch run: %w", err)
	}
	defer updates.Close()
	for updates.Receive() {
		if ended := updates.Msg().GetEvent().GetEnded(); ended != nil {
			return ended, nil
		}
	}
	return nil, cmp.Or(updates.Err(), errors.New("the stream ended before the run"))
}

// authorized sends the key with each request.
type authorized struct {
	key    string
	client *http.Client
}

func (a authorized) Do(request *http.Request) (*http.Response, error) {
	request.Header.Set("Authorization", "Bearer "+a.key)
	return a.client.Do(request)
}

// plaintextHTTP2 speaks HTTP/2 without TLS, as the gateway does on one machine.
func plaintextHTTP2() *http.Client {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: &http.Transport{Protocols: protocols}}
}
