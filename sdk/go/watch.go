package toolbus

import (
	"context"
	"iter"
	"log"
	"maps"
	"slices"
	"strings"
	"sync"

	toolv1 "toolbus.dev/gen/go/toolbus/tool/v1"
)

// WatchOptions of a watch of external tools.
type WatchOptions struct {
	// MaxInFlight is how many calls are taken at once; 64 unless given.
	MaxInFlight uint32
	// OnNotice is told why calls of a tool do not come, such as that there is none of that name; they are logged unless it is given.
	OnNotice func(problem string)
}

// Watch executes calls of external tools of the catalogue, by their names, until it is closed. Of all programs that watch a tool each call
// goes to one.
func (c *Client) Watch(ctx context.Context, tools map[string]Function, options WatchOptions) *Stream {
	if options.OnNotice == nil {
		options.OnNotice = func(problem string) { log.Print(problem) }
	}
	watcher := &watcher{client: c, tools: tools, options: options, running: map[string]context.CancelFunc{}}
	names := slices.Sorted(maps.Keys(tools))
	request := &toolv1.WatchToolCallsRequest{Tools: names, WatcherId: randomName(), MaxInFlight: options.MaxInFlight}
	open := func(ctx context.Context) iter.Seq2[*toolv1.WatchToolCallsResponse, error] {
		return watched(ctx, c.calls.WatchToolCalls, request)
	}
	return keepStream(ctx, open, watcher.take)
}

type watcher struct {
	client  *Client
	tools   map[string]Function
	options WatchOptions
	mutex   sync.Mutex
	running map[string]context.CancelFunc
}

func (w *watcher) take(ctx context.Context, message *toolv1.WatchToolCallsResponse) {
	if notice := message.GetNotice(); notice != nil {
		w.options.OnNotice(strings.Join(append([]string{notice.GetProblem()}, notice.GetClosestNames()...), " · "))
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if withdrawn := message.GetWithdrawn(); withdrawn != nil {
		if cancel, isRunning := w.running[withdrawn.GetCall().GetCallId()]; isRunning {
			cancel()
		}
		return
	}
	delivery := message.GetCall()
	callID := delivery.GetCall().GetCallId()
	if delivery == nil || w.running[callID] != nil {
		return
	}
	executing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w.running[callID] = cancel
	go w.execute(executing, delivery)
}

func (w *watcher) execute(ctx context.Context, delivery *toolv1.ToolCallDelivery) {
	callID := delivery.GetCall().GetCallId()
	defer func() {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.running[callID]()
		delete(w.running, callID)
	}()
	if err := unlessOver(w.answer(ctx, callID, delivery.GetDeliveryId())); err != nil {
		w.options.OnNotice("call " + callID + ": " + err.Error())
	}
}

// answer begins with the acknowledgement, which makes the call this program's own; refused, it is somebody else's.
func (w *watcher) answer(ctx context.Context, callID, deliveryID string) error {
	taking := &toolv1.AcknowledgeToolCallRequest{CallId: callID, DeliveryId: deliveryID}
	taken, err := send(ctx, w.client.patience, w.client.calls.AcknowledgeToolCall, taking)
	if err != nil {
		return err
	}
	call := taken.GetCall()
	return outcomeOf(ctx, w.tools[call.GetTool()], call.GetArgumentsJson()).answer(func(result outcome, submissionID string) error {
		submission := &toolv1.SubmitToolResultRequest{CallId: callID, SubmissionId: submissionID}
		if result.fault != "" {
			submission.Outcome = &toolv1.SubmitToolResultRequest_Error{Error: result.fault}
		} else {
			submission.Outcome = &toolv1.SubmitToolResultRequest_ResultJson{ResultJson: result.resultJSON}
		}
		_, err := send(ctx, w.client.patience, w.client.calls.SubmitToolResult, submission)
		return err
	})
}
