import { type Proofs, shown, testsOf } from "./proof.ts";

const toolFiles = testsOf("services/tool-router/catalogue/files/files.test.ts");
const toolFile = testsOf("services/tool-router/catalogue/files/tool-file.test.ts");
const headers = testsOf("services/tool-router/catalogue/checks/check-headers.test.ts");
const servers = testsOf("services/tool-router/catalogue/checks/check-server.test.ts");
const filesService = testsOf("services/tool-router/testing/catalogue/files.service.test.ts");
const gatewayService = testsOf("services/tool-router/testing/calls/http.service.test.ts");
const router = testsOf("services/tool-router/service.test.ts");
const gateway = testsOf("services/tool-router/calls/execute/http/http-execution.test.ts");
const inside = testsOf("services/tool-router/calls/execute/http/inside.test.ts");
const response = testsOf("services/tool-router/calls/execute/http/response.test.ts");
const addresses = testsOf("runtime/http/address-guard.test.ts");
const outside = testsOf("services/tool-router/testing/watchers/outside.service.test.ts");
const record = testsOf("services/tool-router/calls/records/records.test.ts");
const endings = testsOf("services/tool-router/testing/calls/endings.service.test.ts");
const killed = testsOf("services/tool-router/testing/calls/killed.service.test.ts");
const retention = testsOf("services/tool-router/calls/due-work/retention.test.ts");
const watching = testsOf("services/tool-router/testing/watchers/watch.service.test.ts");
const plain = testsOf("test/system/tools/watchers.test.ts");
const visible = testsOf("services/tool-router/testing/calls/visible.service.test.ts");
const policy = testsOf("services/tool-router/tools/policy.test.ts");
const answers = testsOf("services/spaces/routes/answers.test.ts");
const inbox = testsOf("services/spaces/inbox/inbox.test.ts");
const runContext = testsOf("services/spaces/testing/run-context.test.ts");
const spaces = testsOf("services/spaces/routes/space-routes.test.ts");
const agentRoutes = testsOf("services/spaces/routes/agent-routes.test.ts");
const builtIns = testsOf("services/spaces/built-ins/built-ins.test.ts");
const plans = testsOf("services/spaces/memory/due-plans.test.ts");
const spaceState = testsOf("services/spaces/space/space-state.test.ts");
const spacesDeath = testsOf("services/spaces/testing/death.test.ts");
const suite = testsOf("test/system/runs/spaces.test.ts");
const streaming = testsOf("test/system/tools/tool-streaming.test.ts");
const switching = testsOf("test/system/runs/switching.test.ts");
const skip = testsOf("services/orchestrator/loop/limits/skip.test.ts");
const creationNames = testsOf("services/orchestrator/runs/create/creation-names.test.ts");
const selfWake = testsOf("services/orchestrator/testing/runs/self-wake.service.test.ts");
const stdio = testsOf("services/mcp-bridge/testing/stdio.test.ts");
const bridge = testsOf("services/mcp-bridge/testing/service.test.ts");
const mcpConfig = testsOf("services/mcp-bridge/config.test.ts");

