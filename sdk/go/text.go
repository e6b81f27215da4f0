package toolbus

import (
	"strings"

	runv1 "toolbus.dev/gen/go/toolbus/run/v1"
)

// TextPiece is a piece of what the model says. One that Replaces stands in place of all that was told of its turn, as when the model was
// asked again.
type TextPiece struct {
	Turn     uint32
	Text     string
	Replaces bool
}

// textReader makes of a run's updates the text of each turn: whatever was missed between, the pieces make up what is committed. The
// answer of a tool at which a run stops comes last.
type textReader struct {
	turn, attempt uint32
	told          string
}

func (r *textReader) read(update *runv1.WatchRunResponse) (TextPiece, bool) {
	if delta := update.GetDelta(); delta != nil {
		text, isText := delta.GetDelta().(*runv1.RunDelta_Text)
		if !isText {
			return TextPiece{}, false
		}
		before := ""
		if delta.GetTurn() == r.turn && delta.GetAttempt() == r.attempt {
			before = r.told
		}
		r.attempt = delta.GetAttempt()
		return r.become(before+text.Text, delta.GetTurn())
	}
	if replaced := update.GetReplaced(); replaced != nil {
		r.attempt = replaced.GetAttempt()
		return r.become(replaced.GetText(), replaced.GetTurn())
	}
	if committed := update.GetEvent().GetTurnCommitted(); committed != nil {
		return r.become(textOf(committed), committed.GetTurn())
	}
	if ended := update.GetEvent().GetEnded(); ended.GetEndReason() == runv1.RunEndReason_RUN_END_REASON_STOPPED_AT_TOOL {
		return r.become(ended.GetOutputText(), r.turn+1)
	}
	return TextPiece{}, false
}

func (r *textReader) become(text string, turn uint32) (TextPiece, bool) {
	before := ""
	if turn == r.turn {
		before = r.told
	}
	r.turn, r.told = turn, text
	if text == before {
		return TextPiece{}, false
	}
	if rest, goesOn := strings.CutPrefix(text, before); goesOn {
		return TextPiece{Turn: turn, Text: rest}, true
	}
	return TextPiece{Turn: turn, Text: text, Replaces: true}, true
}

func textOf(committed *runv1.TurnCommitted) string {
	var text strings.Builder
	for _, item := range committed.GetItems() {
		for _, part := range item.GetMessage().GetContent() {
			text.WriteString(part.GetText())
		}
	}
	return text.String()
}
