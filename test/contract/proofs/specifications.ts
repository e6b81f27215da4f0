/**
 * The points and scenarios of the five specifications that the requirements come from, each with the parts that hold it: the id
 * of a requirement and words of one of its claims. What is open there is open here.
 */

type Scenarios = Readonly<Record<string, readonly string[]>>;

const callerToolRelay: Scenarios = {
  "agent calls caller tool successfully": [
    "CTR-2 it is an ordinary tool of the router",
    "CTR-3 the request has type",
    "CTR-3 the request as an event",
    "CTR-4 an answer by RPC",
  ],
  "caller tool request times out": ["CTR-6 after 60 s", "CTR-6 no hop on the way"],
  "caller disconnected before response": ["CTR-7 a stream that is closed", "CTR-7 a caller whose process is killed"],
  "caller declares tools at session start": [
    "CTR-1 a declaration by RPC",
    "CTR-1 a declaration in the context of session_message",
    "CTR-2 it is a native MCP tool",
  ],
  "tools include input schema": ["CTR-2 the agent sees", "CTR-3 arguments are validated"],
  "tool request event format": ["CTR-3 the request has type"],
  "successful tool response": ["CTR-4 an answer by RPC", "CTR-4 caller_tool_response as an MCP tool"],
  "tool execution error response": ["CTR-4 an answer by RPC"],
  "socket request and response": ["CTR-9 newline-delimited", "CTR-10 it validates"],
};

const toolLoop: Scenarios = {
  "kinds: function, MCP and internal tools in one turn": ["KIND-1 so do services outside", "LOOP-5 a mixed turn"],
  "a result has its call's id, its output, is_error": ["LOOP-7 is_error survives"],
  "tool_choice auto, required, none": ["LOOP-2 auto, required, none and one forced tool"],
  "tool_choice of one tool": ["LOOP-2 auto, required, none and one forced tool", "LOOP-2 required and forced hold"],
  "allowed_tools: callable and visible": ["LOOP-3 a call outside of it is answered"],
  "the loop ends without calls": ["LOOP-1 from the input over calls"],
  "the loop ends at max_turns": ["LOOP-1 max_turns is incomplete"],
  "the loop ends when it is canceled": ["LOOP-1 cancellation has its own status"],
  "the loop ends with an unrecoverable error": ["LOOP-1 an unrecoverable error"],
  "function calls park the run": ["LOOP-5 a mixed turn", "LOOP-5 outputs come in parts"],
  "function calls complete it in single-turn mode": ["LOOP-6 single_turn returns the calls"],
  "the follow-up is an input of function_call_output": ["LOOP-6 input answers a call", "LOOP-18 tools, tool_choice"],
  "MCP over stdio, HTTP with SSE, and streamable HTTP": [
    "ORCH-6 servers over stdio and streamable HTTP",
    "ORCH-6 servers over SSE, WebSocket and TCP",
  ],
  "an MCP server of a request's own": ["LOOP-5 a run brings its own MCP servers"],
  "internal tools: register, get, list, initialize, shutdown": ["LOOP-9 tools are registered"],
  "a duplicate name is refused": ["LOOP-9 a duplicate name"],
  "results are validated": ["LOOP-8 JSON where it is promised"],
  "custom internal tools": ["WORK-1 a TypeScript or JavaScript module is a hosted tool"],
  "custom MCP transports": ["ORCH-13 a third party's module", "ORCH-13 one that TOOLBUS_MCP_TRANSPORTS names"],
  "provider:tool_type": ["KIND-3 a custom type", "KIND-3 a call of a custom tool"],
  "options of the loop: limits, time, retries": ["LOOP-12 limits of the run", "LOOP-12 retries and timeouts"],
  "open question: parallel calls": ["LOOP-4 calls of a turn run in parallel"],
  "open question: discovery of MCP servers": [
    "ORCH-7 servers are applied and removed while the bridge runs",
    "TOOL-14 an agent's file names servers",
  ],
  "open question: tools that are loaded without recompiling": ["WORK-12 a module that changes is loaded anew"],
  "open question: streams of intermediate results": ["LOOP-10 text deltas, progress of tools and results"],
};

