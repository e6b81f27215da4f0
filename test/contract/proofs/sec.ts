import { open, type Proofs, shown, testsOf } from "./proof.ts";

const gateway = testsOf("services/gateway/gateway.test.ts");
const hostGuard = testsOf("services/gateway/access/host-guard.test.ts");
const callKeys = testsOf("test/system/access/call-keys.test.ts");
const callKeyTokens = testsOf("runtime/rpc/access/tokens/call-keys.test.ts");
const access = testsOf("test/system/access/access.test.ts");
const bridge = testsOf("services/mcp-bridge/testing/owners.service.test.ts");
const keys = testsOf("test/system/operation/keys.test.ts");
const owners = testsOf("services/tool-router/testing/sessions/owners.service.test.ts");
const grants = testsOf("services/tool-router/testing/sessions/grants.service.test.ts");
const runQuota = testsOf("services/orchestrator/runs/run-quota.test.ts");
const notices = testsOf("services/spaces/space/notices.test.ts");
const quotas = testsOf("services/spaces/subscriptions/quota/quotas.test.ts");
const assembly = testsOf("runtime/rpc/nats/channel/assembly/assembly.test.ts");
const runShares = testsOf("services/orchestrator/subscriptions/streams/run-shares.test.ts");
const results = testsOf("runtime/results/store/store.test.ts");
const trail = testsOf("runtime/audit/trail.test.ts");
const answers = testsOf("services/tool-router/calls/answers/answer.test.ts");
const inboxes = testsOf("services/spaces/inbox/inbox.test.ts");
const spaceGrants = testsOf("services/spaces/testing/grants.test.ts");
const gatewayGrants = testsOf("services/gateway/testing/grants.service.test.ts");
const operators = testsOf("test/system/operation/operators.test.ts");
const workers = testsOf("services/worker-pool/testing/calls.test.ts");
const hosted = testsOf("services/worker-pool/hosted/hosted.test.ts");
const shell = testsOf("services/worker-pool/built-ins/shell/shell-exec.test.ts");
const confinement = testsOf("runtime/lifecycle/confinement.test.ts");
const foreignHosts = testsOf("services/mcp-bridge/testing/http/foreign-hosts.test.ts");
const webTools = testsOf("services/tool-router/calls/execute/http/http-execution.test.ts");
const hostile = testsOf("test/system/security/hostile.test.ts");
const environment = testsOf("test/system/operation/environment.test.ts");
const stdio = testsOf("services/mcp-bridge/testing/stdio.test.ts");
const mcpConfig = testsOf("services/mcp-bridge/config.test.ts");
const logger = testsOf("runtime/lifecycle/logger.test.ts");
const failure = testsOf("runtime/failure/connect.test.ts");
const validator = testsOf("runtime/schema/json-schema/validator.test.ts");
const largeAnswers = testsOf("services/mcp-bridge/testing/large-answers.test.ts");
const failures = testsOf("runtime/failure/failure.test.ts");
const told = testsOf("runtime/results/bounded-event.test.ts");
const shares = testsOf("services/gateway/access/shares/shares.test.ts");
const contentionLimiter = testsOf("services/gateway/access/shares/contention-limiter.test.ts");
const childProcess = testsOf("runtime/lifecycle/child-process/child-process.test.ts");
const gatewayShares = testsOf("services/gateway/testing/shares.service.test.ts");
const costs = testsOf("runtime/schema/json-schema/costs.test.ts");
const patterns = testsOf("runtime/schema/json-schema/patterns.test.ts");
const bus = testsOf("runtime/bus/bus.test.ts");
const up = testsOf("test/system/operation/up.test.ts");
const suiteKey = testsOf("cli/suite/keys/key.test.ts");
const bashCompletion = testsOf("cli/completing/bash-script.test.ts");
const licenses = testsOf("tools/pack/licenses.test.ts");
const timeLimit = testsOf("runtime/schema/json-schema/testing/time-limit.test.ts");
const resourceWatches = testsOf("services/mcp-bridge/link/resources/resource-watches.test.ts");
const credentials = testsOf("test/system/security/bus-credentials.test.ts");
const compose = testsOf("test/system/operation/cluster/compose.test.ts");
const checks = testsOf("tools/check/checks.ts");
const visible = testsOf("runtime/content/visible/visible.test.ts");
const printing = testsOf("cli/printing/print.test.ts");
const imports = testsOf("test/architecture/imports.test.ts");
const natsServer = testsOf("runtime/bus/nats-server/nats-server.test.ts");
const installs = testsOf("services/worker-pool/testing/installs.test.ts");

