// Lists an agent's tools, calls one, and watches a run: gRPC through the gateway, with the generated stubs.
//
// Run it with `go run . "some text"`, the suite's address in TOOLBUS_URL and a key, if the gateway wants one, in
// TOOLBUS_API_KEY.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"

	"connectrpc.com/connect"

	contentv1 "toolbus.dev/gen/go/toolbus/content/v1"
	runv1 "toolbus.dev/gen/go/toolbus/run/v1"
	"toolbus.dev/gen/go/toolbus/run/v1/runv1connect"
	sessionv1 "toolbus.dev/gen/go/toolbus/session/v1"
	"toolbus.dev/gen/go/toolbus/session/v1/sessionv1connect"
	toolv1 "toolbus.dev/gen/go/toolbus/tool/v1"
	"toolbus.dev/gen/go/toolbus/tool/v1/toolv1connect"
)

func main() {
	text := "hello from Go"
	if len(os.Args) > 1 {
		text = os.Args[1]
	}
	if err := run(context.Background(), text); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, text string) error {
	url := cmp.Or(os.Getenv("TOOLBUS_URL"), "http://127.0.0.1:7480")
	options := connect.WithClientOptions(connect.WithGRPC(), connect.WithInterceptors(authorize(os.Getenv("TOOLBUS_API_KEY"))))

	tools := toolv1connect.NewToolServiceClient(plaintextHTTP2(), url, options)
	listed, err := tools.ListTools(ctx, connect.NewRequest(&toolv1.ListToolsRequest{Scope: &toolv1.ListToolsRequest_Agent{Agent: "demo"}}))
	if err != nil {
		return fmt.Errorf("list tools: %w", err)
	}
	for _, entry := range listed.Msg.GetTools() {
		summary, _, _ := strings.Cut(entry.GetTool().GetDescription(), "\n")
		fmt.Printf("%-32s %s\n", entry.GetModelName(), summary)
	}

	sessions := sessionv1connect.NewSessionServiceClient(plaintextHTTP2(), url, options)
	opened, err := sessions.CreateSession(ctx, connect.NewRequest(&sessionv1.CreateSessionRequest{Agent: "demo"}))
	if err != nil {
		return fmt.Errorf("create session: %w", err)
	}
	answer, err := call(ctx, tools, opened.Msg.GetSession().GetId(), text)
	if err != nil {
		return fmt.Errorf("call qr: %w", err)
	}
	fmt.Println("qr answered:", answer)

	runs := runv1connect.NewRunServiceClient(plaintextHTTP2(), url, options)
	ended, err := watch(ctx, runs, text)
	if err != nil {
		return fmt.Errorf("watch a run: %w", err)
	}
	fmt.Printf("the run ended: %s: %s\n", ended.GetState(), ended.GetOutputText())
	if ended.GetState() != runv1.RunState_RUN_STATE_COMPLETED || !strings.Contains(ended.GetOutputText(), text) {
		return fmt.Errorf("the run did not complete with %q", text)
	}
	return nil
}

func call(ctx context.Context, tools toolv1connect.ToolServiceClient, sessionID, text string) (string, error) {
	arguments, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		return "", err
	}
	request := &toolv1.CallToolRequest{SessionId: sessionID, Name: "qr", ArgumentsJson: string(arguments)}
	events, err := tools.CallTool(ctx, connect.NewRequest(request))
	if err != nil {
		return "", err
	}
	defer events.Close()
	for events.Receive() {
		if result := events.Msg().GetResult(); result != nil {
			var output struct{ Text string }
			err := json.Unmarshal([]byte(result.GetOutputJson()), &output)
			return output.Text, err
		}
	}
	return "", events.Err()
}

func watch(ctx context.Context, runs runv1connect.RunServiceClient, text string) (*runv1.RunEnded, error) {
	content := []*contentv1.ContentPart{{Part: &contentv1.ContentPart_Text{Text: text}}}
	message := &runv1.InputMessage{Role: runv1.Role_ROLE_USER, Content: content}
	input := []*runv1.InputItem{{Item: &runv1.InputItem_Message{Message: message}}}
	created, err := runs.CreateRun(ctx, connect.NewRequest(&runv1.CreateRunRequest{Agent: "demo", Input: input}))
	if err != nil {
		return nil, err
	}
	request := &runv1.WatchRunRequest{RunId: created.Msg.GetRun().GetId(), FromSequence: new(uint64)} // 0: all events
	updates, err := runs.WatchRun(ctx, connect.NewRequest(request))
	if err != nil {
		return nil, err
	}
	defer updates.Close()
	for updates.Receive() {
		event := updates.Msg().GetEvent()
		fmt.Printf("%3d %T\n", event.GetSequence(), event.GetEvent())
		if ended := event.GetEnded(); ended != nil {
			return ended, nil
		}
	}
	return nil, cmp.Or(updates.Err(), fmt.Errorf("the stream ended before the run"))
}

// plaintextHTTP2 speaks HTTP/2 without TLS, as the gateway does on one machine.
func plaintextHTTP2() *http.Client {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: &http.Transport{Protocols: protocols}}
}

type keyInterceptor struct{ key string }

func authorize(key string) connect.Interceptor { return keyInterceptor{key} }

func (i keyInterceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		i.write(request.Header())
		return next(ctx, request)
	}
}

func (i keyInterceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		stream := next(ctx, spec)
		i.write(stream.RequestHeader())
		return stream
	}
}

func (i keyInterceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

func (i keyInterceptor) write(header http.Header) {
	if i.key != "" {
		header.Set("Authorization", "Bearer "+i.key)
	}
}