const toolSystem: Scenarios = {
  "tools are space-agnostic: none is given a space but the built-ins of spaces": ["KIND-1 no tool is told a space"],
  "a tool's fields and their defaults": ["TOOL-1 name and executionType are required", "TOOL-1 unknown fields"],
  "gateway: an HTTP call, inline": ["TOOL-3 POST by default", "TOOL-10 running, requires_action"],
  "external: somebody outside executes it": ["TOOL-6 each call goes to exactly one"],
  "space: a person gives the result": ["TOOL-8 a result in time is returned in line"],
  "space: a person sees it as interactive UI": ["ORCH-12 people answer tools in it, by a form"],
  "internal: the arguments are the result": ["TOOL-2 internal answers"],
  "isAsync: pending at once": ["TOOL-4 isAsync answers"],
  "a URL decides before anything but internal": ["TOOL-3 a URL decides first"],
  "in time: the result is returned in line": ["TOOL-8 an instant answer is never missed", "TOOL-8 a result in time"],
  "not in time: an error, and the late result reaches the inbox": ["TOOL-4 without it the call waits", "TOOL-9 a late"],
  "an agent never waits forever": ["KIND-4 30 s by default", "KIND-4 a tool that hangs"],
  "a visible tool without a space is an error": ["TOOL-11 a visible tool without a space", "TOOL-11 it runs nothing"],
  "visible by default, but for internal": ["TOOL-10 visible by default"],
  "an internal tool that is visible is rendered with its arguments": ["TOOL-10 a visible internal tool is shown"],
  "a call that is not visible is silent": ["TOOL-10 a call that is not visible"],
  "built-ins in every agent, never visible": ["TOOL-12 every agent has these twelve"],
  "enter_space and leave_space": ["TOOL-12 enter_space sets"],
  "send_message and read_messages": ["TOOL-12 send_message without", "TOOL-12 read_messages pages", "TOOL-13 members"],
  skip: ["TOOL-12 skip ends the run"],
  "goals, memories, plans": ["TOOL-12 goals, memories and plans", "TOOL-12 a plan with a time"],
  "the result of a pending call: the agent wakes and reads it": ["TOOL-9 the agent wakes by itself"],
  "a pending call's record and states, and its expiry": [
    "TOOL-5 a call's record keeps",
    "TOOL-5 waiting goes to resolved",
    "TOOL-5 at its expiry",
  ],
  "results are submitted once": ["TOOL-7 submitted once", "TOOL-7 of ten submitters one wins"],
  "submitted over plain HTTP": ["TOOL-6 as plain HTTP"],
  "a message goes from requires_action to complete": ["TOOL-10 running, requires_action"],
  "tool messages trigger no agents": ["TOOL-10 tool messages wake no agent"],
  "tool messages cannot be replied to": ["TOOL-10 tool messages cannot be replied to"],
  "started, streaming, done, error": ["TOOL-10 streamed as started"],
  "MCP servers in an agent's configuration": ["TOOL-14 an agent's file names servers", "TOOL-14 servers over stdio"],
  "allowedTools of a server": ["TOOL-14 allowedTools narrows"],
};

const toolExecution: Scenarios = {
  "worker startup on first call": ["WORK-3 the first call starts the worker", "WORK-1 a file with PEP 723 metadata"],
  "subsequent calls use existing worker": ["WORK-3 the first call starts the worker"],
  "worker idle timeout": ["WORK-3 an idle worker ends", "WORK-3 the idle time is ten minutes"],
  "session refresh on call": ["WORK-3 an idle worker ends"],
  "function call request": ["WORK-4 one line a request", "WORK-4 a tool gets the config and secrets"],
  "successful response": ["WORK-4 one line a request"],
  "error response": ["WORK-7 an exception is its words"],
  "structured logging": ["WORK-6 the SDK writes JSON lines", "WORK-6 they are labelled"],
  "tool with dependencies": ["WORK-1 a file with PEP 723 metadata", "WORK-1 a worker's environment is isolated"],
  "TOML parsing compliance": ["WORK-1 malformed metadata", "WORK-1 CRLF files work"],
  "worker crash recovery": ["WORK-8 a crash fails its calls at once"],
  "graceful shutdown": ["WORK-9 nothing is left"],
  "internal tool detection": ["WORK-1 a TypeScript or JavaScript module is a hosted tool"],
  "internal tool has access to registry, config and model": ["WORK-12 a hosted module uses registry"],
};

const toolOrchestration: Scenarios = {
  "agent switch initiated": ["ORCH-1 calls in flight get their time", "ORCH-1 the old context is torn down"],
  "context teardown": [
    "ORCH-1 the old context is torn down",
    "ORCH-10 teardown ends server processes",
    "ORCH-11 built, switched",
    "ORCH-1 memory, spaces and pending results",
  ],
  "context build": ["ORCH-11 built, switched", "ORCH-5 an agent for which no tool resolves"],
  "switch timeout": ["ORCH-1 calls in flight get their time", "ORCH-1 that time is 5 s"],
  "allowed tool invoked": ["ORCH-3 an alias and the real name", "ORCH-11 permitted and blocked"],
  "blocked tool invoked": ["ORCH-2 a refusal names agent, tool and rule"],
  "wildcard allow-all": ['ORCH-2 ["*"] and an empty list'],
  "stdio MCP server spawned": ["ORCH-6 ready when initialised and listed", "ORCH-6 servers over stdio"],
  "ws/tcp MCP server connected": ["ORCH-6 servers over SSE, WebSocket and TCP"],
  "MCP server fails to start": ["ORCH-6 one that fails or hangs", "ORCH-11 unavailable", "ORCH-12 a page of agents"],
  "MCP health check": ["ORCH-8 green, yellow and red", "ORCH-8 with a check", "ORCH-12 a page of agents"],
  "alias resolved": ["ORCH-3 an alias and the real name"],
  "alias in allow-list": ["ORCH-3 an alias and the real name"],
  "fs_read registered": ["ORCH-9 fs_read and fs_write"],
  "fs_write registered": ["ORCH-9 fs_read and fs_write"],
  "shell_exec registered": ["ORCH-9 shell_exec runs what is listed", "ORCH-9 its timeout ends"],
  "MCP capabilities discovered": ["ORCH-7 all pages", "ORCH-7 list_changed refreshes"],
  "tool metadata exposed": ["ORCH-7 all pages", "ORCH-12 a page of agents"],
};

/** By what it is of. */
export const specifications: Readonly<Record<string, Scenarios>> = {
  "caller tool relay": callerToolRelay,
  "spec 04, the loop": toolLoop,
  "spec 06, the tool system": toolSystem,
  "tool execution": toolExecution,
  "tool orchestration": toolOrchestration,
};
