// Plays the cases with the library for Go: `go run . ../cases.yaml`, the suite's address in TOOLBUS_URL and a key in TOOLBUS_API_KEY.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml"

	toolbus "toolbus.dev/sdk/go"
)

type givenFunction struct {
	Description string
	Input       map[string]any
	TakesMs     int `yaml:"takesMs"`
	Returns     map[string]any
	Error       string
}

type play struct {
	Agent          string
	Input          string
	Functions      []string
	Instructions   string
	IdempotencyKey string `json:"idempotencyKey"`
	Times          int
	CallerID       string `json:"callerId"`
	ID             string
	Say            []string
}

type file struct {
	Functions map[string]givenFunction
	Cases     []map[string]any
}

func main() {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var given file
	if err := yaml.Unmarshal(text, &given); err != nil {
		log.Fatal(err)
	}
	client := toolbus.New(toolbus.Options{})
	isWell := true
	for _, one := range given.Cases {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if fault := faultOf(ctx, client, given.Functions, one); fault != "" {
			fmt.Printf("FAIL %s: %s\n", one["name"], fault)
			isWell = false
		} else {
			fmt.Printf("ok %s\n", one["name"])
		}
		cancel()
	}
	if !isWell {
		os.Exit(1)
	}
}

func faultOf(ctx context.Context, client *toolbus.Client, functions map[string]givenFunction, given map[string]any) string {
	for kind, played := range plays {
		fields, isThis := given[kind]
		if !isThis {
			continue
		}
		var one play
		if err := reread(fields, &one); err != nil {
			return err.Error()
		}
		counted := &counter{counts: map[string]any{}}
		seen, err := played(ctx, client, one, toolsOf(functions, one.Functions, counted))
		if err != nil {
			seen = seenOfError(err)
		}
		seen["called"] = counted.all()
		return difference(seen, given["expect"].(map[string]any))
	}
	return "there is no such play"
}

func seenOfError(err error) map[string]any {
	if failed := new(toolbus.RunError); errors.As(err, &failed) {
		state := stateOf(failed.State)
		return map[string]any{"state": state, "code": state, "message": failed.Message}
	}
	if refused := new(toolbus.Error); errors.As(err, &refused) {
		return map[string]any{"code": refused.Code.String(), "reason": refused.Reason, "message": refused.Message}
	}
	return map[string]any{"message": err.Error()}
}

// difference compares the fields that are expected. Errors have a message that names what is wrong: the words that are expected stand in it.
func difference(seen, expected map[string]any) string {
	var faults []string
	for field, wanted := range expected {
		words, isText := wanted.(string)
		isWords := isText && (field == "message" || field == "error")
		if isWords && strings.Contains(fmt.Sprint(seen[field]), words) || !isWords && isSame(seen[field], wanted) {
			continue
		}
		faults = append(faults, fmt.Sprintf("%s is %v, not %v", field, seen[field], wanted))
	}
	return strings.Join(faults, "; ")
}

func isSame(one, other any) bool {
	var values [2]any
	for index, value := range []any{one, other} {
		if err := reread(value, &values[index]); err != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

func reread(value, into any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// counter counts how often each function ran.
type counter struct {
	mutex  sync.Mutex
	counts map[string]any
}

func (c *counter) add(name string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	count, _ := c.counts[name].(int)
	c.counts[name] = count + 1
}

func (c *counter) all() map[string]any {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return maps.Clone(c.counts)
}

func toolsOf(functions map[string]givenFunction, names []string, counted *counter) []toolbus.Tool {
	var tools []toolbus.Tool
	for _, name := range names {
		one := functions[name]
		schema, _ := json.Marshal(one.Input)
		if one.Input == nil {
			schema = nil
		}
		tools = append(tools, toolbus.Tool{Name: name, Description: one.Description, InputSchema: schema,
			Run: func(ctx context.Context, arguments json.RawMessage) (any, error) {
				counted.add(name)
				time.Sleep(time.Duration(one.TakesMs) * time.Millisecond)
				if one.Error != "" {
					return nil, errors.New(one.Error)
				}
				result := map[string]any{}
				if err := json.Unmarshal(arguments, &result); err != nil {
					return nil, err
				}
				maps.Copy(result, one.Returns)
				return result, nil
			}})
	}
	return tools
}
