// Ids that others will have, or have: taken before them, waited for, and repeated with guesses.

import { createHash, randomUUID } from "node:crypto";
import { McpContentService } from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { gatewayAt } from "../../../system/access/world.ts";
import { type Attack, type Ground, tryAll } from "../../attack.ts";
import { callTool } from "../../suite/call-tool.ts";
import { callAt } from "./clients.ts";

const digestOf = (parts: unknown[], as: "base64url" | "hex") =>
  createHash("sha256").update(JSON.stringify(parts)).digest(as);

const failureOf = (attempt: Promise<unknown>) => attempt.then(() => undefined, failureFromConnectError);

/** A session of mallory's with the agent of alice's, whose calls of `weigh` are recorded. */
async function ownSession(by: ReturnType<typeof gatewayAt>): Promise<string> {
  return (await by.client(SessionService).createSession({ agent: "keeper" })).session?.id ?? "";
}

/** Opens a session of alice's as a client of 2025-11-25, and calls in it once mallory has taken the call's id, as far as it can be computed. */
async function callTaken({ url, keys }: Ground): Promise<string> {
  const send = (message: object, session?: string) =>
    fetch(`${url}/mcp/keeper`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${keys.alice}`,
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        ...(session !== undefined && { "mcp-session-id": session, "mcp-protocol-version": "2025-11-25" }),
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...message }),
      signal: AbortSignal.timeout(30_000),
    });
  const clientInfo = { name: "alice", version: "1" };
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
  const session = (await send({ method: "initialize", params })).headers.get("mcp-session-id") ?? "";
  const by = gatewayAt(url, keys.mallory);
  const callId = `mcp-${digestOf([session, 1], "base64url")}`;
  await callTool(by, { sessionId: await ownSession(by), callId, name: "weigh", argumentsJson: "{}" });
  return (await send({ method: "tools/call", params: { name: "weigh", arguments: {} } }, session)).text();
}

export const takenIds: readonly Attack[] = [
  {
    name: "sessions and calls that another principal is about to have, taken before",
    requirement: "SEC-2",
    async play(ground) {
      const sessions = gatewayAt(ground.url, ground.keys.mallory).client(SessionService);
      for (let place = 0; place < 3; place += 1) {
        const sessionId = `mcp-${digestOf(["alice", "keeper", place], "base64url").slice(0, 32)}`;
        await sessions.createSession({ agent: "spy", sessionId });
      }
      const derived = [`key_${digestOf(["alice", "keeper", "first"], "hex").slice(0, 40)}`, `sub_${"0".repeat(40)}`];
      return tryAll(["standing", "call", ...derived], async (one) => {
        if (one === "standing" || one === "call") {
          const isStanding = one === "standing";
          const answer = isStanding
            ? await callAt(ground, "/mcp/keeper", "note", {}, "alice")
            : await callTaken(ground);
          return /"result"/.test(answer) && !/REUSED/.test(answer)
            ? undefined
            : `alice has no ${one} of hers: ${answer.slice(0, 300)}`;
        }
        const failure = await failureOf(sessions.createSession({ agent: "spy", sessionId: one }));
        return failure?.code === "not_found" ? undefined : `mallory opened ${one}`;
      });
    },
  },
  {
    name: "resources of a session that nobody has opened yet",
    requirement: "SEC-2",
    play(ground) {
      const content = gatewayAt(ground.url, ground.keys.mallory).client(McpContentService);
      const resource = { source: "everything", uri: "demo://resource/static/document/features.md" };
      return tryAll([[], [resource]], async (resources) => {
        const watch = content.watchResources({ sessionId: `unborn-${randomUUID()}`, resources }, { timeoutMs: 5_000 });
        const failure = await failureOf(watch[Symbol.asyncIterator]().next());
        return failure?.reason === "SESSION_NOT_FOUND" ? undefined : "mallory waits for a session of somebody else";
      });
    },
  },
  {
    name: "guesses at what another principal called, under the id of its call",
    requirement: "SEC-2",
    async play({ url, keys }) {
      const by = gatewayAt(url, keys.mallory);
      const call = { sessionId: await ownSession(by), callId: "weigh", name: "weigh" };
      const told = new Map<string, string>();
      return tryAll(
        ["{}", '{"kilos":1}'],
        async (guess) => {
          const failure = await failureOf(callTool(by, { ...call, argumentsJson: guess }));
          if (failure?.reason !== "CALL_ID_REUSED") return `mallory has alice's call: ${failure?.message}`;
          const text = JSON.stringify([failure.message, failure.metadata]);
          const other = [...told.values()].find((before) => before !== text);
          told.set(guess, text);
          return other === undefined ? undefined : `a right guess is told from a wrong one: ${text}; ${other}`;
        },
        1,
      );
    },
  },
];
