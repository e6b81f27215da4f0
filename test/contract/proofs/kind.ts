import { type Proofs, shown, testsOf } from "./proof.ts";

const demo = testsOf("test/system/operation/demo.test.ts");
const hostedAndBuiltIns = testsOf("test/system/tools/hosted-and-builtins.test.ts");
const providers = testsOf("test/system/tools/providers.test.ts");
const router = testsOf("services/tool-router/service.test.ts");
const gateway = testsOf("services/tool-router/calls/execute/http/http-execution.test.ts");
const steps = testsOf("services/tool-router/testing/calls/steps.service.test.ts");
const watching = testsOf("services/tool-router/testing/watchers/watch.service.test.ts");
const thirdParty = testsOf("services/tool-router/testing/sessions/third-party.service.test.ts");
const toolFiles = testsOf("services/tool-router/catalogue/files/files.test.ts");
const execution = testsOf("services/tool-router/calls/execute/provider.test.ts");
const answers = testsOf("services/tool-router/calls/answers/answer.test.ts");
const requiresAction = testsOf("services/orchestrator/loop/requires-action.test.ts");
const outputs = testsOf("services/orchestrator/runs/answer/answers.test.ts");
const toolSystem = testsOf("services/orchestrator/loop/calls/tool-system.test.ts");
const builtIns = testsOf("services/spaces/built-ins/built-ins.test.ts");
const agentRoutes = testsOf("services/spaces/routes/agent-routes.test.ts");
const bridge = testsOf("services/mcp-bridge/testing/service.test.ts");
const hosted = testsOf("services/worker-pool/hosted/hosted.test.ts");
const workers = testsOf("services/worker-pool/testing/calls.test.ts");
const relay = testsOf("services/caller-relay/testing/service.test.ts");

export const kind: Proofs = {
  "KIND-1": [
    shown(
      "an MCP server, a worker, a URL, a caller and a person answer calls of one run, as real processes",
      demo("sends a value through all five kinds"),
    ),
    shown(
      "so do built-ins and a hosted module",
      hostedAndBuiltIns("an agent's run reads a file, runs a command and calls a hosted tool"),
    ),
    shown(
      "so do services outside, internal tools and the run's client",
      watching("each of many calls goes to exactly one of three watchers"),
      router("TOOL-2 KIND-4 an internal tool answers with its arguments as they were written"),
      toolSystem("calls for the client and calls for the suite stand in one turn"),
    ),
    shown(
      "a call is refused by name, policy and schema before anything executes it",
      router("a refused call names agent, tool and rule", "CTR-3 arguments that do not fit reach no caller"),
    ),
    shown(
      "the steps come in the same order for each of the nine kinds that the router executes, and for the client's own",
      steps(
        "an unknown name is refused before the policy is asked",
        "the policy refuses before the arguments are read",
        "the arguments are refused before the call is recorded",
        "the call is recorded before it is executed, once",
      ),
      toolSystem("calls for the client and calls for the suite stand in one turn"),
    ),
    shown(
      "no tool is told a space: two built-ins name one, and a URL is sent the arguments and nothing else",
      builtIns("only enter_space and read_messages name a space"),
      gateway("send arguments as a JSON body and pass the JSON of the response on"),
    ),
  ],
  "KIND-2": [
    shown(
      "MCP servers, workers, callers, hosted modules and built-ins are listed and called through the provider contract",
      bridge("lists and calls server-everything and server-filesystem"),
      workers("progress and logs come before the one result"),
      relay("the tools are offered with prefix, schema and time"),
      hosted("its tools are offered as they describe themselves"),
      agentRoutes("the built-in tools are offered and called as those of any provider"),
    ),
    shown(
      "changes of an offer come by a watch",
      bridge("a watch tells the tools at once and after each change"),
      relay("a declaration replaces the one before"),
      agentRoutes("a watch of the built-in tools gives them at once"),
    ),
    shown(
      "providers in Python, Go and TypeScript that are no part of the suite are used, killed and come back",
      providers("give an agent tools with results and errors", "killed in the middle of a call"),
    ),
    shown(
      "a new source is applied while the router runs",
      thirdParty("a third party's provider at a %s URL", "a provider that is added later takes over no name"),
    ),
  ],
  "KIND-3": [
    shown(
      "a custom type is provider:tool_type, in files too",
      toolFiles("say their kind in two ways", "a custom kind of a known provider is good"),
    ),
    shown("an unknown provider is refused at registration", toolFiles("are refused with the path of the fault: $name")),
    shown(
      "a call of a custom tool of the catalog reaches its provider",
      thirdParty("a tool of the catalog whose kind is a provider's own is called there"),
    ),
  ],
  "KIND-4": [
    shown(
      'an error is {"error": text} with is_error, whatever its tool wrote',
      answers("errors have one form"),
      outputs("that are errors have the form of all errors"),
      relay("an error is a tool error, null a valid result"),
      workers("an exception is the call's error"),
    ),
    shown(
      "30 s by default, 60 s for callers; the tool's own time wins and the run's deadline caps it",
      execution("the tool's own time wins, and the run's deadline caps it"),
    ),
    shown(
      "a tool that hangs is given up after its time",
      execution("a provider that hangs is given up"),
      gateway("time out after their own time"),
    ),
    shown("a function waits without a deadline", requiresAction("goes on with outputs that come days later")),
  ],
};
