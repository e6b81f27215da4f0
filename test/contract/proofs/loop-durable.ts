import { type Proofs, shown, testsOf } from "./proof.ts";

const service = testsOf("services/orchestrator/service.test.ts");
const takeover = testsOf("services/orchestrator/testing/crashes/takeover.service.test.ts");
const watching = testsOf("services/orchestrator/testing/watching/watching.service.test.ts");
const watcher = testsOf("services/orchestrator/runs/watch/watch.test.ts");
const resume = testsOf("services/orchestrator/testing/crashes/resume.service.test.ts");
const cursor = testsOf("services/orchestrator/runs/watch/delta-cursor.test.ts");
const fold = testsOf("services/orchestrator/log/state/fold.test.ts");
const loopTests = testsOf("services/orchestrator/loop/loop.test.ts");
const toolSystem = testsOf("services/orchestrator/loop/calls/tool-system.test.ts");
const effects = testsOf("services/orchestrator/loop/calls/effects.test.ts");
const requiresAction = testsOf("services/orchestrator/loop/requires-action.test.ts");
const canceling = testsOf("services/orchestrator/testing/runs/canceling.service.test.ts");
const openai = testsOf("services/orchestrator/model/providers/openai-compatible/openai-compatible.test.ts");
const faulty = testsOf("services/orchestrator/model/providers/faulty-provider.test.ts");
const packages = testsOf("services/orchestrator/model/providers/package-models.test.ts");
const failover = testsOf("test/system/tools/watch-failover.test.ts");
const faults = testsOf("test/faults/loop/loop.test.ts");
const clusterRun = testsOf("test/system/operation/cluster/cluster-run.test.ts");
const cluster = testsOf("test/system/operation/cluster/cluster.test.ts");
const streaming = testsOf("test/system/tools/tool-streaming.test.ts");
const suiteRuns = testsOf("test/system/runs/runs.test.ts");
const record = testsOf("services/tool-router/calls/records/records.test.ts");
const repeated = testsOf("services/tool-router/testing/calls/repeated.service.test.ts");
const execution = testsOf("services/tool-router/calls/execute/provider.test.ts");
const mcpTools = testsOf("services/mcp-bridge/tools/tools.test.ts");
const workerCanceling = testsOf("services/worker-pool/testing/canceling.test.ts");
const worker = testsOf("services/orchestrator/sessions/worker/worker.test.ts");
const subAgents = testsOf("services/orchestrator/testing/runs/sub-agents.service.test.ts");
const childLimits = testsOf("services/orchestrator/runs/sub-agents/child-limits.test.ts");
const history = testsOf("services/orchestrator/sessions/history/history.test.ts");
const responses = testsOf("test/system/doors/openai/responses.test.ts");
const responseTools = testsOf("test/system/doors/openai/responses-tools.test.ts");
const completions = testsOf("test/system/doors/openai/chat-completions.test.ts");
const responseDeaths = testsOf("test/system/doors/openai/responses-deaths.test.ts");
const callOptions = testsOf("services/orchestrator/model/prompt/call-options.test.ts");
const aiSdk = testsOf("test/system/doors/openai/clients/ai-sdk.test.ts");
const agentsSdk = testsOf("test/system/doors/openai/clients/openai-agents.test.ts");
const langchain = testsOf("test/system/doors/openai/clients/langchain.test.ts");
const openaiPython = testsOf("test/system/doors/openai/clients/openai-python.test.ts");
const openaiJavascript = testsOf("test/system/doors/openai/openai-javascript.test.ts");
const responseRenderer = testsOf("services/gateway/responses/rendering/response-renderer.test.ts");
const creation = testsOf("services/orchestrator/runs/create/creation.test.ts");

