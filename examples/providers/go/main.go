// A provider of tools in Go: Connect and gRPC on one port, with the generated stubs. `go run . [port]`
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"
	providerv1 "toolbus.dev/gen/go/toolbus/provider/v1"
	"toolbus.dev/gen/go/toolbus/provider/v1/providerv1connect"
	toolv1 "toolbus.dev/gen/go/toolbus/tool/v1"
)

var tools = []*toolv1.Tool{{
	Name:            "count_words",
	Description:     "Counts the words of a text.",
	InputSchemaJson: `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`,
	ExecutionType:   toolv1.ExecutionType_EXECUTION_TYPE_CUSTOM,
	Effect:          toolv1.Effect_EFFECT_PURE,
}, {
	Name:            "wait",
	Description:     "Waits so many seconds, and tells how many are over.",
	InputSchemaJson: `{"type":"object","properties":{"seconds":{"type":"number","minimum":0}},"required":["seconds"]}`,
	ExecutionType:   toolv1.ExecutionType_EXECUTION_TYPE_CUSTOM,
}}

type provider struct {
	providerv1connect.UnimplementedToolProviderServiceHandler
}

func offer(sources []*toolv1.Source) (offered []*providerv1.OfferedTool, statuses []*toolv1.SourceStatus) {
	for _, source := range sources {
		statuses = append(statuses, &toolv1.SourceStatus{Source: source.GetName(), Available: true})
		for _, tool := range tools {
			offered = append(offered, &providerv1.OfferedTool{Source: source.GetName(), Tool: tool})
		}
	}
	return offered, statuses
}

func (provider) GetProvidedTools(_ context.Context, request *connect.Request[providerv1.GetProvidedToolsRequest]) (*connect.Response[providerv1.GetProvidedToolsResponse], error) {
	offered, statuses := offer(request.Msg.GetSources())
	return connect.NewResponse(&providerv1.GetProvidedToolsResponse{Tools: offered, Sources: statuses}), nil
}

func (provider) WatchProvidedTools(ctx context.Context, request *connect.Request[providerv1.WatchProvidedToolsRequest], stream *connect.ServerStream[providerv1.WatchProvidedToolsResponse]) error {
	offered, statuses := offer(request.Msg.GetSources())
	if err := stream.Send(&providerv1.WatchProvidedToolsResponse{Tools: offered, Sources: statuses}); err != nil {
		return err
	}
	<-ctx.Done() // nothing changes for as long as somebody watches
	return ctx.Err()
}

func (provider) ExecuteTool(ctx context.Context, request *connect.Request[providerv1.ExecuteToolRequest], stream *connect.ServerStream[providerv1.ExecuteToolResponse]) error {
	var arguments struct {
		Text    string
		Seconds float64
	}
	if err := json.Unmarshal([]byte(request.Msg.GetArgumentsJson()), &arguments); err != nil {
		return connect.NewError(connect.CodeInvalidArgument, err)
	}
	output := map[string]any{"words": len(strings.Fields(arguments.Text))}
	switch {
	case request.Msg.GetTool() == "wait":
		for started := time.Now(); time.Since(started).Seconds() < arguments.Seconds; time.Sleep(100 * time.Millisecond) {
			progress := &toolv1.ToolProgress{Progress: time.Since(started).Seconds(), Total: arguments.Seconds}
			if err := stream.Send(&providerv1.ExecuteToolResponse{Event: &providerv1.ExecuteToolResponse_Progress{Progress: progress}}); err != nil || ctx.Err() != nil {
				log.Print("a call was canceled") // it ends here
				return ctx.Err()
			}
		}
		output = map[string]any{"waited": arguments.Seconds}
	case arguments.Text == "": // a tool's failure is a result: the model reads it and tries something else
		output = map[string]any{"error": "there is no text to count"}
	}
	answer, _ := json.Marshal(output) // a map of plain values
	result := &providerv1.ProvidedResult{OutputJson: string(answer), IsError: output["error"] != nil}
	return stream.Send(&providerv1.ExecuteToolResponse{Event: &providerv1.ExecuteToolResponse_Result{Result: result}})
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+append(os.Args, "7492")[1])
	if err != nil {
		log.Fatal(err)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	_, handler := providerv1connect.NewToolProviderServiceHandler(provider{})
	fmt.Printf("ready at http://%s\n", listener.Addr())
	log.Fatal((&http.Server{Handler: handler, Protocols: protocols}).Serve(listener))
}