export const tool: Proofs = {
  "TOOL-1": [
    shown(
      "name and executionType are required, the rest has defaults; kind: builtin says the same",
      toolFiles("TOOL-1 have defaults", "say their kind in two ways", "unknown fields and a missing kind"),
      toolFile("a tool's file says how long its calls take results"),
    ),
    shown(
      "unknown fields, a schema that is none and a gateway tool without URL are refused with the path",
      toolFiles("are refused with the path of the fault: $name"),
      gatewayService("%s by %s is refused when it is registered"),
      filesService("all faults of a tool's file are told at once, too"),
    ),
  ],
  "TOOL-2": [
    shown(
      'internal answers {"success":true,"args":…}, the arguments as they were written',
      router("TOOL-2 KIND-4 an internal tool answers with its arguments as they were written"),
    ),
  ],
  "TOOL-3": [
    shown(
      "POST by default with a JSON body, a query for GET; header values name secrets",
      gateway("send arguments as a JSON body", "%s carries its arguments as the method's convention is"),
      headers("headers that can be sent are no fault"),
    ),
    shown("the tool's own time holds", gateway("time out after their own time")),
    shown(
      "non-2xx is an error with status and a bounded part of the body",
      gatewayService("fetch with their arguments as query, and tell a bad status as an error"),
      response("a response: $what"),
    ),
    shown(
      "a URL decides first, but for internal; with isAsync it is refused",
      gatewayService("a URL decides who is called, whatever the kind, but for internal tools"),
      toolFiles("are refused with the path of the fault: $name"),
    ),
    shown(
      "loopback, link-local and private addresses are refused, redirects included, unless allowed",
      inside(
        "cannot be turned against the inside by $what",
        "loses the headers with their secrets, and they do not come back %s: %s %d",
      ),
      addresses("what the configuration allows is allowed", "%s is a public address"),
      gatewayService("lead nowhere inside"),
    ),
  ],
  "TOOL-4": [
    shown(
      "isAsync answers with the pending call at once",
      outside("an asynchronous tool answers with its pending call"),
    ),
    shown(
      "without it the call waits up to its time, then says so",
      outside("a call that nobody answers times out", "a tool whose time is 30 days waits for its answer"),
      record("at the timeout nobody waits any more"),
    ),
  ],
  "TOOL-5": [
    shown(
      "waiting goes to resolved or, at the timeout, to pending and then resolved",
      outside("a person's answer ends the call at once", "a call that nobody answers times out"),
      record("at the timeout nobody waits any more"),
      killed("a wait whose router was killed ends at its time all the same"),
    ),
    shown(
      "at its expiry the message turns error, the inbox is told, submissions are refused",
      endings("at its expiry a pending call's message turns error", "a watcher that has taken a call is told"),
      answers("a call that has expired takes no answer"),
    ),
    shown(
      "a call's record keeps id, session, run, agent, tool and arguments, and no other call takes its id",
      record("an id is one call's"),
    ),
    shown("retention leaves open calls where they are", retention("when room gets short")),
    shown(
      "a question stays in its space while it is open, and a call that goes by age expires before, which is told",
      testsOf("services/spaces/subscriptions/stream-log.test.ts")("a question stays in its space for as long as"),
      endings("at its expiry a pending call's message turns error"),
    ),
  ],
  "TOOL-6": [
    shown(
      "each call goes to exactly one of the watchers, on any router",
      watching("each of many calls goes to exactly one of three watchers"),
    ),
    shown(
      "a watcher that dies hands on what it had not acknowledged; a watch is taken up under its name",
      watching(
        "what a watcher has not acknowledged goes to another at once",
        "a watcher that comes back under its name",
      ),
      killed("a call that a watcher of a killed router had not acknowledged"),
      plain("the example of a service outside executes calls"),
    ),
    shown(
      "no watcher for a synchronous call is an error after 2 s, in which one may come back",
      watching("a synchronous call that nobody watches for says so", "a watcher that comes within the grace"),
    ),
    shown(
      "a taken at-most-once call is never handed on and ends as outcome_unknown",
      watching("a call that a lost watcher had acknowledged ends as outcome_unknown"),
      killed("a taken call whose watcher and router are both killed"),
    ),
    shown(
      "as plain HTTP: calls as events, results posted, 404 and 409",
      plain("a service outside works by plain HTTP"),
    ),
    shown(
      "calls made while nobody watched reach the next watcher",
      watching("asynchronous calls made while nobody watched"),
    ),
  ],
  "TOOL-7": [
    shown(
      "submitted once, by id: unknown, of another run and resolved are told",
      outside("a person's answer ends the call at once, one submission wins"),
      plain("a service outside works by plain HTTP"),
    ),
    shown(
      "of ten submitters one wins, fifty further ones are refused",
      outside("a person's answer ends the call at once, one submission wins"),
      watching("fifty second submissions are all refused"),
      answers("of ten people who answer at once one wins"),
    ),
    shown(
      "whoever repeats the submission that won is told so, also when the router that took it was killed",
      outside("ten submitters race with ids of their own"),
      killed("a submission that a killed router took is told that it won"),
      answers("of ten people who answer with submissions of their own"),
    ),
  ],
  "TOOL-8": [
    shown(
      "a result in time is returned in line, also across routers and their deaths",
      outside("a person's answer ends the call at once"),
      killed("a caller is woken although the router that stored its result died"),
    ),
    shown(
      "an instant answer is never missed",
      record("an answer that came before anybody waited is not missed"),
      watching("each of many calls goes to exactly one of three watchers"),
    ),
  ],
  "TOOL-9": [
    shown(
      "a late result, or that of a pending call, is one inbox event tr:<callId>",
      outside("the late answer goes to the inbox", "an asynchronous tool answers with its pending call"),
      inbox("an event that is repeated at any time is there once"),
    ),
    shown(
      "however processes die it comes exactly once",
      spacesDeath("an event that is delivered again and again"),
      killed("a router that dies right after a late result is stored"),
      suite("each answer of a person is shown and heard, exactly once"),
    ),
    shown(
      "the agent wakes by itself, unless it does not want to, and its run reads the line",
      suite("an answer to a call that was pending wakes the agent by itself"),
      selfWake("an agent that does not want to be woken"),
    ),
    shown(
      "results and words stand in the words of the seed, and the instructions tell what they mean",
      runContext("results and words stand in its inbox in the words of the seed", "nobody's words pass for a line"),
    ),
  ],
  "TOOL-10": [
    shown(
      "visible by default for gateway, external and space, for no other kind; a hidden space tool is refused",
      visible("are visible unless they say otherwise"),
      toolFiles("are refused with the path of the fault: $name"),
      builtIns("are these, none of them visible"),
    ),
    shown(
      "streamed as started, streaming with partial arguments, done or error",
      streaming("is told as started, then streaming", "that is refused once it is written ends as an error"),
      spaces("partial arguments of a call that runs are streamed"),
    ),
    shown(
      "running, requires_action, complete or error",
      visible("a gateway tool runs in the space", "one that fails turns its message", "requires action until"),
    ),
    shown(
      "tool messages wake no agent",
      suite("words of a person wake the agents of the space, tool messages do not"),
      spaces("a shown call goes from running to complete"),
    ),
    shown(
      "a visible internal tool is shown with its arguments",
      suite("an internal tool that is visible is shown complete"),
    ),
    shown("a call that is not visible is in no space", visible("a call that is not visible is in no space")),
    shown("tool messages cannot be replied to", spaces("no message is a reply")),
  ],
  "TOOL-11": [
    shown(
      "a visible tool without a space answers in these words, and nothing is shown",
      outside("a visible tool outside a space runs nothing"),
      suite("a visible tool without an active space is an error"),
    ),
    shown("it runs nothing", visible("outside a space a gateway tool that is visible asks no server")),
  ],
  "TOOL-12": [
    shown(
      "every agent has these twelve, unlisted, and no tool of another shadows one",
      builtIns("are these, none of them visible"),
      testsOf("test/system/runs/runs.test.ts")("that skips ends completed, without another word"),
      policy("shadows a built-in: only spaces offers tools of these names"),
      creationNames("a function tool of the client shadows no built-in"),
    ),
    shown(
      "enter_space sets the session's space and returns its history",
      spaces("entering a space makes it the session's active one", "entering another space leaves the first"),
      switching("memory and the active space of the old agent stay with it"),
    ),
    shown(
      "send_message without a space is an error",
      switching("memory and the active space of the old agent stay with it"),
    ),
    shown(
      "read_messages pages from the latest message on by offset and limit, as the list of messages does",
      spaces("messages of many writers at once all stand in one order, and are paged"),
    ),
    shown("skip ends the run completed, reason skipped", skip("skip ends the run completed, reason skipped")),
    shown(
      "goals, memories and plans are keyed and the agent's own; goals and memories stand in its instructions",
      agentRoutes("goals, memories and plans are keyed and the agent's own"),
      runContext("goals and memories stand in the instructions"),
    ),
    shown(
      "a plan with a time wakes its agent",
      plans("a plan wakes its agent when its time comes, once"),
      suite("a plan whose time has come wakes the agent, through every service"),
    ),
  ],
  "TOOL-13": [
    shown(
      "members, messages in one order, pages of history, a live stream that resumes",
      spaces(
        "messages of many writers at once all stand in one order",
        "a watch gives what stands from a sequence on",
        "pages go on from their token",
      ),
      spaceState("pages that follow each other join to the whole"),
    ),
    shown(
      "what is said reaches the other agents' inboxes, tool messages do not",
      spaces("what is said reaches the inboxes of the other agents"),
      suite("words of a person wake the agents of the space, tool messages do not"),
    ),
    shown(
      "while instances die nothing is lost or doubled",
      spacesDeath("while instances die, each message stands once"),
    ),
  ],
  "TOOL-14": [
    shown(
      "an agent's file names servers with url or command, whole as they were written",
      toolFiles("servers and workers are sources, whole as they were written"),
      mcpConfig("a source's configuration is read in its JSON form"),
    ),
    shown(
      "stdio, http, sse, ws and tcp are accepted as names of transports, others refused",
      servers("a transport that there is not is a fault of the agent", "a transport that does not go with the server"),
      filesService("a file whose server has an unknown transport is refused"),
    ),
    shown(
      "servers over stdio and http are connected to, as processes and sockets of their own",
      bridge("a server over stdio and one over HTTP are sources beside each other"),
    ),
    shown(
      "servers over sse, ws and tcp are connected to",
      testsOf("services/mcp-bridge/transport/network.test.ts")("is listed and called, many at a time"),
    ),
    shown(
      "allowedTools narrows what is offered and called; absent means all",
      stdio("only allowed tools are offered and called", "is ready when it is initialised and listed"),
    ),
  ],
};
