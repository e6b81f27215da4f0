import { open, type Proofs, shown, testsOf } from "./proof.ts";

const checks = testsOf("tools/check/checks.ts");
const methods = testsOf("test/contract/methods/methods.test.ts");
const imports = testsOf("test/architecture/imports.test.ts");
const unary = testsOf("runtime/rpc/nats/client/unary.test.ts");
const stream = testsOf("runtime/rpc/nats/behaviour/stream.test.ts");
const streamEnds = testsOf("runtime/rpc/nats/behaviour/stream-ends.test.ts");
const flow = testsOf("runtime/rpc/nats/channel/flow.test.ts");
const deadPeer = testsOf("runtime/rpc/nats/behaviour/dead-peer.test.ts");
const microService = testsOf("runtime/rpc/nats/behaviour/micro-service.test.ts");
const peer = testsOf("test/contract/two-ends/independent-peer.test.ts");
const peerServer = testsOf("test/contract/two-ends/independent-peer-server.test.ts");
const peerFailures = testsOf("test/contract/two-ends/independent-peer-failures.test.ts");
const conformance = testsOf("test/contract/conformance/conformance.test.ts");
const rules = testsOf("test/contract/conformance/rules.test.ts");
const pairs = testsOf("test/system/tools/pairs.test.ts");
const gateway = testsOf("services/gateway/gateway.test.ts");
const refusals = testsOf("services/gateway/testing/refusals.service.test.ts");
const http = testsOf("runtime/rpc/http/peers.test.ts");
const clients = testsOf("test/system/tools/clients.test.ts");
const clientsOfCi = testsOf("examples/clients/clients.ts");
const restarts = testsOf("test/system/operation/restarts.test.ts");
const busTests = testsOf("runtime/bus/bus.test.ts");
const up = testsOf("test/system/operation/up.test.ts");
const compose = testsOf("test/system/operation/cluster/compose.test.ts");
const cluster = testsOf("test/system/operation/cluster/cluster.test.ts");
const quorum = testsOf("test/system/operation/cluster/quorum.test.ts");
const storage = testsOf("runtime/bus/link/storage.test.ts");
const clusterRun = testsOf("test/system/operation/cluster/cluster-run.test.ts");