const identity = testsOf("test/system/security/identity.test.ts");
const busTokens = testsOf("runtime/rpc/access/tokens/tokens.test.ts");
const tokens = testsOf("services/gateway/access/authentication/tokens.test.ts");
const tls = testsOf("services/gateway/testing/tls.service.test.ts");
const strangers = testsOf("services/gateway/testing/strangers.service.test.ts");
const pins = testsOf("services/tool-router/testing/catalogue/pins.service.test.ts");
const turncoat = testsOf("test/system/security/turncoat.test.ts");
const bodies = testsOf("services/gateway/testing/bodies.test.ts");

const connectionShares = testsOf("runtime/rpc/http/sockets/connections/connection-shares.test.ts");
const turns = testsOf("runtime/rpc/http/sockets/turns.test.ts");
const attack = testsOf("test/attack/attack.test.ts");

export const sec: Proofs = {
  "SEC-1": [
    shown(
      "a request without a key is refused where keys are set, and a principal that a client claims is dropped",
      gateway("a request without a key is refused", "calls a service with metadata both ways"),
    ),
    shown(
      "without keys the gateway listens on loopback only, and answers no name of another host",
      gateway("the gateway does not start with %s"),
      hostGuard("a request for %s gets %i from a gateway without keys"),
    ),
    shown(
      "a JWT proves who calls, and is refused in words",
      gateway("a token that does not hold is refused in words"),
      tokens("that %s is refused in words", "may rotate"),
    ),
    shown("the gateway speaks TLS and takes renewed certificates", tls("a renewed certificate is shown")),
    shown(
      "each service and each third party has a credential of its own on the bus, which reaches what is its own",
      credentials(
        "a stranger may not listen to %s",
        "a stranger may not send to %s",
        "is refused by every service as one who sent nothing",
      ),
      credentials("the worker-pool may not send to %s", "the worker-pool may not listen to %s"),
      credentials("is told in its log which service was refused what"),
      bus("refuses at once a key that the server does not know"),
      compose("finds its own key where it looks for it, and no other's"),
    ),
    shown(
      "a command sends its key to the suite that it was started for, and to no address that somebody else names",
      suiteKey(
        "sends no key to the address that a cloned repository names",
        "that was not written on this machine since it started",
        "that others can read or write",
        "a record of another user",
      ),
    ),
    shown(
      "absence of a principal is no privilege: a request without a token reaches nothing that has a rule",
      identity("reaches nothing at %s, whatever its headers claim"),
    ),
    shown(
      "who asks on the bus is signed, for one service, and no service speaks for whom it does not work",
      identity("by the key of %s cannot be %j", "cannot use at a service what the router sent it"),
      identity("that has expired is refused", "of a key that was changed is refused within seconds"),
      busTokens("at another service than the one", "when it has expired", "it is signed once"),
    ),
    shown("whoever starts the suite gets a key without asking", up("`up` makes a key that its user alone can read")),
  ],
  "SEC-2": [
    shown(
      "what belongs to a session is its owner's alone, method by method",
      keys("is refused to everybody but the owner", "is open to the owner"),
    ),
    shown(
      "what all sessions use is changed by operators alone",
      operators("is refused to a key that is no operator's"),
    ),
    shown(
      "every method declares its rule, and gives each asker what the page of access says",
      access("every method has a rule", "every method gives each asker what the page of access says"),
    ),
    shown(
      "a key of one call reads and answers that call, at every door, and does nothing else",
      callKeys(
        "reads its call and answers it, and the trail says which key did",
        "is of no use once its call is answered",
        "is refused by every method that does not say that it takes one",
        "reaches no other call by %s",
        "is refused by what is open to everybody, too",
        "is refused past the gateway as well",
        "refuses a key of one call",
        "plain HTTP takes an answer for the call of the key, and for no other",
        "has expired, was changed, or is of a principal without a key",
        "never comes into a log",
        "by whoever may answer the call",
        "for calls that wait for people, and for no longer than a week",
      ),
      callKeyTokens("that %s is refused", "is worth nothing after its end", "is no identity on the bus"),
      testsOf("console/testing/call-key.test.ts")(
        "answers its question from a phone, where it is all that is seen",
        "whose question is answered elsewhere says so",
      ),
    ),
    shown(
      "lines of workers and connections to MCP servers are shown to whom they belong",
      workers("lines of a call are shown to its principal and to operators"),
      bridge("connections of a session are shown to its owner and to operators, and closed by them"),
    ),
    shown(
      "a call is taken by whom it was delivered to, and by nobody who makes up the id of a delivery",
      owners("nobody takes a call by an id that was made up", "a delivery is for the principal that it went to"),
    ),
    shown(
      "agents and external tools are granted to principals",
      grants(
        "an agent is for the principals that it is granted to",
        "calls of an external tool go to whom it is granted",
        "grants of a tool that nobody watches for are refused",
      ),
    ),
    shown(
      "spaces are granted to principals",
      spaceGrants(
        "a space is for whom it is granted to and for who created it",
        "a grant that is taken back ends what stands on it",
      ),
    ),
    shown(
      "what has no grants is for those whom an operator or a token names, and for the one who alone has a key",
      spaceGrants("what has no grants is for those whom gateways name"),
      gatewayGrants(
        "what has no grants is for whom an operator names, for the one who alone has a key, and for operators",
        "what a token grants is told before its request goes on",
      ),
      operators("of several keys, an agent without grants is for an operator's alone"),
    ),
  ],
  "SEC-3": [
    shown(
      "workers, hosted modules, commands and MCP servers see what their entry gives them, no environment of a service",
      workers("a tool gets the secrets that its entry names and no others"),
      hosted("it is given the config and the secrets of its source's entry"),
      shell("the environment is bare"),
      stdio("its environment is what is allowed and what its configuration says"),
      mcpConfig("the environment that servers inherit is an allow-list"),
    ),
    shown(
      "no process of the suite shows the secrets that it was given, and a service hears of no other one's",
      environment(
        "shows a secret that it was given by the shell",
        "takes secrets from files, and shows none",
        "is handed the variables that it reads, and no secret of another one",
      ),
    ),
    shown("a tool's process that knocks at the bus is not let in", attack("no attack reaches anything")),
    shown(
      "workers, hosted modules, MCP servers and commands run confined where the machine can, and it is said where it cannot",
      hostile("reaches no key, no process, no program and no door of the suite"),
      confinement(
        "tools are confined wherever users may make namespaces, with nothing installed by hand",
        "a child is confined where that is possible, and what is not possible is told",
        "sees no process but its own, and no private file",
        "changes nothing where programs of the suite are",
        "has SIGTERM to end by",
        "nothing of it is left when it is killed",
      ),
    ),
  ],
  "SEC-4": [
    shown(
      "a pinned tool that changes is refused until an operator approves what it became",
      pins(
        "a pinned tool that changes is refused by every router, and shows a model nothing of what it became",
        "an operator approves exactly the change that was looked at",
        "what a digest names is held without a record, and a changed order of fields changes nothing",
      ),
      turncoat("a server that turns on who trusts it misleads no model, and is approved by nobody but an operator"),
    ),
    shown(
      "of any other tool a change is an audit event",
      pins("a tool that nobody pins may change, which is audited; a new agent of an old name begins without pins"),
    ),
  ],
  "SEC-5": [
    shown(
      "schemas and patterns run on no service's own thread, and are cut off if they take too long",
      validator("have their time, and are said to be too slow"),
      costs("is compiled on no thread that others wait for", "is refused with the limits"),
      timeLimit("that takes too long is ended", "that the machine had no time for is not slow"),
      patterns(
        "that backtracks without end takes no time of the thread that asks",
        "keep another's no longer than one of them takes",
      ),
    ),
    shown(
      "answers of MCP servers over HTTP, and what tools tell while they run, have bounds",
      largeAnswers("ends the call with the limit, and the rest of it is not read"),
      told("a text of progress or log that is too long is told as its beginning and its length"),
      failures("a message that a peer has chosen is as long as a person reads"),
    ),
    shown(
      "requests and stores have bounds",
      gateway("a request over the limit is refused"),
      bus("cannot grow without bound"),
    ),
    shown(
      "nothing is read before the key is checked, and bodies have their time and size",
      strangers("without a key the head of a request is answered", "reads a few KB and unpacks nothing"),
      bodies("packed 1,000 times is not unpacked", "half a body has its time", "1,000 half-sent requests"),
      bodies("a request whose connection breaks before its end is not served"),
    ),
    shown(
      "who asks much at once waits for itself, and what computes long gives way",
      contentionLimiter(
        "the one with many requests waits for itself",
        "that asks alone never waits",
        "keeps nobody waiting",
      ),
      trail("what else has to be done waits for one slice of it", "only those are read whose lines have the words"),
      childProcess("gives way to the process that started it"),
    ),
    shown("another principal loses no call while the suite is attacked", attack("another principal loses no call")),
    open("another principal's p99 stays within three times its own", "`npm run attack` measures it; no test does."),
  ],
  "SEC-6": [
    shown(
      "of what is watched at a server that principals share, each has its part, counted and given back",
      resourceWatches(
        "leaves room for others",
        "that nobody watches any more leaves its room",
        "costs no look at what else",
      ),
    ),
    shown(
      "each principal has its share of a gateway's requests, calls and streams, and a refusal says which is used up",
      shares("a principal has so many calls and streams at once", "so many requests a second"),
      gatewayShares("who has all of its calls in flight is refused the next one, and others are not"),
    ),
    shown(
      "each address has its share of connections, and each connection its turn",
      connectionShares("the first request is told so", "beyond twice the share a connection is cut"),
      turns("a few begin in each turn of the event loop", "each connection has its turn"),
    ),
    shown(
      "each principal has its share of runs in flight, and of paths of plain HTTP",
      runQuota("who has its share of runs in flight is refused the next"),
      gatewayShares("paths of plain HTTP have their share, too"),
    ),
    shown(
      "nobody pushes what others have said, or what waits for them, out of a store: who holds the most gives way",
      quotas(
        "who holds more than its part has an excess",
        "a principal that fills the store of spaces loses its own oldest messages",
        "a principal that fills the inboxes gets no further event",
      ),
      inboxes("of whoever has its share of all inboxes takes nothing further"),
      inboxes("an agent is told how many words its full inbox has forgotten"),
      notices("an inbox that is full keeps no message from the inboxes of others"),
    ),
    shown(
      "each principal has its share of the bytes of runs, results, memory and the audit trail",
      runShares("a principal whose runs take the most is refused the next while room is short"),
      results("of a principal that has its share of all results none is kept while room is short"),
      quotas("who has its share of all memory is refused more while room is short"),
      trail("a principal that fills the audit trail loses its own oldest events"),
      answers("that find no room in the store are told with their beginning"),
    ),
    shown(
      "large messages of one principal leave room for another's",
      assembly("large requests of one principal leave room for another's", "who holds least comes first"),
    ),
    shown(
      "so it has of recorded calls, sessions, declarations and spaces, and loses its own first",
      testsOf("services/tool-router/calls/due-work/retention.test.ts")(
        "is refused the next one while room is short, at once",
        "loses its own when room is made, and nobody else loses older ones",
      ),
      testsOf("services/tool-router/testing/sessions/owners.service.test.ts")(
        "a principal whose sessions take the most opens no more",
      ),
      testsOf("services/caller-relay/testing/shares.test.ts")("a principal whose declarations take the most"),
      quotas("a principal whose spaces take the most creates no more"),
    ),
  ],
  "SEC-7": [
    shown(
      "a shell that completes runs nothing of what is typed or offered",
      bashCompletion("runs nothing at Tab of what was typed", "runs nothing at Tab of what it is offered"),
    ),
    shown(
      "errors and logs hold no secrets",
      workers("a tool gets the secrets that its entry names and no others"),
      logger("secrets never stand in a log"),
      mcpConfig("a missing one is named, and none is shown"),
      failure("leaks nothing of what was not written for the caller"),
      up("on a server that runs already, whose keys no line tells"),
      foreignHosts(
        "cannot send a message on to another host",
        "cannot send the stream of events on to another host",
        "shows it to nobody in an error",
      ),
      webTools("do not follow a redirect to another origin with a secret"),
    ),
    shown(
      "terminals are sent no control characters of models, tools and people",
      visible("does nothing on a terminal", "lines, tabs and all letters stay as they are", "JSON keeps its value"),
      printing("neither rewrites the line above it nor looks like another's"),
      imports("the command writes to a terminal where control characters are taken out"),
    ),
    shown("so are pages", testsOf("console/testing/journeys.test.ts")("stands in a page without control characters")),
  ],
  "SEC-8": [
    shown("npm packages are locked for every platform", checks("lock file holds every package of every platform")),
    shown(
      "packages have hashes and known licences, programs that are fetched their hashes, workers' files their lock files",
      checks("locked packages have hashes and known licences"),
      natsServer(
        "what is fetched is the pinned version with its hashes, or nothing",
        "holds the hashes of the version",
      ),
      installs("a lock file beside a tool file is obeyed", "UV_FROZEN refuses a file that nobody has locked"),
    ),
    shown("the package brings the license texts of what it bundles", licenses("whatever their files are called")),
    open(
      "everything installed is locked with hashes",
      "The image of the NATS nodes is named by tag, what uv runs for developers by version.",
    ),
    open("SECURITY.md says what is defended and what is not", "It does; no test holds it to the truth."),
  ],
};
