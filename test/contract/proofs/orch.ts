import { type Proofs, shown, testsOf } from "./proof.ts";

const page = testsOf("console/testing/journeys.test.ts");
const components = testsOf("console/testing/components.test.ts");
const componentFiles = testsOf("services/gateway/console/components.test.ts");
const watchRuns = testsOf("services/orchestrator/runs/list/watch-runs.test.ts");
const watchRunsService = testsOf("services/orchestrator/testing/watching/watch-runs.service.test.ts");
const pageForm = testsOf("console/parts/form/fields.test.ts");
const network = testsOf("services/mcp-bridge/transport/network.test.ts");
const switching = testsOf("services/tool-router/testing/sessions/switching.service.test.ts");
const departures = testsOf("services/tool-router/sessions/switch/drain.test.ts");
const takeover = testsOf("services/tool-router/testing/sessions/takeover.service.test.ts");
const suiteSwitching = testsOf("test/system/runs/switching.test.ts");
const suiteSpaces = testsOf("test/system/runs/spaces.test.ts");
const switchFaults = testsOf("test/faults/switch/switch.test.ts");
const creation = testsOf("services/orchestrator/runs/create/creation.test.ts");
const history = testsOf("services/orchestrator/sessions/history/history.test.ts");
const agentSwitched = testsOf("services/orchestrator/loop/errors/agent-switched.test.ts");
const lateResults = testsOf("services/tool-router/testing/sessions/late-results.service.test.ts");
const agentFile = testsOf("runtime/agent-file/agent-from-file.test.ts");
const policy = testsOf("services/tool-router/tools/policy.test.ts");
const histories = testsOf("services/tool-router/tools/policy-histories.test.ts");
const router = testsOf("services/tool-router/service.test.ts");
const names = testsOf("services/tool-router/tools/names.test.ts");
const catalogue = testsOf("services/tool-router/testing/catalogue/catalogue.service.test.ts");
const catalogueFiles = testsOf("services/tool-router/catalogue/files/files.test.ts");
const filesService = testsOf("services/tool-router/testing/catalogue/files.service.test.ts");
const explain = testsOf("services/tool-router/sessions/contexts/explain.test.ts");
const thirdParty = testsOf("services/tool-router/testing/sessions/third-party.service.test.ts");
const drained = testsOf("services/tool-router/testing/calls/drained.service.test.ts");
const skip = testsOf("services/orchestrator/loop/limits/skip.test.ts");
const escapes = testsOf("services/worker-pool/built-ins/files/escapes.test.ts");
const races = testsOf("services/worker-pool/built-ins/files/races.test.ts");
const shell = testsOf("services/worker-pool/built-ins/shell/shell-exec.test.ts");
const commandEnds = testsOf("services/worker-pool/built-ins/shell/command-ends.test.ts");
const builtInsSuite = testsOf("test/system/tools/hosted-and-builtins.test.ts");
const bridge = testsOf("services/mcp-bridge/testing/service.test.ts");
const stdio = testsOf("services/mcp-bridge/testing/stdio.test.ts");
const stdioStart = testsOf("services/mcp-bridge/testing/stdio-start.test.ts");
const firstAnswers = testsOf("services/mcp-bridge/testing/http/first-answers.test.ts");
const http = testsOf("services/mcp-bridge/testing/http/http.test.ts");
const connections = testsOf("services/mcp-bridge/testing/connections.service.test.ts");
const connectionAudit = testsOf("services/mcp-bridge/connection/connection-audit.test.ts");
const parts = testsOf("services/mcp-bridge/connection/parts.test.ts");
const mcpTools = testsOf("services/mcp-bridge/tools/tools.test.ts");
const transports = testsOf("services/mcp-bridge/transport/transport.test.ts");
const servers = testsOf("services/tool-router/catalogue/checks/check-server.test.ts");
const trail = testsOf("runtime/audit/trail.test.ts");