/** What a run is for those who watch it, and what remains of it when processes die. */
export const loopDurable: Proofs = {
  "LOOP-10": [
    shown(
      "text deltas, progress of tools and results stream",
      loopTests("deltas are numbered from 0 within an attempt and make up the text"),
      toolSystem("what a tool tells meanwhile streams to the client"),
      service("goes from the input over a call to the final answer"),
    ),
    shown(
      "arguments stream as they are written, to who watches the space",
      streaming("is told as started, then streaming with growing arguments"),
    ),
    shown(
      "arguments stream to who watches the run",
      loopTests("the arguments of a call stream as the model writes them"),
    ),
    shown(
      "events are contiguous from 0, with one terminal event, which requires_action is not",
      watching("starts at any sequence, shows each event once"),
      fold("several processes that write at random leave a log with contiguous sequences"),
      service("that is parked ends when its time is over"),
    ),
    shown(
      "deltas carry a cursor: who resumes gets the text so far or a reset",
      resume("gets the text so far on any replica", "gets the text that is stored while nobody works on the run"),
      cursor("what is shown is a prefix of the attempt", "a gap is told, and the snapshot that answers it"),
      watcher("in mid-turn is reset when another attempt has begun"),
    ),
    shown(
      "a lost stream is resumed at any sequence, on any replica, and misses nothing",
      failover("a watch through the gateway outlives every orchestrator"),
      takeover("in the middle of its answer, watchers are reset"),
    ),
  ],
  "LOOP-11": [
    shown(
      "a provider package plugs in by configuration",
      packages("plug in by configuration: a module of the operator's", "a model of specification %s runs the loop"),
      openai("is asked with tools, options and results"),
    ),
    shown(
      "errors are retried with backoff and jitter, Retry-After is obeyed",
      faulty("Retry-After is obeyed as seconds and as a date", "pauses without a word of the provider grow and vary"),
    ),
    shown("a stalled stream is cut by a watchdog", openai("a stream that stalls is cut, its connection closed")),
  ],
  "LOOP-13": [
    shown(
      "accepted means stored: a creator that dies in between, and a repeated creation, make one run",
      service(
        "is created once for a key, however often",
        "after the append and before the queue",
        "after the wake-up and before the append",
      ),
    ),
    shown(
      "by kill -9 in the middle of a call another process finishes the run from its log",
      takeover("by kill -9 in the middle of a call"),
    ),
    shown(
      "a process that was thought dead cannot write",
      takeover("one that was frozen and thought dead writes nothing"),
      fold("several processes that write at random"),
    ),
    shown(
      "processes are killed, frozen and cut off at named points: no run is lost, none ends twice",
      faults("struck at its points, no run is lost, none ends twice"),
    ),
    shown(
      "the broker, or a node of its cluster, dies: runs go on",
      takeover("runs go on after its return, and their watchers miss nothing"),
      clusterRun("a run through the gateway ends well though the node that leads its log is killed"),
      cluster("the node that leads is killed under fenced appends"),
    ),
  ],
  "LOOP-14": [
    shown(
      "MCP annotations map onto effects, unknown is at_most_once",
      mcpTools("with the hints %j has the effect %i"),
      effects("an attempt that may have begun is told as outcome_unknown"),
    ),
    shown(
      "a pure or idempotent call is repeated after a crash, under its id",
      loopTests("after a takeover the calls without a result are dispatched again"),
      execution("a lost call is repeated if its effect may be"),
    ),
    shown(
      "an at-most-once call of unknown outcome is told as outcome_unknown and never repeated",
      repeated("a call that was started by a router which is gone has an unknown outcome"),
      record("only what must not happen twice is recorded"),
      faults("struck at its points, no run is lost, none ends twice"),
    ),
  ],
  "LOOP-15": [
    shown(
      "reaches the model's socket",
      faulty("canceling reaches the model's socket, before its answer and in the middle of it"),
    ),
    shown(
      "reaches the worker: the router tells the provider, which ends the function",
      testsOf("services/tool-router/testing/calls/endings.service.test.ts")(
        "canceling a call that a provider runs reaches",
      ),
      workerCanceling("a caller that cancels ends the function"),
    ),
    shown("reaches the MCP server, through the whole suite", suiteRuns("reaches the MCP server that works for it")),
    shown("reaches the caller, through the whole suite", suiteRuns("is told which of its requests is canceled")),
    shown(
      "nothing is appended afterwards",
      canceling("reaches the model's request and the call in flight, and nothing follows it"),
      fold("several processes that write at random"),
      effects("a process that was frozen with a call in its hand cannot make it"),
    ),
  ],
  "LOOP-16": [
    shown("a parked run is put down by its process", worker("a run that has parked is put down")),
    shown(
      "what services hold of sessions at rest has a bound",
      testsOf("services/tool-router/sessions/contexts/contexts.test.ts")(
        "sessions at rest hold no more streams than there is room for",
      ),
      testsOf("services/tool-router/calls/run-limits/run-bounds.test.ts")(
        "are forgotten when many other runs called since",
      ),
    ),
    shown(
      "no service's memory grows with parked runs, but for lists of bounded length",
      testsOf("test/system/runs/parked.test.ts")("runs that wait for their client are parked, weighed and woken"),
    ),
    shown(
      "a wake-up starts it anywhere",
      requiresAction("goes on with outputs that come days later, on another process"),
      service("parks until its outputs are there", "that is parked ends when its time is over"),
    ),
  ],
  "LOOP-17": [
    shown(
      "an agent is a tool of another, in use, listed, explained and called through the whole suite",
      suiteRuns("of an agent calls another one, which is a tool like any other"),
      subAgents("is called, runs in a session of its own, and what it used counts"),
    ),
    shown(
      "its limits lie inside its parent's",
      childLimits("are its own, inside what is left to the run that calls"),
      subAgents("eight times in one turn uses no more than what was left", "only as deep as the first one allows"),
    ),
    shown("it is canceled with its parent", subAgents("is canceled with the run that called it")),
  ],
  "LOOP-18": [
    shown(
      "a run goes on from a named earlier one of its session and agent, which previous_response_id needs",
      history("goes on from the run that was named, without those after it"),
      creation("a run continues only one of its own session that its agent is shown"),
    ),
    shown(
      "tools, tool_choice, allowed_tools and function_call_output over HTTP",
      responseTools(
        "is called by an item that completes the response, and answered in the next",
        "streams its arguments, and the last event carries the call",
        "is called and answered by clients that send all that was said",
        "stands beside calls of the agent's tools, which are executed",
        "forbids, narrows or forces, and is told again",
      ),
      requiresAction("ends with those of its client, once its own are done, and is not answered itself"),
    ),
    shown(
      "it streams, and goes on in the same numbers at any gateway",
      responses(
        "is streamed with contiguous numbers, which a later stream of it has too",
        "that goes on can be resumed at another gateway behind what was seen",
        "continues the one that it names, and the agent is shown what was said there",
      ),
      responseRenderer("is told live as it is told of the log, with the same numbers"),
    ),
    shown(
      "whoever dies under a response, its client goes on with it, and nothing is executed twice",
      responseDeaths(
        "the orchestrator dies under a stream, which goes on as if nothing had been",
        "the gateway dies under a stream: asked again at another one, the response is the same and goes on",
      ),
    ),
    shown(
      "the same in the older form of Chat Completions",
      completions(
        "is one of the agent that the model names",
        "is streamed in chunks, with its usage where that is asked for, and ends with [DONE]",
        "is called by it, and answered by a message of the next",
        "shows the model what was said, by whom, with images and files",
        "a run that fails is told as an error, which clients do not try again",
      ),
    ),
    shown(
      "images, files, instructions and settings of the model",
      responseTools(
        "instructions stand behind the agent's, and those of the input hold for what goes on from it",
        "images and files of the input are shown to the model, texts as text, and told again",
        "what is asked of the model is told again",
      ),
      callOptions("a run's settings stand above its agent's, and those that it has not are not told"),
    ),
    shown(
      "responses are stored, retrievable and cancellable",
      responses(
        "is created of a text, and can be retrieved at any gateway, also as its events",
        "runs in the background, and is canceled",
        "is deleted once it has ended, and nobody gets or continues it any more",
        "tells nobody of the responses of others",
      ),
      responseTools(
        "what was not to be stored is neither told again nor continued",
        "a conversation is compacted, and goes on from what came of it",
      ),
    ),
    shown(
      "clients that people have use it unmodified",
      aiSdk(
        "gets a text",
        "streams a text, and what it used",
        "calls its function, and brings the output with all that was said",
        "streams the call of its function, and what follows its output",
        "leaves a stream that it aborts, whose response goes on",
        "has its own error for a refusal, with the reason in it",
      ),
      openaiPython(
        "gets a text",
        "streams",
        "calls its function, and brings the output",
        "resumes at another gateway what it left, and has the whole without a fault",
        "cancels what runs in the background",
        "has its own errors for refusals, with the reason as their code",
        "completes chats, whole and streamed",
      ),
      openaiJavascript(
        "gets a text",
        "streams, and puts the response together of the events",
        "calls its function, and brings the output",
        "resumes at another gateway what it left, and has the whole without a fault",
        "cancels what runs in the background",
        "has its own error for a refusal, with the reason as its code",
      ),
      langchain(
        "gets a text",
        "streams a text",
        "calls its function, and brings the output with all that was said",
        "has the error of OpenAI's client for a refusal, with the reason as its code",
        "of a call and of what follows its output are in order",
        "go on from an earlier response",
        "may be left by an abort, and the response goes on",
      ),
      agentsSdk(
        "gets a text, and what it used",
        "streams a text",
        "calls its function, and brings the output with all that was said",
        "streams the call of its function, and what follows its output",
        "goes on from the last response",
        "leaves a stream that it aborts, whose response goes on",
        "has its client's error for a refusal, with the reason as its code",
      ),
    ),
  ],
};
