package main

import (
	"context"
	"strings"
	"time"

	runv1 "toolbus.dev/gen/go/toolbus/run/v1"
	toolbus "toolbus.dev/sdk/go"
)

type played = func(context.Context, *toolbus.Client, play, []toolbus.Tool) (map[string]any, error)

var plays = map[string]played{
	"run": playRun, "updates": playUpdates, "text": playText, "takeUp": playTakeUp,
	"cancel": playCancel, "offer": playOffer, "watch": playWatch, "space": playSpace,
}

func stateOf(state runv1.RunState) string {
	return strings.ToLower(strings.TrimPrefix(state.String(), "RUN_STATE_"))
}

func seenOf(ctx context.Context, run *toolbus.Run, err error) (map[string]any, error) {
	if err != nil {
		return nil, err
	}
	result, err := run.Result(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[string]any{"state": stateOf(result.State), "endReason": result.EndReason, "text": result.Text}
	for _, item := range result.Run.GetItems() {
		if output := item.GetFunctionCallOutput().GetResult(); output.GetIsError() {
			seen["error"] = output.GetOutputJson()
		}
	}
	return seen, nil
}

func playRun(ctx context.Context, client *toolbus.Client, given play, tools []toolbus.Tool) (map[string]any, error) {
	options := toolbus.RunOptions{Functions: tools, IdempotencyKey: given.IdempotencyKey}
	ids := map[string]bool{}
	var first *toolbus.Run
	for range max(1, given.Times) {
		run, err := client.Run(ctx, given.Agent, given.Input, options)
		if err != nil {
			return nil, err
		}
		ids[run.ID] = true
		if first == nil {
			first = run
		}
	}
	seen, err := seenOf(ctx, first, nil)
	if err == nil {
		seen["runs"] = len(ids)
	}
	return seen, err
}

func playUpdates(ctx context.Context, client *toolbus.Client, given play, _ []toolbus.Tool) (map[string]any, error) {
	run, err := client.Run(ctx, given.Agent, given.Input, toolbus.RunOptions{Instructions: given.Instructions})
	if err != nil {
		return nil, err
	}
	seen := map[string]any{"isWhole": true, "first": "", "last": ""}
	next := uint32(0)
	for update, err := range run.Updates(ctx) {
		if err != nil {
			return nil, err
		}
		event := update.GetEvent()
		if event == nil {
			continue
		}
		seen["isWhole"] = seen["isWhole"] == true && event.GetSequence() == next
		next++
		kind := string(event.ProtoReflect().WhichOneof(event.ProtoReflect().Descriptor().Oneofs().ByName("event")).Name())
		if seen["first"] == "" {
			seen["first"] = kind
		}
		seen["last"] = kind
		if accepted := event.GetAccepted(); accepted != nil {
			seen["instructions"] = accepted.GetOptions().GetInstructions()
		}
	}
	return seen, nil
}

func playText(ctx context.Context, client *toolbus.Client, given play, _ []toolbus.Tool) (map[string]any, error) {
	run, err := client.Run(ctx, given.Agent, given.Input, toolbus.RunOptions{})
	if err != nil {
		return nil, err
	}
	text := ""
	for piece, err := range run.Text(ctx) {
		if err != nil {
			return nil, err
		}
		if piece.Replaces {
			text = ""
		}
		text += piece.Text
	}
	return map[string]any{"text": text}, nil
}

// playTakeUp starts a run at which nobody looks, so that nothing is called, before another client takes it up.
func playTakeUp(ctx context.Context, client *toolbus.Client, given play, tools []toolbus.Tool) (map[string]any, error) {
	started, err := client.Run(ctx, given.Agent, given.Input, toolbus.RunOptions{Functions: tools})
	if err != nil {
		return nil, err
	}
	run, err := client.TakeUp(ctx, started.ID, tools...)
	return seenOf(ctx, run, err)
}

func playCancel(ctx context.Context, client *toolbus.Client, given play, tools []toolbus.Tool) (map[string]any, error) {
	run, err := client.Run(ctx, given.Agent, given.Input, toolbus.RunOptions{Functions: tools})
	if err != nil {
		return nil, err
	}
	return seenOf(ctx, run, run.Cancel(ctx, "not wanted any more"))
}

func playOffer(ctx context.Context, client *toolbus.Client, given play, tools []toolbus.Tool) (seen map[string]any, err error) {
	session, err := client.OpenSession(ctx, given.Agent, "")
	if err != nil {
		return nil, err
	}
	defer session.Close(ctx)
	attachment, err := session.Offer(ctx, given.CallerID, tools...)
	if err != nil {
		return nil, err
	}
	defer attachment.Close()
	for range max(1, given.Times) {
		run, err := session.Run(ctx, given.Input, toolbus.RunOptions{})
		if seen, err = seenOf(ctx, run, err); err != nil {
			return nil, err
		}
	}
	seen["names"] = attachment.Names
	return seen, nil
}

func playWatch(ctx context.Context, client *toolbus.Client, given play, tools []toolbus.Tool) (map[string]any, error) {
	functions := map[string]toolbus.Function{}
	for _, tool := range tools {
		functions[tool.Name] = tool.Run
	}
	watching := client.Watch(ctx, functions, toolbus.WatchOptions{})
	defer watching.Close()
	run, err := client.Run(ctx, given.Agent, given.Input, toolbus.RunOptions{})
	return seenOf(ctx, run, err)
}

func playSpace(ctx context.Context, client *toolbus.Client, given play, _ []toolbus.Tool) (map[string]any, error) {
	space, err := client.OpenSpace(ctx, given.ID+"-go")
	if err != nil {
		return nil, err
	}
	heard := make(chan []string, 1)
	go func() {
		var words []string
		from := uint64(0)
		for event, err := range space.Watch(ctx, &from) {
			if err != nil {
				break
			}
			for _, part := range event.GetMessagePosted().GetText().GetContent() {
				words = append(words, part.GetText())
			}
			if len(words) >= len(given.Say) {
				break
			}
		}
		heard <- words
	}()
	for _, words := range given.Say {
		if err := space.Send(ctx, words); err != nil {
			return nil, err
		}
		time.Sleep(200 * time.Millisecond)
	}
	return map[string]any{"heard": <-heard}, nil
}
