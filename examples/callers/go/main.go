// Opens a session, offers it a tool of this program, and lets an agent call it.
//
// Run it with `go run . A-17`, the suite's address in TOOLBUS_URL and a key in TOOLBUS_API_KEY.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	toolbus "toolbus.dev/sdk/go"
)

type order struct {
	Order string `json:"order"`
}

var findOrder = toolbus.MustTool("find_order", "Tells where an order is",
	func(_ context.Context, given order) (map[string]string, error) {
		return map[string]string{"order": given.Order, "state": "on its way"}, nil
	})

func main() {
	words := "A-17"
	if len(os.Args) > 1 {
		words = os.Args[1]
	}
	if err := ask(context.Background(), words); err != nil {
		log.Fatal(err)
	}
}

func ask(ctx context.Context, words string) error {
	session, err := toolbus.New(toolbus.Options{}).OpenSession(ctx, "clerk", "")
	if err != nil {
		return err
	}
	defer session.Close(ctx)
	if _, err := session.Offer(ctx, "desk", findOrder); err != nil { // the agent sees desk_find_order
		return err
	}
	run, err := session.Run(ctx, words, toolbus.RunOptions{})
	if err != nil {
		return err
	}
	result, err := run.Result(ctx)
	if err != nil {
		return err
	}
	fmt.Println(result.Text)
	return nil
}
