import { type Proofs, shown } from "./proof.ts";

export const ctr: Proofs = {
  "CTR-1": [
    shown(
      "a declaration by RPC replaces the one before, an empty one clears it, and who watches the tools is told",
      "a declaration replaces the one before",
    ),
    shown(
      "the next listing and the next call of the session's agent see it",
      "what a caller declares is seen by the next listing",
    ),
    shown(
      "a declaration in the context of session_message, or at its top level",
      "is asked on its open message, answers, and is told what the agent says",
      "declares its tools at the top level too, and its error reaches the agent as one",
    ),
  ],
  "CTR-2": [
    shown(
      "the agent sees <caller_id>_<name> with description and schema, in its own session only",
      "gives each tool the name <caller_id>_<name>",
      "a missing one means any object",
      "the tools are offered with prefix, schema and time",
    ),
    shown("it is an ordinary tool of the router, which a run calls", "sends a value through all five kinds"),
    shown(
      "a name that does not fit or collides is refused with both names",
      "the caller %j with the tool %j is refused with both names",
      "two tools of one name are refused",
      "what is accepted can be called",
    ),
    shown("it is a native MCP tool of the agent", "an MCP client of %s is served at once"),
  ],
  "CTR-3": [
    shown(
      "the request has type, id, session, un-prefixed tool, arguments and end; its id is the call's",
      "a call reaches the caller with its id, its session, the bare name",
    ),
    shown("arguments are validated before anything is emitted", "CTR-3 arguments that do not fit reach no caller"),
    shown(
      "the request as an event of the session_message stream",
      "is asked on its open message, answers, and is told what the agent says",
    ),
  ],
  "CTR-4": [
    shown(
      "an answer by RPC: an error is a tool error, null is a valid result",
      "an error is a tool error, null a valid result",
    ),
    shown(
      "whoever repeats the answer that won is told so, in time and late, also when the instance that took it was killed",
      "ten answers race with ids of their own",
      "an answer that the killed instance took is told by another one",
    ),
    shown(
      "exactly one answer wins, the next is told so in the words of the requirement",
      "of ten answers at once one wins",
    ),
    shown(
      "the answer to a canceled request is refused likewise, through the whole suite",
      "is told which of its requests is canceled",
    ),
    shown(
      "caller_tool_response as an MCP tool",
      "declares its tools at the top level too, and its error reaches the agent as one",
    ),
  ],
  "CTR-5": [
    shown(
      "a stranger can neither answer, attach nor declare; the request stays open and the owner's answer counts",
      "a stranger can neither answer, attach nor declare",
      "sessions that are unknown or closed take no caller",
    ),
  ],
  "CTR-6": [
    shown(
      "after 60 s, or the tool's own time, the agent is told tool and time",
      "ends after its time with an error that names tool and time",
      "without an answer the agent is told tool and time",
      "CTR-6 says how long each of its tools may take",
    ),
    shown("the router grants a caller its 60 s", "the tool's own time wins, and the run's deadline caps it"),
    shown(
      "no hop on the way gives up earlier, for a call or for a run's",
      "no hop gives up before the caller's 60 s are over",
    ),
    shown(
      "the first answer after the time is late and goes to the inbox, the next one is refused",
      "the first late answer goes to the inbox",
      "an agent's side that gives up at the deadline",
      "an answer that comes while the trace is being written waits for it",
    ),
  ],
  "CTR-7": [
    shown(
      "a stream that is closed ends its open requests within 1 s, with an error that is no timeout",
      "a caller that goes away ends its requests with an error that is no timeout",
    ),
    shown(
      "a caller whose process is killed, at the gateway: within 1 s likewise",
      "a caller whose process is killed ends its requests within a second",
    ),
    shown(
      "a caller whose cable was cut is noticed within 3 s, over HTTP/2",
      "a caller whose cable was cut ends its requests within three seconds, likewise",
    ),
    shown(
      "an instance of the relay that dies takes no request with it in silence",
      "its callers are told, calls without grace end at once",
      "a request outlives the instance that holds its call: asked for again it goes on, whenever its answer came",
    ),
    shown(
      "calls outlive the only instance, for as long as their caller is waited for, however slowly the next one starts",
      "calls outlive a relay that is killed",
      "the next one is asked for as long as the grace that was told, also while nobody serves",
      "whoever waits for a call is told its caller's grace before the caller has the request",
    ),
    shown(
      "without a grace, which is the default, nothing waits; with one nothing waits longer than that",
      "without a grace ends with its stream",
      "when the grace is over, the requests end with the connection error",
    ),
    shown(
      "who comes back within the grace gets the open requests again under their ids, and those made meanwhile",
      "a caller that comes back within the grace gets its open requests again",
      "is sent again, the same, to a caller that comes back in the last moment",
    ),
    shown("a call with no caller attached fails at once", "a call without an attached caller fails at once"),
  ],
  "CTR-8": [
    shown(
      "200 calls of one session are in flight at once, and a slow one delays no other",
      "two hundred calls of a session are in flight at once",
    ),
    shown(
      "two windows of a caller share its requests, and neither ends the other",
      "two windows of a caller share its requests in turn, and each ends for itself",
    ),
  ],
  "CTR-9": [
    shown(
      "newline-delimited JSON-RPC over a unix socket, caller_tools_config on connecting and on each declaration, the seed's bare frame",
      "a peer hears what is declared, and calls it many at a time by its bare name",
    ),
    shown(
      "the error codes, and a connection that survives bad frames",
      "each fault has its code, and the connection survives it",
    ),
    shown("one socket serves one session", "a socket is its session's alone"),
  ],
  "CTR-10": [
    shown(
      "an MCP stdio server that serves at once, registers what is declared and sends list_changed",
      "an MCP client of %s is served at once, hears of what is declared",
    ),
    shown("it validates, and passes many calls at a time over the socket", "an MCP client of %s is served at once"),
  ],
  "CTR-11": [
    shown(
      "session_message and caller_tool_response for clients of any MCP revision",
      "is asked on its open message, answers, and is told what the agent says",
      "a client of 2024-11-05 is asked without a session and without logging/setLevel",
    ),
    shown(
      "the request travels as a notification of its own method on the open call",
      "is asked on its open message, answers, and is told what the agent says",
      "a client of 2024-11-05 is asked without a session and without logging/setLevel",
    ),
  ],
};
