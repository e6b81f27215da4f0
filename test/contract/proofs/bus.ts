import { open, type Proofs, shown } from "./proof.ts";

export const bus: Proofs = {
  "BUS-1": [
    shown(
      "the contract is linted, formatted and breaks no client of its release",
      "contract is linted (buf lint)",
      "contract is formatted (buf format)",
      "contract breaks no client of its",
    ),
    shown(
      "nor does a rule get tighter or a documented default change",
      "contract refuses nothing that its last release took",
      "contract says the same defaults",
    ),
    shown("the public contract imports nothing internal", "public contract imports nothing internal"),
    shown("stubs are generated, committed and proven fresh", "generated code is fresh"),
    shown(
      "services share nothing but the contract, whose every method is served",
      "a service calls another over the bus and never imports it",
      "every method of the contract is served",
    ),
    shown(
      "what is internal is offered to nobody outside",
      "what is internal is offered to nobody outside",
      "what is internal is generated for the suite's own services",
    ),
    shown(
      "every refusal carries a reason of one enum, in which none is unused",
      "has no reason that nothing raises",
      "has every reason that is raised",
      "is used by all who refuse: an error of the wire is made in one place",
    ),
    shown("every method declares who may call it", "every method has a rule"),
  ],
  "BUS-2": [
    shown(
      "the generated client and handler, unchanged, unary and streaming",
      "the generated client reaches the generated handler",
      "a server stream gives its messages in order",
      "a client stream is read",
      "a two-way stream answers",
    ),
    shown(
      "deadlines, cancellation, metadata and typed errors",
      "a timeout becomes the handler's deadline",
      "a caller that aborts aborts the handler's signal at",
      "metadata travels both ways",
      "an error keeps its code",
      "a deadline ends a stream on both sides",
    ),
    shown(
      "back-pressure, and payloads over the server's limit",
      "credits hold back a server whose reader is slow",
      "carries %i bytes there and back over a max_payload",
    ),
    shown(
      "peers by the document alone agree, in both directions and in failures",
      "client by the document alone makes calls of all four shapes",
      "server by the document alone makes calls of all four shapes",
      "up sets a deadline, which the handler has too",
    ),
    shown(
      "each rule of the wire by frames in and out, for any server and any client",
      "the %s holds the case: %s",
      "has a case for every rule",
    ),
    shown(
      "a peer that dies or freezes is noticed",
      "a server that is killed in mid-stream",
      "a client that is killed in mid-stream aborts the handler within 3 s, with",
    ),
    shown(
      "while one of two instances is silent, calls go to the other",
      "gets no call once its silence was noticed",
      "a server that freezes gets no more calls from nats-server",
      "one of two instances is silent: calls go to the other",
    ),
    shown(
      "two of a service share its work, and only what one held fails when it is killed",
      "share the calls: each serves at least a quarter",
      "what one that is frozen does not answer is read from the other",
    ),
  ],
  "BUS-3": [
    shown(
      "Connect, gRPC and gRPC-Web on one port, streaming included",
      "calls a service with metadata both ways",
      "streams, and its leaving reaches the service",
      "reads a server's stream",
      "grpc-js calls it",
    ),
    shown(
      "each refusal by each protocol has a code, a message that names the fault, and a reason, before a handler sees the request, too",
      "serves a request that has no fault",
      "refuses $fault with its reason",
    ),
    shown(
      "server reflection and health",
      "reflection lists the services",
      "health tells which services somebody serves",
    ),
    shown(
      "buf curl by reflection, a Python gRPC client by generated stubs",
      "buf curl lists tools, calls one",
      "a Python gRPC client lists tools",
    ),
    shown("a Go client by generated stubs", "a Go client lists tools, calls one"),
    shown("grpcurl by reflection alone, which learns nothing internal", "grpcurl lists services, calls a tool"),
    shown(
      "a page in Chromium by generated stubs, with Connect and gRPC-Web, from another origin",
      "a page in Chromium lists tools, calls one",
    ),
  ],
  "BUS-4": [
    shown(
      "each service behind the gateway, and all at once, is killed in a running suite, which is whole again within 2 s",
      "it starts again, the suite is whole within two seconds",
      "all of them at once",
      "nats-server: it is started",
    ),
    shown("a gateway that died is back where it was", "a gateway that took a free port and died is back"),
    shown("services start in any order, before NATS too", "each waits for what it needs"),
    shown("what is stored outlives a kill of the server", "stores keep what was written across a kill of the server"),
  ],
  "BUS-5": [
    shown(
      "$SRV tells services, instances, methods and what their calls took",
      "nats tools see a service with its instances",
      "finds our server among the micro services",
    ),
  ],
  "BUS-6": [
    shown(
      "one command starts everything, NATS beside it, and leaves nothing behind",
      "starts everything, says where it is",
      "that is killed takes everything with it",
    ),
    shown("everything in one process", "has as many processes as it says"),
    shown("the same services run as a process each", "beside `up` shares its work, on a server that runs already"),
    shown(
      "they run against a cluster of three, of which a node is killed",
      "a run through the gateway ends well though the node",
      "every stream and every bucket has a copy on each of the three nodes",
    ),
    shown(
      "with two of three nodes away, or a full disk, every call ends in time and says why",
      "with two of three nodes away every call ends within 10 s",
      "on a full disk a call ends in time",
    ),
    shown(
      "docker-compose.yml is read: services, variables, files, three nodes of NATS",
      "runs every service, and nothing else but NATS",
      "has three NATS nodes that differ in name and store only",
    ),
    open("docker-compose.yml starts and answers", "No Docker engine runs it in the tests."),
  ],
};
