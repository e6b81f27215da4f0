import { createHash, createSecretKey } from "node:crypto";
import type { createContextValues } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { connectError } from "#runtime/failure/connect.ts";
import { callerKey, callerNamed } from "#runtime/rpc/identity.ts";
import { McpSessions } from "../sessions.ts";
import { callIdOf } from "./derived-ids.ts";

const key = createSecretKey(new Uint8Array(32).fill(7));
const alice = callerNamed("alice");

/** The router's sessions, by whom they belong to. */
function openSessions(owners: Map<string, string>) {
  type Options = { contextValues?: ReturnType<typeof createContextValues> };
  const by = ({ contextValues }: Options) => contextValues?.get(callerKey)?.principal ?? "";
  const service = {
    async getSession({ sessionId }: { sessionId: string }, options: Options) {
      const owner = owners.get(sessionId);
      if (owner === undefined) throw connectError("not_found", "no session", { reason: "SESSION_NOT_FOUND" });
      if (owner !== by(options)) throw connectError("permission_denied", "foreign", { reason: "PRINCIPAL_NOT_OWNER" });
      return { session: { id: sessionId, agent: "a" } };
    },
    async createSession({ sessionId }: { sessionId: string }, options: Options) {
      if (owners.has(sessionId)) throw connectError("already_exists", "taken", { reason: "SESSION_ALREADY_EXISTS" });
      owners.set(sessionId, by(options));
      return { session: { id: sessionId, agent: "a" } };
    },
  };
  return (stateKey = key) => new McpSessions(service as never, stateKey);
}

test("SEC-2 nobody computes the id of another's standing session, and all gateways of a suite do", async () => {
  const sessions = openSessions(new Map());
  const id = await sessions().standing("a", alice);
  const digest = createHash("sha256")
    .update(JSON.stringify(["alice", "a", 0]))
    .digest("base64url");
  expect(id).not.toBe(`mcp-${digest.slice(0, 32)}`);
  expect(id).toMatch(/^mcp-[\w-]{32}$/);
  expect(await sessions().standing("a", alice)).toBe(id);
  expect(await sessions(createSecretKey(new Uint8Array(32))).standing("a", alice)).not.toBe(id);
});

test("SEC-2 whose standing session is taken by another principal has the next one", async () => {
  const owners = new Map<string, string>();
  const sessions = openSessions(owners);
  const id = await sessions().standing("a", alice);
  owners.set(id, "mallory");
  const next = await sessions().standing("a", alice);
  expect(next).not.toBe(id);
  expect(owners.get(next)).toBe("alice");
  await expect(sessions().require(id, alice)).rejects.toMatchObject({ reason: "SESSION_NOT_FOUND" });
});

test("SEC-2 nobody computes the id of another's call", () => {
  const call = { principal: "alice", sessionId: "s", id: 1 };
  const digest = createHash("sha256")
    .update(JSON.stringify(["s", 1]))
    .digest("base64url");
  expect(callIdOf(key, call)).not.toBe(`mcp-${digest}`);
  expect(callIdOf(key, call)).toBe(callIdOf(key, { ...call }));
  const others = [{ principal: "bob" }, { sessionId: "t" }, { id: "1" }, { id: 2 }];
  const ids = [callIdOf(key, call), ...others.map((other) => callIdOf(key, { ...call, ...other }))];
  expect(new Set(ids).size).toBe(ids.length);
});
