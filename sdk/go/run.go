package toolbus

import (
	"context"
	"iter"
	"strings"

	"google.golang.org/protobuf/proto"
	contentv1 "toolbus.dev/gen/go/toolbus/content/v1"
	runv1 "toolbus.dev/gen/go/toolbus/run/v1"
)

// RunOptions of one run. Their zero value leaves all to the agent.
type RunOptions struct {
	// Functions of this program that the model may call in this run.
	Functions []Tool
	// Instructions in place of the agent's own.
	Instructions string
	// IdempotencyKey gives the first run again; each is another one where it is empty.
	IdempotencyKey string
	// More is all else that the contract lets a run be told.
	More *runv1.RunOptions
}

// Result is how a run ended that was completed, or that a limit ended.
type Result struct {
	State runv1.RunState
	// EndReason is as FINAL_ANSWER or MAX_TURNS.
	EndReason string
	Text      string
	// Run is all that is stored.
	Run *runv1.Run
}

// Run goes on at the suite, whether or not anybody looks. Its functions are called while Result, Updates or Text is read, each of which may
// be asked for any number of times; a connection that breaks is opened again where it broke.
type Run struct {
	ID        string
	SessionID string
	client    *Client
	calls     *functionCalls
}

// Run starts a run of an agent, in a session of its own.
func (c *Client) Run(ctx context.Context, agent, words string, options RunOptions) (*Run, error) {
	return c.start(ctx, &runv1.CreateRunRequest{Agent: agent}, words, options)
}

// TakeUp takes up a run that was started before, as after a restart of the program.
func (c *Client) TakeUp(ctx context.Context, runID string, functions ...Tool) (*Run, error) {
	found, err := send(ctx, c.patience, c.runs.GetRun, &runv1.GetRunRequest{RunId: runID})
	if err != nil {
		return nil, err
	}
	return c.runOf(found.GetRun(), functions), nil
}

func (c *Client) start(ctx context.Context, request *runv1.CreateRunRequest, words string, options RunOptions) (*Run, error) {
	given := &runv1.RunOptions{}
	if options.More != nil {
		given = proto.CloneOf(options.More)
	}
	if options.Instructions != "" {
		given.Instructions = options.Instructions
	}
	for _, tool := range options.Functions {
		given.FunctionTools = append(given.FunctionTools, &runv1.FunctionTool{
			Name: tool.Name, Description: tool.Description, InputSchemaJson: string(tool.InputSchema),
		})
	}
	content := []*contentv1.ContentPart{{Part: &contentv1.ContentPart_Text{Text: words}}}
	message := &runv1.InputMessage{Role: runv1.Role_ROLE_USER, Content: content}
	request.Input = []*runv1.InputItem{{Item: &runv1.InputItem_Message{Message: message}}}
	request.Options = given
	request.IdempotencyKey = options.IdempotencyKey
	if request.IdempotencyKey == "" {
		request.IdempotencyKey = randomName()
	}
	created, err := send(ctx, c.patience, c.runs.CreateRun, request)
	if err != nil {
		return nil, err
	}
	return c.runOf(created.GetRun(), options.Functions), nil
}

func (c *Client) runOf(run *runv1.Run, functions []Tool) *Run {
	return &Run{ID: run.GetId(), SessionID: run.GetSessionId(), client: c, calls: newFunctionCalls(c, run.GetId(), functions)}
}

// Result waits for the run's end. A run that failed or was canceled is a *RunError.
func (r *Run) Result(ctx context.Context) (*Result, error) {
	for _, err := range r.updates(ctx, false) { // to its end, answering the calls of its functions
		if err != nil {
			return nil, err
		}
	}
	found, err := send(ctx, r.client.patience, r.client.runs.GetRun, &runv1.GetRunRequest{RunId: r.ID})
	if err != nil {
		return nil, err
	}
	run := found.GetRun()
	endReason := strings.TrimPrefix(run.GetEndReason().String(), "RUN_END_REASON_")
	switch run.GetState() {
	case runv1.RunState_RUN_STATE_COMPLETED, runv1.RunState_RUN_STATE_INCOMPLETE:
		return &Result{State: run.GetState(), EndReason: endReason, Text: run.GetOutputText(), Run: run}, nil
	}
	message := run.GetError()
	if message == "" {
		message = "the run ended: " + endReason
	}
	return nil, &RunError{RunID: r.ID, State: run.GetState(), EndReason: endReason, Message: message}
}