export const bus: Proofs = {
  "BUS-1": [
    shown(
      "the contract is linted, formatted and breaks no client of its release",
      checks("contract is linted (buf lint)", "contract is formatted (buf format)", "contract breaks no client of its"),
    ),
    shown(
      "nor does a rule get tighter or a documented default change",
      checks("contract refuses nothing that its last release took", "contract says the same defaults"),
    ),
    shown("the public contract imports nothing internal", checks("public contract imports nothing internal")),
    shown("stubs are generated, committed and proven fresh", checks("generated code is fresh")),
    shown(
      "services share nothing but the contract, whose every method is served",
      imports("a service calls another over the bus and never imports it"),
      methods("every method of the contract is served"),
    ),
    shown(
      "what is internal is offered to nobody outside",
      gateway("what is internal is offered to nobody outside"),
      testsOf("tools/gen/gen.test.ts")("what is internal is generated for the suite's own services"),
    ),
    shown(
      "every refusal carries a reason of one enum, in which none is unused",
      testsOf("test/architecture/reasons.test.ts")(
        "has no reason that nothing raises",
        "has every reason that is raised",
        "is used by all who refuse: an error of the wire is made in one place",
      ),
    ),
    shown(
      "every method declares who may call it",
      testsOf("test/system/access/access.test.ts")("every method has a rule"),
    ),
  ],
  "BUS-2": [
    shown(
      "the generated client and handler, unchanged, unary and streaming",
      unary("the generated client reaches the generated handler"),
      stream("a server stream gives its messages in order", "a client stream is read", "a two-way stream answers"),
    ),
    shown(
      "deadlines, cancellation, metadata and typed errors",
      unary(
        "a timeout becomes the handler's deadline",
        "a caller that aborts aborts the handler's signal",
        "metadata travels both ways",
        "an error keeps its code",
      ),
      streamEnds("a deadline ends a stream on both sides"),
    ),
    shown(
      "back-pressure, and payloads over the server's limit",
      flow("credits hold back a server whose reader is slow", "carries %i bytes there and back over a max_payload"),
    ),
    shown(
      "peers by the document alone agree, in both directions and in failures",
      peer("makes calls of all four shapes"),
      peerServer("makes calls of all four shapes"),
      peerFailures("sets a deadline, which the handler has too"),
    ),
    shown(
      "each rule of the wire by frames in and out, for any server and any client",
      conformance("the %s holds the case: %s"),
      rules("has a case for every rule"),
    ),
    shown(
      "a peer that dies or freezes is noticed",
      deadPeer(
        "a server that is killed in mid-stream",
        "a client that is killed in mid-stream aborts the handler within 3 s, with",
      ),
    ),
    shown(
      "while one of two instances is silent, calls go to the other",
      deadPeer(
        "gets no call once its silence was noticed",
        "a server that freezes gets no more calls from nats-server",
      ),
      testsOf("test/faults/outage/outage.test.ts")("one of two instances is silent: calls go to the other"),
    ),
    shown(
      "two of a service share its work, and only what one held fails when it is killed",
      pairs(
        "share the calls: each serves at least a quarter",
        "what one that is frozen does not answer is read from the other",
      ),
    ),
  ],
  "BUS-3": [
    shown(
      "Connect, gRPC and gRPC-Web on one port, streaming included",
      gateway("calls a service with metadata both ways", "streams, and its leaving reaches the service"),
      http("reads a server's stream", "grpc-js calls it"),
    ),
    shown(
      "each refusal by each protocol has a code, a message that names the fault, and a reason, before a handler sees the request, too",
      refusals("serves a request that has no fault", "refuses $fault with its reason"),
    ),
    shown(
      "server reflection and health",
      gateway("reflection lists the services", "health tells which services somebody serves"),
    ),
    shown(
      "buf curl by reflection, a Python gRPC client by generated stubs",
      clients("buf curl lists tools, calls one", "a Python gRPC client lists tools"),
    ),
    shown("a Go client by generated stubs", clientsOfCi("a Go client lists tools, calls one")),
    shown(
      "grpcurl by reflection alone, which learns nothing internal",
      clientsOfCi("grpcurl lists services, calls a tool"),
    ),
    shown(
      "a page in Chromium by generated stubs, with Connect and gRPC-Web, from another origin",
      clientsOfCi("a page in Chromium lists tools, calls one"),
    ),
  ],
  "BUS-4": [
    shown(
      "each service behind the gateway, and all at once, is killed in a running suite, which is whole again within 2 s",
      restarts(
        "it starts again, the suite is whole within two seconds",
        "all of them at once",
        "nats-server: it is started",
      ),
    ),
    shown(
      "a gateway that died is back where it was",
      testsOf("test/system/operation/gateway-again.test.ts")("a gateway that took a free port and died is back"),
    ),
    shown("services start in any order, before NATS too", restarts("each waits for what it needs")),
    shown(
      "what is stored outlives a kill of the server",
      busTests("stores keep what was written across a kill of the server"),
    ),
  ],
  "BUS-5": [
    shown(
      "$SRV tells services, instances, methods and what their calls took",
      microService("nats tools see a service with its instances"),
      peerFailures("finds our server among the micro services"),
    ),
  ],
  "BUS-6": [
    shown(
      "one command starts everything, NATS beside it, and leaves nothing behind",
      up("starts everything, says where it is", "that is killed takes everything with it"),
    ),
    shown(
      "everything in one process",
      testsOf("test/system/operation/one-process.test.ts")("has as many processes as it says"),
    ),
    shown("the same services run as a process each", up("beside `up` shares its work, on a server that runs already")),
    shown(
      "they run against a cluster of three, of which a node is killed",
      clusterRun("a run through the gateway ends well though the node"),
      cluster("every stream and every bucket has a copy on each of the three nodes"),
    ),
    shown(
      "with two of three nodes away, or a full disk, every call ends in time and says why",
      quorum("with two of three nodes away every call ends within 10 s"),
      storage("on a full disk a call ends in time"),
    ),
    shown(
      "docker-compose.yml is read: services, variables, files, three nodes of NATS",
      compose(
        "runs every service, and nothing else but NATS",
        "has three NATS nodes that differ in name and store only",
      ),
    ),
    open("docker-compose.yml starts and answers", "No Docker engine runs it in the tests."),
  ],
};
