import { type Proofs, shown } from "./proof.ts";

export const kind: Proofs = {
  "KIND-1": [
    shown(
      "an MCP server, a worker, a URL, a caller and a person answer calls of one run, as real processes",
      "sends a value through all five kinds",
    ),
    shown("so do built-ins and a hosted module", "an agent's run reads a file, runs a command and calls a hosted tool"),
    shown(
      "so do services outside, internal tools and the run's client",
      "each of many calls goes to exactly one of three watchers",
      "TOOL-2 KIND-4 an internal tool answers with its arguments as they were written",
      "calls for the client and calls for the suite stand in one turn",
    ),
    shown(
      "a call is refused by name, policy and schema before anything executes it",
      "a refused call names agent, tool and rule",
      "CTR-3 arguments that do not fit reach no caller",
    ),
    shown(
      "the steps come in the same order for each of the nine kinds that the router executes, and for the client's own",
      "an unknown name is refused before the policy is asked",
      "the policy refuses before the arguments are read",
      "the arguments are refused before the call is recorded",
      "the call is recorded before it is executed, once",
      "calls for the client and calls for the suite stand in one turn",
    ),
    shown(
      "no tool is told a space: two built-ins name one, and a URL is sent the arguments and nothing else",
      "only enter_space and read_messages name a space",
      "send arguments as a JSON body and pass the JSON of the response on",
    ),
  ],
  "KIND-2": [
    shown(
      "MCP servers, workers, callers, hosted modules and built-ins are listed and called through the provider contract",
      "lists and calls server-everything and server-filesystem",
      "progress and logs come before the one result",
      "the tools are offered with prefix, schema and time",
      "its tools are offered as they describe themselves",
      "the built-in tools are offered and called as those of any provider",
    ),
    shown(
      "changes of an offer come by a watch",
      "a watch tells the tools at once and after each change",
      "a declaration replaces the one before",
      "a watch of the built-in tools gives them at once",
    ),
    shown(
      "providers in Python, Go and TypeScript that are no part of the suite are used, killed and come back",
      "give an agent tools with results and errors",
      "killed in the middle of a call",
    ),
    shown(
      "a new source is applied while the router runs",
      "a third party's provider at a %s URL",
      "a provider that is added later takes over no name",
    ),
  ],
  "KIND-3": [
    shown(
      "a custom type is provider:tool_type, in files too",
      "say their kind in two ways",
      "a custom kind of a known provider is good",
    ),
    shown("an unknown provider is refused at registration", "are refused with the path of the fault: $name"),
    shown(
      "a call of a custom tool of the catalog reaches its provider",
      "a tool of the catalog whose kind is a provider's own is called there",
    ),
  ],
  "KIND-4": [
    shown(
      'an error is {"error": text} with is_error, whatever its tool wrote',
      "errors have one form",
      "that are errors have the form of all errors",
      "an error is a tool error, null a valid result",
      "an exception is the call's error",
    ),
    shown(
      "30 s by default, 60 s for callers; the tool's own time wins and the run's deadline caps it",
      "the tool's own time wins, and the run's deadline caps it",
      "is the server's, else the request's, else 30 s",
    ),
    shown(
      "a tool that hangs is given up after its time",
      "a provider that hangs is given up",
      "a call that its provider gave up is over",
      "time out after their own time",
    ),
    shown("a function waits without a deadline", "goes on with outputs that come days later"),
  ],
};