// Updates are the run's stored events and the deltas between them, from the first one on.
func (r *Run) Updates(ctx context.Context) iter.Seq2[*runv1.WatchRunResponse, error] {
	return r.updates(ctx, true)
}

// Text is what the model says, piece by piece.
func (r *Run) Text(ctx context.Context) iter.Seq2[TextPiece, error] {
	return func(yield func(TextPiece, error) bool) {
		reader := new(textReader)
		for update, err := range r.updates(ctx, true) {
			if err != nil {
				yield(TextPiece{}, err)
				return
			}
			if piece, isText := reader.read(update); isText && !yield(piece, nil) {
				return
			}
		}
	}
}

// Cancel ends the run.
func (r *Run) Cancel(ctx context.Context, reason string) error {
	_, err := send(ctx, r.client.patience, r.client.runs.CancelRun, &runv1.CancelRunRequest{RunId: r.ID, Reason: reason})
	return err
}

func (r *Run) updates(ctx context.Context, includeDeltas bool) iter.Seq2[*runv1.WatchRunResponse, error] {
	return func(yield func(*runv1.WatchRunResponse, error) bool) {
		if err := r.calls.open(ctx); err != nil {
			yield(nil, err)
			return
		}
		ctx, stop := r.calls.reading(ctx)
		defer stop()
		at := &place{}
		open := func(ctx context.Context) iter.Seq2[*runv1.WatchRunResponse, error] {
			request := &runv1.WatchRunRequest{RunId: r.ID, IncludeDeltas: includeDeltas, FromSequence: &at.from, AfterDelta: at.after}
			updates := watched(ctx, r.client.runs.WatchRun, request)
			return func(yield func(*runv1.WatchRunResponse, error) bool) {
				for update, err := range updates {
					if !yield(update, err) {
						return
					}
				}
				if !at.hasEnded {
					yield(nil, errEnded)
				}
			}
		}
		for update, err := range resumed(ctx, r.client.patience, open) {
			if err != nil {
				if cause := context.Cause(ctx); cause != nil {
					err = cause
				}
				yield(nil, err)
				return
			}
			at.pass(update)
			r.calls.see(ctx, update.GetEvent())
			if !yield(update, nil) {
				return
			}
		}
	}
}

// place is where a reader of a run stands, to go on there when the stream breaks.
type place struct {
	from     uint64
	after    *runv1.DeltaCursor
	hasEnded bool
}

func (p *place) pass(update *runv1.WatchRunResponse) {
	switch update := update.GetUpdate().(type) {
	case *runv1.WatchRunResponse_Delta:
		p.after = &runv1.DeltaCursor{Turn: update.Delta.GetTurn(), Attempt: update.Delta.GetAttempt(), Index: update.Delta.GetIndex()}
	case *runv1.WatchRunResponse_Replaced:
		p.after = nil
		if count := update.Replaced.GetDeltaCount(); count > 0 {
			p.after = &runv1.DeltaCursor{Turn: update.Replaced.GetTurn(), Attempt: update.Replaced.GetAttempt(), Index: count - 1}
		}
	case *runv1.WatchRunResponse_Gap:
		p.from = update.Gap.GetLastSequence() + 1
	case *runv1.WatchRunResponse_Event:
		p.from = uint64(update.Event.GetSequence()) + 1
		switch update.Event.GetEvent().(type) {
		case *runv1.RunEvent_TurnCommitted:
			p.after = nil
		case *runv1.RunEvent_Ended:
			p.hasEnded = true
		}
	}
}
