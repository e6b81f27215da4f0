/** What a specification asks for, and the names of the tests that show it. */
export type Scenario = [what: string, ...names: string[]];

/** Of spec 06, tool system. */
export const toolSystemScenarios: Scenario[] = [
  [
    "tools are space-agnostic: none is given a space but the built-ins of spaces",
    "KIND-1 only enter_space and read_messages name a space",
  ],
  [
    "a tool's fields and their defaults",
    "TOOL-1 have defaults",
    "TOOL-1 unknown fields and a missing kind are refused with their paths",
  ],
  [
    "gateway: an HTTP call, inline",
    "TOOL-3 fetch with their arguments as query",
    "TOOL-10 a gateway tool runs in the space until its response",
  ],
  ["external: somebody outside executes it", "TOOL-6 TOOL-8 each of many calls goes to exactly one of three watchers"],
  ["space: a person gives the result", "TOOL-4 TOOL-7 TOOL-8 a person's answer ends the call at once"],
  ["internal: the arguments are the result", "TOOL-2 an internal tool answers with its arguments"],
  ["isAsync: pending at once", "TOOL-4 an asynchronous tool answers with its pending call at once"],
  ["a URL decides before anything else", "TOOL-3 a tool of any kind may have a URL, which is what is called"],
  ["in time: the result is returned in line", "TOOL-8 an answer that came before anybody waited is not missed"],
  [
    "not in time: an error, and the late result reaches the inbox",
    "TOOL-4 TOOL-9 a call that nobody answers times out, and the late answer goes to the inbox",
  ],
  [
    "an agent never waits forever",
    "KIND-4 the tool's own time wins, and the run's deadline caps it",
    "KIND-4 a provider that hangs is given up after the tool's own time",
  ],
  ["a visible tool without a space is an error", "TOOL-11 a visible tool outside a space runs nothing and says so"],
  [
    "visible by default, but for internal",
    "TOOL-10 gateway, external and space tools are visible unless they say otherwise, and no other kind is",
  ],
  [
    "an internal tool that is visible is rendered with its arguments",
    "TOOL-10 an internal tool that is visible is shown complete with its arguments",
  ],
  ["a call that is not visible is silent", "TOOL-10 a call that is not visible is in no space"],
  [
    "built-ins in every agent, never visible",
    "TOOL-12 are these, none of them visible",
    "TOOL-12 shadows a built-in: only spaces offers tools of these names",
  ],
  [
    "enter_space and leave_space",
    "TOOL-12 entering a space makes it the session's active one and gives its history; leaving ends that",
  ],
  [
    "send_message and read_messages",
    "TOOL-13 an agent speaks only where it is",
    "TOOL-13 pages that follow each other join to the whole",
  ],
  ["skip", "TOOL-12 skip ends the run completed, reason skipped"],
  [
    "goals, memories, plans",
    "TOOL-12 goals, memories and plans are keyed and the agent's own",
    "TOOL-12 a plan wakes its agent when its time comes",
  ],
  [
    "the result of a pending call: the agent wakes and reads it",
    "TOOL-9 TOOL-10 an answer to a call that was pending wakes the agent by itself",
  ],
  [
    "a pending call's states, and its expiry",
    "TOOL-5 at its expiry a pending call's message turns error, the inbox is told, and results are refused",
  ],
  [
    "results are submitted once",
    "TOOL-7 fifty second submissions are all refused",
    "TOOL-7 a call that nobody knows, or that another space shows, has no answer",
  ],
  ["submitted over plain HTTP", "TOOL-6 TOOL-7 a service outside works by plain HTTP"],
  [
    "a message goes from requires_action to complete",
    "TOOL-10 a call of an external tool requires action until its service has answered",
  ],
  [
    "tool messages trigger no agents",
    "TOOL-13 words of a person wake the agents of the space, tool messages do not",
    "reaches no inbox",
  ],
  [
    "started, streaming, done",
    "TOOL-10 is told as started, then streaming with growing arguments, then done, all under one id",
  ],
  ["error", "TOOL-10 one that fails turns its message to an error"],
  [
    "MCP servers in an agent's configuration",
    "TOOL-14 servers and workers are sources, before those that are written out",
  ],
  ["allowedTools of a server", "TOOL-14 only allowed tools are offered and called"],
];

/** Of the specification tool-orchestration. */
export const orchestrationScenarios: Scenario[] = [
  [
    "agent switch initiated",
    "ORCH-1 a call in flight ends in its time, and the switch waits for it",
    "ORCH-1 a session comes through its states in order, and has the other agent's tools and nothing else",
  ],
  [
    "context teardown",
    "ORCH-10 releasing a scope ends its servers on every instance, and nothing else",
    "ORCH-11 a connection is built, away with its reason, back, and torn down; each is told once",
    "ORCH-1 two agents of a session share neither active space, memory nor inbox",
  ],
  [
    "context build",
    "ORCH-1 a session comes through its states in order, and has the other agent's tools and nothing else",
    "ORCH-5 an agent whose tools do not resolve is loaded and says so",
  ],
  [
    "switch timeout",
    "ORCH-1 calls that take too long are cancelled at their provider, told why, and are an audit event",
  ],
  [
    "allowed tool invoked",
    "ORCH-3 an alias or the real name in allowed permits both",
    "ORCH-11 what a router decided right before SIGTERM stands on the trail when it has ended",
  ],
  [
    "blocked tool invoked",
    "ORCH-2 a refused call names agent, tool and rule, is an audit event, and reaches no provider",
  ],
  ["wildcard allow-all", "ORCH-2 an empty list of allowed tools allows what is in use, and a star does the same"],
  ["stdio MCP server spawned", "ORCH-6 is ready when it is initialised and listed"],
  [
    "MCP server connected by a transport that is registered, as ws and tcp may be",
    "ORCH-13 of third parties are used like any other",
  ],
  [
    "MCP server fails to start",
    "ORCH-6 one that crashes at its start is unavailable with its exit code and its last words",
    "ORCH-6 a server that fails or hangs delays and hides no other",
  ],
  [
    "MCP health check",
    "ORCH-8 turns yellow at the first miss, red at the second, and green when the server answers again",
  ],
  [
    "alias resolved",
    "ORCH-4 makes a name mean two tools: each model name, alias and reference leads to one",
    "ORCH-2 ORCH-4 the tools of a session have model names, aliases, and say which may be called",
  ],
  ["alias in allow-list", "ORCH-3 an alias or the real name in allowed permits both"],
  [
    "fs_read registered",
    "ORCH-9 a link that is swapped between inside and outside never lets a reader out",
    "what is inside is read: by a relative path, an absolute one",
  ],
  [
    "fs_write registered",
    "ORCH-9 nor does it let a writer change or make anything outside, in any mode",
    "no way out lets a writer change or make anything outside",
  ],
  [
    "shell_exec registered",
    "an argument is one argument, whatever is in it",
    "ORCH-9 its time over, the whole group is ended",
    "ORCH-9 WORK-12 an agent's run reads a file, runs a command and calls a hosted tool",
  ],
  [
    "MCP capabilities discovered",
    "ORCH-7 a watch tells the tools at once and after each change, also through another instance",
  ],
  ["tool metadata exposed", "ORCH-7 one bad tool never hides the rest, on any page, and annotations are kept whole"],
];
