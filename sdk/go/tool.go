package toolbus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Function executes a call: it is given the arguments as JSON, and gives the result, which goes to the model as JSON. Its error is told to
// the model. The context ends when nobody waits for the result any more.
type Function func(ctx context.Context, arguments json.RawMessage) (any, error)

// Tool is a function of this program that a model may call.
type Tool struct {
	// Name is 1 to 64 letters, digits, _ and -.
	Name string
	// Description says what it does, in words for the model.
	Description string
	// InputSchema is the JSON Schema of the arguments; any object where it is empty.
	InputSchema json.RawMessage
	Run         Function
}

// NewTool makes a tool of a function whose arguments are the fields of a struct, with names of their json tags and descriptions of their
// jsonschema tags.
func NewTool[Arguments, Result any](name, description string, run func(context.Context, Arguments) (Result, error)) (Tool, error) {
	schema, err := jsonschema.For[Arguments](nil)
	if err != nil {
		return Tool{}, fmt.Errorf("the arguments of %s have no schema: %w", name, err)
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return Tool{}, err
	}
	decoded := func(ctx context.Context, given json.RawMessage) (any, error) {
		var arguments Arguments
		if err := json.Unmarshal(given, &arguments); err != nil {
			return nil, fmt.Errorf("the arguments do not fit: %w", err)
		}
		return run(ctx, arguments)
	}
	return Tool{Name: name, Description: description, InputSchema: text, Run: decoded}, nil
}

// MustTool is NewTool for variables of a package.
func MustTool[Arguments, Result any](name, description string, run func(context.Context, Arguments) (Result, error)) Tool {
	tool, err := NewTool(name, description, run)
	if err != nil {
		panic(err)
	}
	return tool
}

// outcome is what is to be answered.
type outcome struct {
	resultJSON string
	fault      string
}

func outcomeOf(ctx context.Context, run Function, argumentsJSON string) (result outcome) {
	defer func() {
		if panicked := recover(); panicked != nil {
			result = outcome{fault: wordsOf(fmt.Sprint(panicked))}
		}
	}()
	if run == nil {
		return outcome{fault: "this program has no such tool"}
	}
	if argumentsJSON == "" {
		argumentsJSON = "{}"
	}
	value, err := run(ctx, json.RawMessage(argumentsJSON))
	if err != nil {
		return outcome{fault: wordsOf(err.Error())}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return outcome{fault: wordsOf(err.Error())}
	}
	return outcome{resultJSON: string(text)}
}

// wordsOf a fault are some in any case, and text: what is none cannot be sent.
func wordsOf(fault string) string {
	return cmp.Or(strings.ToValidUTF8(fault, "\uFFFD"), "the tool failed")
}

// answer submits what came of a call. A call whose result is refused, as one that is too large, waits on: it is given the refusal as its
// error. One that is over takes no answer, and that is no fault.
func (o outcome) answer(submit func(result outcome, submissionID string) error) error {
	err := submit(o, randomName())
	switch reasonOf(err) {
	case "INVALID_REQUEST", "MESSAGE_TOO_LARGE", "RESULT_INVALID":
		err = submit(outcome{fault: wordsOf(err.Error())}, randomName())
	}
	return unlessOver(err)
}

// unlessOver passes over what the contract says of a call that somebody else has answered, or that nobody waits for.
func unlessOver(err error) error {
	switch reasonOf(err) {
	case "CALL_ALREADY_RESOLVED", "CALL_EXPIRED", "CALL_NOT_AWAITED", "CALL_NOT_FOUND", "CALL_TAKEN", "RUN_ENDED", "SESSION_CLOSED":
		return nil
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func byName(tools []Tool) map[string]Function {
	functions := make(map[string]Function, len(tools))
	for _, tool := range tools {
		functions[tool.Name] = tool.Run
	}
	return functions
}