export const orch: Proofs = {
  "ORCH-1": [
    shown(
      "calls in flight get their time, then are canceled, which is an audit event",
      switching("a call in flight ends in its time", "calls that take too long are canceled at their provider"),
      departures("calls get their time to the millisecond"),
    ),
    shown(
      "that time is 5 s unless told",
      testsOf("services/tool-router/config.test.ts")("calls in flight get 5 s at a switch"),
    ),
    shown(
      "the old context is torn down: MCP connections, tools by any name, nothing is left under load",
      suiteSwitching("no tool and no MCP connection of the old agent is reached"),
      switchFaults("no call is lost or misled, and nothing is left"),
    ),
    shown(
      "an agent that cannot be loaded is refused before anything is torn down",
      switching("an agent that does not exist or cannot be loaded is refused"),
    ),
    shown(
      "parked runs of the old agent are canceled",
      suiteSwitching("a parked run of the old agent is canceled"),
      switching("parked runs of the old agent are canceled, running ones are not"),
      agentSwitched("a run that parks while its session is switched"),
    ),
    shown("the caller's tools stay with the session", suiteSwitching("the tools of the session's caller stay")),
    shown(
      "the new agent is shown what users and agents said, and nothing of the former one's calls and results",
      suiteSwitching("is what users and agents said, without calls and results, in every run until the next switch"),
      history(
        "is neither thoughts nor instructions, news of the inbox, answers to calls or summaries of them",
        "is the same to a fork as to the run at whose point it stands",
      ),
    ),
    shown(
      "with carry: nothing it is shown nothing",
      suiteSwitching("is empty where the switch carries nothing, and cannot be asked for then"),
      creation("a run continues only one of its own session that its agent is shown"),
    ),
    shown(
      "an agent that comes back is shown the same, and its own calls no more",
      suiteSwitching("shows an agent that comes back what it said itself as its own, and its calls no more"),
    ),
    shown(
      "memory, spaces and pending results stay with the old agent",
      suiteSwitching("memory and the active space of the old agent stay with it"),
      suiteSpaces("a result that comes after a switch stays with the agent that called"),
      lateResults("the result of a call $how goes to that agent's inbox alone"),
    ),
    shown("a switch whose router is killed is finished by another", takeover("it is finished by another router")),
  ],
  "ORCH-2": [
    shown(
      "a refusal names agent, tool and rule, to the model and on the trail",
      router("a refused call names agent, tool and rule, is an audit event, and reaches no provider"),
    ),
    shown(
      '["*"] and an empty list allow what is in use; patterns work',
      policy("without a list of allowed tools all in use are", "an empty list of allowed tools allows none"),
      names("ORCH-2 %s and %s: %s"),
      agentFile("an empty list of allowed tools in a file allows what is in use"),
    ),
    shown(
      "nothing outside of use is ever callable, by whatever history",
      policy("lets a tool outside of use be called, by whatever name"),
      histories("lets a tool outside of use be called"),
    ),
    shown(
      "built-ins need no listing, and allowed_tools does not narrow them",
      skip("allowed_tools does not narrow the built-ins"),
    ),
    shown(
      "the session's caller tools need no listing, and allowed_tools narrows them",
      router("a caller's tools need no listing, and allowed_tools narrows them"),
    ),
  ],
  "ORCH-3": [
    shown(
      "an alias and the real name lead to one tool; either in allowed permits both",
      router("KIND-1 a call goes to the provider of its source"),
      policy("an alias or the real name in allowed permits both"),
    ),
    shown(
      "an alias that points nowhere, in a circle, or is named like a built-in is refused when the agent is loaded",
      catalogueFiles("an alias that points nowhere, in a circle, or is named like another tool is refused"),
      catalogue("an agent with faults is refused with all of them"),
    ),
    shown(
      "fs_read and its kin are targets only where use names them",
      policy("what touches this machine is in use by its very name alone"),
    ),
  ],
  "ORCH-4": [
    shown(
      "the derived name fits providers and never collides",
      names("every name fits what providers of models accept", "two references never share a name"),
      policy("makes a name mean two tools: each model name"),
    ),
    shown(
      "it is stable when servers are added",
      policy("changes a model name that stands"),
      histories("in no history of additions does a name that stands change"),
      thirdParty("a provider that is added later takes over no name"),
    ),
  ],
  "ORCH-5": [
    shown(
      "an agent for which no tool resolves, or that names one that does not exist, says so when it is loaded",
      catalogueFiles("say which of their tools do not exist", "say that none of their tools resolves"),
      filesService("an agent whose tools do not resolve is loaded and says so"),
    ),
    shown(
      "explain answers why",
      catalogue("explain tells the way and the rule that decides"),
      explain(
        "a tool that is in use and not allowed",
        "a tool whose source cannot be used",
        "a visible tool needs a space",
      ),
    ),
  ],
  "ORCH-6": [
    shown(
      "servers over stdio and streamable HTTP, both real, in one agent's offer",
      bridge("a server over stdio and one over HTTP are sources beside each other"),
      bridge("lists and calls server-everything and server-filesystem"),
      http("lists and calls, with progress, logs and the headers", "is discovered, listed and called"),
    ),
    shown(
      "servers over SSE, WebSocket and TCP",
      network(
        "is listed and called, many at a time",
        "that is cut off fails what it held",
        "that is not there is unavailable",
      ),
    ),
    shown(
      "ready when initialised and listed; the startup timeout is each server's own",
      stdio("is ready when it is initialised and listed"),
      stdioStart("one that hangs is unavailable after its own startup timeout", "one that initialises and never lists"),
    ),
    shown(
      "that timeout is 5 s unless told",
      testsOf("services/mcp-bridge/config.test.ts")("a server has 5 s to start"),
    ),
    shown(
      "one that fails or hangs is unavailable with its reason, and delays and hides no other",
      bridge("a server that fails or hangs delays and hides no other"),
      stdioStart("one that crashes at its start is unavailable with its exit code"),
      http("an address where nobody listens is unavailable"),
      firstAnswers("a server that answers all with HTTP %i is told with it"),
    ),
    shown(
      "older servers over HTTP are reached, whatever they say to a question that they do not know",
      firstAnswers("a server that answers server/discover with %s", "only the SSE of 2024-11-05 is recognised"),
    ),
    shown(
      "a connection belongs to one session and agent, unless it is shared",
      bridge("a connection belongs to one session and agent, unless it is shared"),
    ),
    shown(
      "what is shared outlives the release of a scope, as at a switch",
      connections("releasing a scope ends its servers on every instance, and nothing else"),
    ),
  ],
  "ORCH-7": [
    shown(
      "all pages, annotations whole, one bad tool hides no other",
      stdio("one bad tool never hides the rest, on any page"),
      mcpTools("of any form is taken or refused with a reason"),
    ),
    shown("name, description and schemas are kept as listed", mcpTools("keeps name, title, description and schemas")),
    shown(
      "list_changed refreshes, over stdio, HTTP and a subscription, in a storm too",
      stdio("list_changed refreshes, in a storm too"),
      http("list_changed refreshes, also after the stream of events was closed", "tells its changes on a subscription"),
      bridge("a watch tells the tools at once and after each change"),
      parts("a storm of requests puts it off no longer"),
    ),
    shown(
      "servers are applied and removed while the bridge runs, and every agent's offer follows",
      bridge("are applied, offered by themselves, listed and deleted", "are told to a watch when they come and go"),
    ),
  ],
  "ORCH-8": [
    shown(
      "green, yellow and red by latency and misses",
      parts("with %i misses and %i ms is %i", "turns yellow at the first miss, red at the second"),
    ),
    shown(
      "with a check, on a real server, also of a revision without ping",
      stdio("with a check, the light shows that the server answers", "a server that misses two checks is red"),
      http("is checked without a ping, which it does not know"),
    ),
    shown(
      "a dead server comes back by itself",
      http("a server that goes is red, and green again by itself"),
      stdio("a server that misses two checks is red, and is connected to again"),
    ),
    shown("sessions are told, whichever instance holds it", connections("their health is told, whichever instance")),
    shown(
      "a slow answer is told with its latency and reason",
      parts("an answer that takes longer than a second is yellow"),
    ),
  ],
  "ORCH-9": [
    shown(
      "fs_read and fs_write below allowedPaths alone, symlinks and .. resolved, in races too",
      escapes("is refused to a reader", "no way out lets a writer change or make anything outside"),
      races("a link that is swapped between inside and outside", "nor does it let a writer change or make anything"),
    ),
    shown(
      "shell_exec runs what is listed, letter by letter, without a shell",
      shell("is refused", "an argument is one argument, whatever is in it"),
      builtInsSuite("the policy is the catalogue's: nothing that the model says widens it"),
    ),
    shown("its timeout ends the whole process group", commandEnds("its time over, the whole group is ended")),
  ],
  "ORCH-10": [
    shown(
      "teardown ends server processes with their children, also ones that ignore SIGTERM, and at the bridge's death",
      connections(
        "releasing a scope ends its servers on every instance",
        "of the bridge leaves no server and none of its",
      ),
      stdio("closing ends one that ignores SIGTERM, with its children"),
    ),
  ],
  "ORCH-11": [
    shown(
      "permitted and blocked can be watched live, from any place in the trail",
      router("decisions can be watched live, filtered, from any place"),
      trail("what is recorded can be followed live, and read backwards"),
      drained("what a router decided right before SIGTERM stands on the trail"),
    ),
    shown(
      "built, switched, switch timed out and torn down",
      switching(
        "a session comes through its states in order",
        "calls that take too long are canceled at their provider",
      ),
    ),
    shown(
      "unavailable, and available again, with the reason",
      connectionAudit("a connection is built, away with its reason, back"),
    ),
  ],
  "ORCH-12": [
    shown(
      "a page of agents, tools, servers, runs, spaces and the audit stream",
      page(
        "is watched as it happens, answered in the page",
        "says who executed each call, in how many attempts",
        "are asked for once and follow what happens from there on",
        "tools say who may call them and why not",
        "a session is switched to another agent",
        "each decision of the audit trail leads to its call",
        "axe finds nothing",
      ),
    ),
    shown(
      "runs as they happen, at a cost that does not grow with those that are stored",
      watchRuns(
        "10,000 runs that stand cost a watcher nothing",
        "a principal is told of its own runs only",
        "who is slower than changes are dropped is told the gap",
        "cannot be read at once is read again",
        "that stays unreadable is passed over",
        "begins again where it stood",
      ),
      watchRunsService("tells each run as it is accepted", "goes on from any place with what came since"),
    ),
    shown(
      "people answer tools in it, by a form from the schema",
      page("is found in the inbox and declined from a link on a phone"),
      pageForm("asks for each property in its kind"),
    ),
    shown(
      "a component for each tool name, a generic one otherwise",
      components(
        "is asked as the component draws it, and answered by it",
        "tells a component what the suite said against its answer",
        "is named with its fault, and the plain form answers",
        "a tool without one has the plain form",
      ),
      componentFiles("an edit shows at the next look", "it is told whether there is one"),
    ),
  ],
  "ORCH-13": [
    shown(
      "a transport is a registered module, chosen by name or scheme",
      transports("are chosen by name, else by scheme", "that are not registered are refused"),
    ),
    shown(
      "a third party's module is used like any other",
      transports("of third parties are used like any other"),
      servers("where third parties bring transports, names and schemes are theirs"),
    ),
    shown(
      "one that TOOLBUS_MCP_TRANSPORTS names reaches a server behind a socket",
      testsOf("services/mcp-bridge/transport/testing/third-party.test.ts")(
        "a transport of a third party's module, named by",
      ),
    ),
  ],
};
