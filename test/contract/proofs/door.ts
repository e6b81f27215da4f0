import { open, type Proofs, shown } from "./proof.ts";

export const door: Proofs = {
  "DOOR-1": [
    shown(
      "an agent's tools at /mcp/<agent>, for clients of 2025-11-25 and of 2026-07-28",
      "is listed what the agent may call, with instructions, and gets results in MCP's forms",
      "needs no session, and each of its requests is served by any gateway",
      "calls Go's servers of both, over stdio and HTTP, each in its own",
      "the Python SDK, of either line, lists and calls an agent's tools",
      "lists, calls, sees progress and cancels on stdin and stdout",
    ),
    shown(
      "its tools found by words, for clients that ask for it",
      "is listed four tools, finds one by words, reads how it is called, and calls it",
    ),
    shown(
      "log messages from the level on that a session's client has set",
      "that a session's client has set holds at every gateway, until it sets another",
      "is that of its own session alone, and nobody else sets it",
    ),
    shown("its resources and prompts", "no server is asked for an address that it does not list"),
    shown(
      "its subscriptions to resources, before servers of both eras",
      "are told to a client of 2025-11-25 as long as it is subscribed, and the server is let go of after the last",
      "are told to a client of 2026-07-28 that listens, and no others",
      "are told again by a server that had broken off, which may have changed them meanwhile",
      "a subscription holds at any gateway, also after the one that took it was killed",
      "news reach every stream over whichever bridge, also after one of them was killed",
      "who is refused is told why: unknown resources, servers that do not tell, agents that may not read",
      "a session has a hundred subscriptions at most, which are its principal's own",
    ),
    shown(
      "any gateway serves any request of a session",
      "is served by any gateway: its calls, cancellations, streams and end",
      "goes on with a call whose stream it lost, at another gateway, and nothing is executed twice",
      "goes on with a call whose arguments are too large for its record",
    ),
  ],
  "DOOR-2": [
    shown(
      "a call that outlives its request is a task of 2025-11-25",
      "1.x: sees the task's creation, its states and its result",
      "is served by every gateway, in every session of its principal, and by nobody else's",
      "goes on when the gateway that created it is killed, and is executed once",
      "tells who waits for its result, at whichever gateway, of its states, its progress and its log",
      "is kept as long as its client asks, as far as the suite keeps it, and says how long that is",
      "is canceled at its server, from another gateway, and only as long as it has not ended",
      "waits in the space for an approval, after its gateway was killed, and is told as working to who cannot answer",
      "DOOR-2 progress and logs of a call reach who joins it, at another router and by another of its names, too",
      "DOOR-2 calls that were asked for as tasks are listed by themselves, in pages, in the order of their creation",
    ),
    shown(
      "and one of the extension of 2026-07-28",
      "is what a call becomes that takes longer than a moment, for clients that declare it",
      "goes on when its gateway is killed, and is executed once",
      "is listened to by nobody who does not declare it, and polled by whoever does",
      "is told of to who listens, at whichever gateway, as it is polled for, until its end",
      "asks in its state, and goes on by what is brought to another gateway",
    ),
    shown("also of tools that are found by words", "a call of a tool that is searched is a task, too, in both forms"),
    shown(
      "an approval or a question is elicitation or input_required, else it waits for a person",
      "is asked what servers of both eras ask, forms and addresses",
      "is asked for an approval that waits in the space, too",
      "2025-11-25: it is answered at another one, which refuses what does not fit, and where the client comes back for its call",
      "2026-07-28: the call goes on by what the client brings to another one, which nobody can alter",
    ),
  ],
  "DOOR-3": [
    shown(
      "the door is an OAuth 2.1 resource server",
      "says who issues its tokens, where a client looks for it",
      "takes tokens for itself alone, and lets them reach the agents that they grant",
    ),
    shown(
      "credentials of a person to servers behind are that person's: by a login, or exchanged for its token (RFC 8693)",
      "logs in by the command, and the tools of the server are there",
      "each person who comes with a JWT has a token of its own at the server",
      "who was too late comes again with a new token",
      "no token lies in a store, a log or the audit trail",
    ),
  ],
  "DOOR-4": [
    shown(
      "runs, replay, fork, explain, audit and health are MCP tools, by the rules of the RPCs",
      "lists tools that are the contract's methods",
      "finds a run, replays it, sees what was decided, and forks it",
      "waits for a run no longer than it says, and cancels it",
      "is told why an agent cannot call a tool, and how services and servers are",
      "sees and does what it may by RPC, and no more",
    ),
  ],
  "DOOR-5": [
    shown(
      "a library for TypeScript runs an agent, offers functions, watches for calls and speaks in spaces, and resumes by itself",
      "the library for TypeScript plays all cases, straight and over connections that are cut",
      "the text of a turn",
    ),
    open("libraries for Python and Go do the same", "CI plays the same cases with them as a step, which is no test."),
  ],
};
