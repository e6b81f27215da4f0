import { type Proofs, shown } from "./proof.ts";

export const tool: Proofs = {
  "TOOL-1": [
    shown(
      "name and executionType are required, the rest has defaults; kind: builtin says the same",
      "TOOL-1 have defaults",
      "say their kind in two ways",
      "unknown fields and a missing kind",
      "a tool's file says how long its calls take results",
    ),
    shown(
      "unknown fields, a schema that is none and a gateway tool without URL are refused with the path",
      "are refused with the path of the fault: $name",
      "%s by %s is refused when it is registered",
      "unknown fields and a missing kind are refused with their paths",
    ),
  ],
  "TOOL-2": [
    shown(
      'internal answers {"success":true,"args":…}, the arguments as they were written',
      "TOOL-2 KIND-4 an internal tool answers with its arguments as they were written",
    ),
  ],
  "TOOL-3": [
    shown(
      "POST by default with a JSON body, a query for GET; header values name secrets",
      "send arguments as a JSON body",
      "%s carries its arguments as the method's convention is",
      "headers that can be sent are no fault",
    ),
    shown("the tool's own time holds", "time out after their own time"),
    shown(
      "non-2xx is an error with status and a bounded part of the body",
      "fetch with their arguments as query, and tell a bad status as an error",
      "a response: $what",
    ),
    shown(
      "a URL decides first, but for internal; with isAsync it is refused",
      "a URL decides who is called, whatever the kind, but for internal tools",
      "are refused with the path of the fault: $name",
    ),
    shown(
      "loopback, link-local and private addresses are refused, redirects included, unless allowed",
      "cannot be turned against the inside by $what",
      "loses the headers with their secrets, and they do not come back %s: %s %d",
      "what the configuration allows is allowed:",
      "%s is a public address",
      "lead nowhere inside",
    ),
  ],
  "TOOL-4": [
    shown("isAsync answers with the pending call at once", "an asynchronous tool answers with its pending call"),
    shown(
      "without it the call waits up to its time, then says so",
      "a call that nobody answers times out",
      "a tool whose time is 30 days waits for its answer",
      "at the timeout nobody waits any more",
    ),
  ],
  "TOOL-5": [
    shown(
      "waiting goes to resolved or, at the timeout, to pending and then resolved",
      "a person's answer ends the call at once",
      "a call that nobody answers times out",
      "at the timeout nobody waits any more",
      "a wait whose router was killed ends at its time all the same",
    ),
    shown(
      "at its expiry the message turns error, the inbox is told, submissions are refused",
      "at its expiry a pending call's message turns error",
      "a watcher that has taken a call is told",
      "a call that has expired takes no answer",
    ),
    shown(
      "a call's record keeps id, session, run, agent, tool and arguments, and no other call takes its id",
      "an id is one call's",
    ),
    shown("retention leaves open calls where they are", "when room gets short, the"),
    shown(
      "a question stays in its space while it is open, and a call that goes by age expires before, which is told",
      "a question stays in its space for as long as",
      "at its expiry a pending call's message turns error",
    ),
  ],
  "TOOL-6": [
    shown(
      "each call goes to exactly one of the watchers, on any router",
      "each of many calls goes to exactly one of three watchers",
    ),
    shown(
      "a watcher that dies hands on what it had not acknowledged; a watch is taken up under its name",
      "what a watcher has not acknowledged goes to another at once",
      "a watcher that comes back under its name",
      "a call that a watcher of a killed router had not acknowledged",
      "the example of a service outside executes calls",
    ),
    shown(
      "no watcher for a synchronous call is an error after 2 s, in which one may come back",
      "a synchronous call that nobody watches for says so",
      "a watcher that comes within the grace gets",
    ),
    shown(
      "a taken at-most-once call is never handed on and ends as outcome_unknown",
      "a call that a lost watcher had acknowledged ends as outcome_unknown",
      "a taken call whose watcher and router are both killed",
    ),
    shown("as plain HTTP: calls as events, results posted, 404 and 409", "a service outside works by plain HTTP"),
    shown("calls made while nobody watched reach the next watcher", "asynchronous calls made while nobody watched"),
  ],
  "TOOL-7": [
    shown(
      "submitted once, by id: unknown, of another run and resolved are told",
      "a person's answer ends the call at once, one submission wins",
      "a service outside works by plain HTTP",
    ),
    shown(
      "of ten submitters one wins, fifty further ones are refused",
      "a person's answer ends the call at once, one submission wins",
      "fifty second submissions are all refused",
      "of ten people who answer at once one wins",
    ),
    shown(
      "whoever repeats the submission that won is told so, also when the router that took it was killed",
      "ten submitters race with ids of their own",
      "a submission that a killed router took is told that it won",
      "of ten people who answer with submissions of their own",
    ),
  ],
  "TOOL-8": [
    shown(
      "a result in time is returned in line, also across routers and their deaths",
      "a person's answer ends the call at once",
      "a caller is woken although the router that stored its result died",
    ),
    shown(
      "an instant answer is never missed",
      "an answer that came before anybody waited is not missed",
      "each of many calls goes to exactly one of three watchers",
    ),
  ],
  "TOOL-9": [
    shown(
      "a late result, or that of a pending call, is one inbox event tr:<callId>",
      "the late answer goes to the inbox",
      "an asynchronous tool answers with its pending call",
      "an event that is repeated at any time is there once",
    ),
    shown(
      "however processes die it comes exactly once",
      "an event that is delivered again and again",
      "a router that dies right after a late result is stored",
      "each answer of a person is shown and heard, exactly once",
    ),
    shown(
      "the agent wakes by itself, unless it does not want to, and its run reads the line",
      "an answer to a call that was pending wakes the agent by itself",
      "an agent that does not want to be woken",
    ),
    shown(
      "results and words stand in the words of the seed, and the instructions tell what they mean",
      "results and words stand in its inbox in the words of the seed",
      "nobody's words pass for a line",
    ),
  ],
  "TOOL-10": [
    shown(
      "visible by default for gateway, external and space, for no other kind; a hidden space tool is refused",
      "are visible unless they say otherwise",
      "are refused with the path of the fault: $name",
      "are these, none of them visible",
    ),
    shown(
      "streamed as started, streaming with partial arguments, done or error",
      "is told as started, then streaming",
      "that is refused once it is written ends as an error",
      "partial arguments of a call that runs are streamed",
    ),
    shown(
      "running, requires_action, complete or error",
      "a gateway tool runs in the space",
      "one that fails turns its message",
      "requires action until",
    ),
    shown(
      "tool messages wake no agent",
      "words of a person wake the agents of the space, tool messages do not",
      "a shown call goes from running to complete",
    ),
    shown("a visible internal tool is shown with its arguments", "an internal tool that is visible is shown complete"),
    shown("a call that is not visible is in no space", "a call that is not visible is in no space"),
    shown("tool messages cannot be replied to", "no message is a reply"),
  ],
  "TOOL-11": [
    shown(
      "a visible tool without a space answers in these words, and nothing is shown",
      "a visible tool outside a space runs nothing",
      "a visible tool without an active space is an error",
    ),
    shown("it runs nothing", "outside a space a gateway tool that is visible asks no server"),
  ],
  "TOOL-12": [
    shown(
      "every agent has these twelve, unlisted, and no tool of another shadows one",
      "are these, none of them visible",
      "that skips ends completed, without another word",
      "shadows a built-in: only spaces offers tools of these names",
      "a function tool of the client shadows no built-in",
    ),
    shown(
      "enter_space sets the session's space and returns its history",
      "entering a space makes it the session's active one",
      "entering another space leaves the first",
      "memory and the active space of the old agent stay with it",
    ),
    shown("send_message without a space is an error", "memory and the active space of the old agent stay with it"),
    shown(
      "read_messages pages from the latest message on by offset and limit, as the list of messages does",
      "messages of many writers at once all stand in one order, and are paged",
    ),
    shown("skip ends the run completed, reason skipped", "skip ends the run completed, reason skipped"),
    shown(
      "goals, memories and plans are keyed and the agent's own; goals and memories stand in its instructions",
      "goals, memories and plans are keyed and the agent's own",
      "goals and memories stand in the instructions",
    ),
    shown(
      "a plan with a time wakes its agent",
      "a plan wakes its agent when its time comes, once",
      "a plan whose time has come wakes the agent, through every service",
    ),
  ],
  "TOOL-13": [
    shown(
      "members, messages in one order, pages of history, a live stream that resumes",
      "messages of many writers at once all stand in one order",
      "a watch gives what stands from a sequence on",
      "pages go on from their token",
      "pages that follow each other join to the whole",
    ),
    shown(
      "what is said reaches the other agents' inboxes, tool messages do not",
      "what is said reaches the inboxes of the other agents",
      "words of a person wake the agents of the space, tool messages do not",
    ),
    shown("while instances die nothing is lost or doubled", "while instances die, each message stands once"),
  ],
  "TOOL-14": [
    shown(
      "an agent's file names servers with url or command, whole as they were written",
      "servers and workers are sources, whole as they were written",
      "a source's configuration is read in its JSON form",
    ),
    shown(
      "stdio, http, sse, ws and tcp are accepted as names of transports, others refused",
      "a transport that there is not is a fault of the agent",
      "a transport that does not go with the server",
      "a file whose server has an unknown transport is refused",
    ),
    shown(
      "servers over stdio and http are connected to, as processes and sockets of their own",
      "a server over stdio and one over HTTP are sources beside each other",
    ),
    shown("servers over sse, ws and tcp are connected to", "is listed and called, many at a time"),
    shown(
      "allowedTools narrows what is offered and called; absent means all",
      "only allowed tools are offered and called",
      "is ready when it is initialised and listed",
    ),
  ],
};
