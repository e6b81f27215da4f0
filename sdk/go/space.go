package toolbus

import (
	"context"
	"encoding/json"
	"iter"

	contentv1 "toolbus.dev/gen/go/toolbus/content/v1"
	spacev1 "toolbus.dev/gen/go/toolbus/space/v1"
)

// Space is a room in which people and agents write messages, and see the calls that are for people.
type Space struct {
	ID     string
	client *Client
}

// OpenSpace opens the space, or finds it.
func (c *Client) OpenSpace(ctx context.Context, id string) (*Space, error) {
	_, err := send(ctx, c.patience, c.spaces.GetSpace, &spacev1.GetSpaceRequest{SpaceId: id})
	if reasonOf(err) == "SPACE_NOT_FOUND" {
		_, err = send(ctx, c.patience, c.spaces.CreateSpace, &spacev1.CreateSpaceRequest{SpaceId: id})
	}
	if err != nil {
		return nil, err
	}
	return &Space{ID: id, client: c}, nil
}

// Send says something as the person that the key stands for.
func (s *Space) Send(ctx context.Context, text string) error {
	content := []*contentv1.ContentPart{{Part: &contentv1.ContentPart_Text{Text: text}}}
	request := &spacev1.SendMessageRequest{SpaceId: s.ID, Content: content, MessageId: randomName()}
	_, err := send(ctx, s.client.patience, s.client.spaces.SendMessage, request)
	return err
}

// Watch is what happens, from that sequence on: 0 for all that is kept, nil from when it is first ranged over. It ends when it is left,
// or the context ends.
func (s *Space) Watch(ctx context.Context, from *uint64) iter.Seq2[*spacev1.SpaceEvent, error] {
	return func(yield func(*spacev1.SpaceEvent, error) bool) {
		open := func(ctx context.Context) iter.Seq2[*spacev1.WatchSpaceResponse, error] {
			return endless(watched(ctx, s.client.spaces.WatchSpace, &spacev1.WatchSpaceRequest{SpaceId: s.ID, FromSequence: from}))
		}
		at := func(sequence uint64) { from = &sequence }
		for message, err := range resumed(ctx, s.client.patience, open) {
			if err != nil {
				yield(nil, err)
				return
			}
			switch update := message.GetUpdate().(type) {
			case *spacev1.WatchSpaceResponse_Start:
				at(update.Start.GetNextSequence())
			case *spacev1.WatchSpaceResponse_Gap:
				at(update.Gap.GetLastSequence() + 1)
			case *spacev1.WatchSpaceResponse_Event:
				at(update.Event.GetSequence() + 1)
				if !yield(update.Event, nil) {
					return
				}
			}
		}
	}
}

// Answer answers a call that waits for a person.
func (s *Space) Answer(ctx context.Context, callID string, result any) error {
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return s.submit(ctx, &spacev1.AnswerToolCallRequest{
		CallId: callID, Outcome: &spacev1.AnswerToolCallRequest_ResultJson{ResultJson: string(text)},
	})
}

// Refuse says why a call that waits for a person is not done.
func (s *Space) Refuse(ctx context.Context, callID, reason string) error {
	return s.submit(ctx, &spacev1.AnswerToolCallRequest{CallId: callID, Outcome: &spacev1.AnswerToolCallRequest_Error{Error: reason}})
}

func (s *Space) submit(ctx context.Context, request *spacev1.AnswerToolCallRequest) error {
	request.SpaceId, request.SubmissionId = s.ID, randomName()
	_, err := send(ctx, s.client.patience, s.client.spaces.AnswerToolCall, request)
	return err
}
