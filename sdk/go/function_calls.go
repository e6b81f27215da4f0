package toolbus

import (
	"context"
	"slices"
	"sync"

	runv1 "toolbus.dev/gen/go/toolbus/run/v1"
)

// functionCalls are the calls of a run that this program answers by its functions, each once. What was answered before this program came
// to the run, or is not wanted any more, is not begun.
type functionCalls struct {
	client    *Client
	runID     string
	functions map[string]Function

	mutex  sync.Mutex
	isOpen bool
	seen   uint32
	begun  map[string]bool
	ends   []context.CancelCauseFunc
	fault  error
}

func newFunctionCalls(client *Client, runID string, functions []Tool) *functionCalls {
	return &functionCalls{client: client, runID: runID, functions: byName(functions), begun: map[string]bool{}}
}

func (f *functionCalls) open(ctx context.Context) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.isOpen || len(f.functions) == 0 {
		return nil
	}
	found, err := send(ctx, f.client.patience, f.client.runs.GetRun, &runv1.GetRunRequest{RunId: f.runID})
	if err != nil {
		return err
	}
	f.isOpen, f.seen = true, found.GetRun().GetLastSequence()
	f.begin(ctx, found.GetRun().GetRequiredCalls())
	return nil
}

// reading gives a context that ends with what keeps an answer from being given.
func (f *functionCalls) reading(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.ends = append(f.ends, end)
	if f.fault != nil {
		end(f.fault)
	}
	return ctx, func() { end(nil) }
}

func (f *functionCalls) see(ctx context.Context, event *runv1.RunEvent) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if event == nil || !f.isOpen || event.GetSequence() <= f.seen {
		return
	}
	f.begin(ctx, event.GetParked().GetCalls())
	committed := event.GetTurnCommitted()
	for _, item := range committed.GetItems() {
		if call := item.GetFunctionCall(); call != nil && slices.Contains(committed.GetClientCallIds(), call.GetCallId()) {
			f.begin(ctx, []*runv1.FunctionCall{call})
		}
	}
}

// begin outlives the reading that saw the calls: they are answered, whoever waits for it.
func (f *functionCalls) begin(ctx context.Context, calls []*runv1.FunctionCall) {
	for _, call := range calls {
		run, isOurs := f.functions[call.GetName()]
		if !isOurs || f.begun[call.GetCallId()] {
			continue
		}
		f.begun[call.GetCallId()] = true
		go f.answer(context.WithoutCancel(ctx), run, call)
	}
}

func (f *functionCalls) answer(ctx context.Context, run Function, call *runv1.FunctionCall) {
	err := outcomeOf(ctx, run, call.GetArgumentsJson()).answer(func(result outcome, submissionID string) error {
		output := &runv1.ToolOutput{CallId: call.GetCallId(), SubmissionId: submissionID}
		if result.fault != "" {
			output.Outcome = &runv1.ToolOutput_Error{Error: result.fault}
		} else {
			output.Outcome = &runv1.ToolOutput_ResultJson{ResultJson: result.resultJSON}
		}
		request := &runv1.SubmitOutputsRequest{RunId: f.runID, Outputs: []*runv1.ToolOutput{output}}
		_, err := send(ctx, f.client.patience, f.client.runs.SubmitOutputs, request)
		return err
	})
	if err != nil {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		f.fault = err
		for _, end := range f.ends {
			end(err)
		}
	}
}
