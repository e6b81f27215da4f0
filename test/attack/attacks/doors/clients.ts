// The doors for people's clients, with mallory's key: MCP and Responses, by hand.

import { insideHosts } from "../../../../services/tool-router/testing/peers/inside-hosts.ts";
import { openWebServer } from "../../../../services/tool-router/testing/peers/web-server.ts";
import { type Attack, type Ground, type Principal, tryAll } from "../../attack.ts";

interface Sent {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: object;
  /** Mallory unless told. */
  readonly by?: Principal;
}

/** What the door answers, whole. */
async function ask({ url, keys }: Ground, path: string, sent: Sent): Promise<string> {
  const { method = "POST", headers, body, by = "mallory" } = sent;
  const accept = "application/json, text/event-stream";
  const type = body && { "content-type": "application/json" };
  const init = { method, headers: { authorization: `Bearer ${keys[by]}`, accept, ...type, ...headers } };
  const signal = AbortSignal.timeout(30_000);
  const answer = await fetch(url + path, { ...init, ...(body && { body: JSON.stringify(body) }), signal });
  return `${answer.status} ${await answer.text()}`;
}

const VERSION = "2026-07-28";

/** A call of a tool by a client of that version, which needs no session. */
export function callAt(ground: Ground, path: string, name: string, given: object, by?: Principal): Promise<string> {
  const io = "io.modelcontextprotocol";
  const _meta = {
    [`${io}/protocolVersion`]: VERSION,
    [`${io}/clientInfo`]: { name: "mallory", version: "1" },
    [`${io}/clientCapabilities`]: {},
  };
  const params = { name, arguments: given, _meta };
  const headers = { "mcp-protocol-version": VERSION, "mcp-method": "tools/call", "mcp-name": name };
  return ask(ground, path, {
    ...(by && { by }),
    headers,
    body: { jsonrpc: "2.0", id: 1, method: "tools/call", params },
  });
}

const said = (content: object[]) => ({ model: "keeper", input: [{ role: "user", content }] });

/** What a response may be made to fetch from there. */
const fetching = (address: string): object[] => [
  {
    ...said([{ type: "input_text", text: "go" }]),
    tools: [{ type: "mcp", server_label: "far", server_url: address, require_approval: "never" }],
  },
  said([{ type: "input_image", image_url: `${address}a.png` }]),
  said([{ type: "input_file", file_url: `${address}a.pdf` }]),
];

/** What is asked for of alice's at each door. */
function* asking(ground: Ground): Generator<{ what: string; play: () => Promise<string> }> {
  const { runId } = ground;
  const response = `/v1/responses/resp_${runId}`;
  for (const path of [response, `${response}?stream=true&starting_after=0`, `${response}/input_items`])
    yield { what: `GET ${path}`, play: () => ask(ground, path, { method: "GET" }) };
  yield { what: "DELETE of a response", play: () => ask(ground, response, { method: "DELETE" }) };
  yield { what: "cancel of a response", play: () => ask(ground, `${response}/cancel`, {}) };
  const next = { ...said([{ type: "input_text", text: "and?" }]), previous_response_id: `resp_${runId}` };
  for (const path of ["/v1/responses", "/v1/responses/compact"])
    yield { what: `going on by ${path}`, play: () => ask(ground, path, { body: next }) };
  const calls: [string, string, object][] = [
    ["~sessions", "session_message", { session_id: "alices", message: "hello" }],
    ["~sessions", "session_message", { session_id: "alices", agent: "keeper", message: "hello" }],
    ["~sessions", "caller_tool_response", { session_id: "alices", request_id: "asked", result: 1 }],
    ["~suite", "get_run", { runId }],
    ["~suite", "watch_run", { runId, fromSequence: "0" }],
    ["~suite", "replay_run", { runId }],
    ["~suite", "fork_run", { runId, atSequence: 1 }],
    ["~suite", "cancel_run", { runId }],
    ["~suite", "list_runs", { sessionId: "alices" }],
    ["~suite", "list_tool_calls", { sessionId: "alices" }],
    ["~suite", "get_tool_call", { callId: "approve" }],
    ["~suite", "list_audit_events", { filter: { sessionId: "alices" } }],
  ];
  for (const [door, name, given] of calls)
    yield { what: `${name} at ${door}`, play: () => callAt(ground, `/mcp/${door}`, name, given) };
}

export const clients: readonly Attack[] = [
  {
    name: "another's run, session and response at the doors of MCP's and OpenAI's clients",
    requirement: "SEC-2",
    play(ground) {
      return tryAll([...asking(ground)], async ({ what, play }) => {
        const answer = await play();
        const isRefused =
          /PRINCIPAL_NOT_OWNER|RUN_NOT_FOUND|SESSION_NOT_FOUND|SESSION_ALREADY_EXISTS|previous_response_not_found/.test(
            answer,
          );
        return isRefused && !answer.includes(ground.canary) ? undefined : `${what}: ${answer.slice(0, 300)}`;
      });
    },
  },
  {
    name: "servers, images and files of a response that lie inside, by each way to write a host",
    requirement: "SEC-7",
    async play(ground, { isShort }) {
      await using inside = await openWebServer((_, response) => response.end("inside"));
      const hosts = isShort ? insideHosts.slice(0, 3) : insideHosts;
      const bodies = hosts.flatMap(([, host]) => fetching(`http://${host}:${inside.port}/`));
      const outcome = await tryAll(
        bodies,
        async (body) => {
          const answer = await ask(ground, "/v1/responses", { body });

          const isKept =
            "tools" in body
              ? /Sources that cannot be used: far|must be|is refused|url that is none/.test(answer)
              : /^[24]/.test(answer);
          return !isKept ? `${JSON.stringify(body)}: ${answer.slice(0, 300)}` : undefined;
        },
        4,
      );
      const connections = inside.connections > 0 ? [`${inside.connections} connections were made inside`] : [];
      return { ...outcome, reached: [...outcome.reached, ...connections] };
    },
  },
  {
    name: "searches for tools by words without end",
    requirement: "SEC-5",
    play(ground, { isShort }) {
      const length = isShort ? 10_000 : 1_000_000;
      const words = Array.from({ length: length / 10 }, (_, n) => `request${n.toString(36)}`).join(" ");
      return tryAll([words, "request ".repeat(length / 8), "r".repeat(length)], async (query) => {
        const answer = await callAt(ground, "/mcp/keeper?search=1", "search_tools", { query });
        return answer.includes("INVALID_REQUEST") ? undefined : `it was looked for: ${answer.slice(0, 300)}`;
      });
    },
  },
];
