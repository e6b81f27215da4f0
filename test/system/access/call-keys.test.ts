// A key of one call against a suite of processes: what it may, and what whoever has it does not get, at every door.

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Client, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.ts";
import { Health } from "#gen/health/v1/health_pb.ts";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { AuditService } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { takesCallKey } from "#runtime/rpc/access/rules.ts";
import { createCallKeySigner } from "#runtime/rpc/access/tokens/call-keys.ts";
import { until } from "#runtime/time/until.ts";
import { publicServices } from "../../../services/processes.ts";
import { asCaller } from "../../harness/callers.ts";
import { nameOf, requestFor } from "./attempts.ts";
import { answerOf } from "./got.ts";
import { gatewayAt, keys, openWorld, sessionId, type World } from "./world.ts";

let world: World;
let url = "";
let alice: Client<typeof ToolCallService>;
beforeAll(async () => {
  world = await openWorld();
  url = world.suite.url;
  alice = gatewayAt(url, keys.alice).client(ToolCallService);
});
afterAll(() => world[Symbol.asyncDispose]());

const spacesOf = (key: string) => gatewayAt(url, key).client(SpaceService);
const callsWith = (key: string) => gatewayAt(url, key).client(ToolCallService);

let asked = 0;
/** A call of alice's agent that waits for a person; gives its id. */
async function ask(): Promise<string> {
  asked += 1;
  const callId = `asked-${asked}`;
  const events = gatewayAt(url, keys.alice).client(ToolService).callTool({ sessionId, name: "approve", callId });
  for await (const { event } of events) if (event.case === "result") break;
  return callId;
}

async function keyOf(callId: string): Promise<string> {
  return (await alice.createCallKey({ callId })).key;
}

async function reasonOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "none";
  } catch (error) {
    return failureFromConnectError(error).reason;
  }
}

const sends =
  (key: string): Interceptor =>
  (next) =>
  (request) => {
    request.header.set("authorization", `Bearer ${key}`);
    return next(request);
  };

const answer = (callId: string, value = '"yes"') => ({ callId, outcome: { case: "resultJson" as const, value } });

describe("SEC-2 a key of one call", () => {
  it("reads its call and answers it, and the trail says which key did, on whose behalf", async () => {
    const callId = await ask();
    const { key, keyId, expireTime } = await alice.createCallKey({ callId, lifetime: { seconds: 60n } });
    expect(Number(expireTime?.seconds) - Date.now() / 1_000).toBeLessThan(61);
    const { call } = await callsWith(key).getToolCall({ callId });
    expect(call).toMatchObject({ callId, tool: "approve", state: ToolCallState.PENDING });
    await callsWith(key).submitToolResult(answer(callId));
    expect((await alice.getToolCall({ callId })).call?.result?.outputJson).toBe('"yes"');

    const audit = gatewayAt(url, keys.alice).client(AuditService);
    const events = await until(async () => {
      const { events } = await audit.listAuditEvents({ filter: { sessionId } });
      const told = events.filter((event) => event.callId === callId && event.rule === `call key ${keyId}`);
      return told.length === 2 ? told : undefined;
    });
    expect(events?.map(({ kind, message }) => [kind, message]).sort()).toEqual([
      [AuditKind.KEY_CREATED, expect.stringContaining(`alice made call key ${keyId}, until `)],
      [AuditKind.ANSWERED, `answered on behalf of alice with call key ${keyId}`],
    ]);
  });

  it("is shown in the space where the call is, as every answer", async () => {
    const callId = await ask();
    await callsWith(await keyOf(callId)).submitToolResult(answer(callId, '"shown"'));
    await until(async () => {
      const { messages } = await spacesOf(keys.alice).listMessages({ spaceId: "hall" });
      return messages.some(
        ({ content: { case: kind, value } }) =>
          kind === "tool" && value.callId === callId && value.result?.outputJson === '"shown"',
      );
    });
  });

  it("is of no use once its call is answered, and none is made then", async () => {
    const callId = await ask();
    const key = await keyOf(callId);
    await alice.submitToolResult(answer(callId));
    const calls = callsWith(key);
    expect(await reasonOf(calls.getToolCall({ callId }))).toBe("CALL_ALREADY_RESOLVED");
    expect(await reasonOf(calls.submitToolResult(answer(callId, '"no"')))).toBe("CALL_ALREADY_RESOLVED");
    expect(await reasonOf(alice.createCallKey({ callId }))).toBe("CALL_ALREADY_RESOLVED");
  });

  it("is refused by every method that does not say that it takes one, with the reason", async () => {
    const callId = await ask();
    const { transport } = gatewayAt(url, await keyOf(callId));
    for (const method of publicServices.flatMap((service) => service.methods)) {
      if (takesCallKey(method)) continue;
      const request = requestFor(method, world);
      expect(await reasonOf(answerOf(method, transport, { request })), nameOf(method)).toBe("CALL_KEY_LIMITED");
    }
    expect((await alice.getToolCall({ callId })).call?.state).toBe(ToolCallState.PENDING);
  });

  const transports: Record<string, (key: string) => Transport> = {
    Connect: (key) => createConnectTransport({ baseUrl: url, httpVersion: "1.1", interceptors: [sends(key)] }),
    gRPC: (key) => createGrpcTransport({ baseUrl: url, interceptors: [sends(key)] }),
    "gRPC-Web": (key) => createGrpcWebTransport({ baseUrl: url, httpVersion: "1.1", interceptors: [sends(key)] }),
  };

  it.each(Object.entries(transports))("reaches no other call by %s", async (_name, open) => {
    const [callId, other] = [await ask(), await ask()];
    const calls = createClient(ToolCallService, open(await keyOf(callId)));
    expect((await calls.getToolCall({ callId })).call?.callId).toBe(callId);
    for (const foreign of [other, "weigh", "gone"]) {
      expect(await reasonOf(calls.getToolCall({ callId: foreign }))).toBe("CALL_KEY_LIMITED");
      expect(await reasonOf(calls.submitToolResult(answer(foreign)))).toBe("CALL_KEY_LIMITED");
    }
    expect((await alice.getToolCall({ callId: other })).call?.state).toBe(ToolCallState.PENDING);
  });

  it("is refused by what is open to everybody, too", async () => {
    const key = await keyOf(await ask());
    const transport = createGrpcTransport({ baseUrl: url, interceptors: [sends(key)] });
    expect(await reasonOf(createClient(Health, transport).check({}))).toBe("CALL_KEY_LIMITED");
    const reflection = createClient(ServerReflection, transport).serverReflectionInfo(
      (async function* () {
        yield { messageRequest: { case: "listServices" as const, value: "" } };
      })(),
    );
    expect(await reasonOf(Array.fromAsync(reflection))).toBe("CALL_KEY_LIMITED");
  });

  it("is refused past the gateway as well, by the service that is asked", async () => {
    const callId = await ask();
    const { contextValues } = asCaller({ principal: "alice", isOperator: false, callKey: { callId, id: "k" } });
    const calls = createClient(ToolCallService, world.onBus("tool-router"));
    expect((await calls.getToolCall({ callId }, { contextValues })).call?.callId).toBe(callId);
    expect(await reasonOf(calls.getToolCall({ callId: "weigh" }, { contextValues }))).toBe("CALL_KEY_LIMITED");
    expect(await reasonOf(calls.listToolCalls({}, { contextValues }))).toBe("CALL_KEY_LIMITED");
  });
});

describe("SEC-2 the doors that are no methods", () => {
  it.each([
    ["POST", "/mcp/keeper"],
    ["GET", "/mcp/keeper"],
    ["POST", "/mcp/~suite"],
    ["POST", "/v1/responses"],
    ["GET", "/v1/responses/resp_1"],
    ["GET", "/v1/models"],
    ["POST", "/v1/chat/completions"],
    ["GET", "/api/tool-calls?tool=weigh"],
    ["POST", "/api/tool-calls/weigh/acknowledgement"],
    ["GET", "/metrics"],
  ])("%s %s refuses a key of one call", async (method, path) => {
    const key = await keyOf(await ask());
    const headers = {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    };
    const body = method === "POST" ? JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }) : null;
    const response = await fetch(url + path, { method, headers, body });
    const said = await response.text();
    expect([response.status, said]).toEqual([403, expect.stringContaining("is not for a key of one call")]);
  });

  it("plain HTTP takes an answer for the call of the key, and for no other", async () => {
    const [callId, other] = [await ask(), await ask()];
    const headers = { authorization: `Bearer ${await keyOf(callId)}`, "content-type": "application/json" };
    const submit = (id: string) =>
      fetch(`${url}/api/runs//tool-results`, {
        method: "POST",
        headers,
        body: JSON.stringify({ callId: id, result: "plainly" }),
      });
    const refused = await submit(other);
    expect([refused.status, await refused.json()]).toMatchObject([403, { reason: "CALL_KEY_LIMITED" }]);
    expect((await submit(callId)).status).toBe(200);
    expect((await alice.getToolCall({ callId: other })).call?.state).toBe(ToolCallState.PENDING);
    expect((await alice.getToolCall({ callId })).call?.result?.outputJson).toBe('"plainly"');
  });
});

describe("SEC-1 a key of one call that does not hold", () => {
  /** As the router would sign it: the admin of the bus may speak for everybody. */
  async function signed(callId: string, inMs: number): Promise<string> {
    const { login } = await world.suite.openBus();
    const facts = { principal: "alice", callId, id: "k", expireMs: Date.now() + inMs };
    return createCallKeySigner(login)(facts);
  }

  it("has expired, was changed, or is of a principal without a key", async () => {
    const callId = await ask();
    const read = (key: string) => reasonOf(callsWith(key).getToolCall({ callId }));
    expect(await read(await signed(callId, 60_000)), "so it would hold").toBe("none");
    expect(await read(await signed(callId, -60_000))).toBe("CREDENTIALS_INVALID");
    const key = await keyOf(callId);
    const [prefix, head, payload = "", seal = ""] = key.split(".");
    const claims = JSON.parse(Buffer.from(payload, "base64url").toString());
    for (const change of [{ call: "weigh" }, { sub: "olga" }, { exp: claims.exp + 9_999 }, { aud: "tool-router" }]) {
      const forged = Buffer.from(JSON.stringify({ ...claims, ...change })).toString("base64url");
      expect(await read([prefix, head, forged, seal].join("."))).toBe("CREDENTIALS_INVALID");
    }
    expect(await read(key.slice(0, -2))).toBe("CREDENTIALS_INVALID");
    expect(await read(key.slice("call.".length)), "as a token of an issuer").toBe("CREDENTIALS_INVALID");
  });

  it("never comes into a log", async () => {
    const callId = await ask();
    const key = await keyOf(callId);
    await callsWith(key).getToolCall({ callId });
    await reasonOf(callsWith(key).listToolCalls({}));
    const folder = join(world.suite.directory, "logs");
    const files = (await readdir(folder)).map((name) => readFile(join(folder, name), "utf8"));
    const logs = (await Promise.all(files)).join("\n");
    expect(logs).toContain("tool-router");
    expect(logs).not.toContain(key.split(".")[2]);
  });
});

describe("SEC-2 a key of one call is made", () => {
  it("by whoever may answer the call: its owner, and for whom its space is, as long as it is", async () => {
    const mallory = callsWith(keys.mallory);
    const callId = await ask();
    const { key } = await mallory.createCallKey({ callId });
    expect((await callsWith(key).getToolCall({ callId })).call?.callId).toBe(callId);
    await spacesOf(keys.alice).setSpaceGrants({ spaceId: "hall", grants: { principals: ["alice"] } });
    const refused = async () => reasonOf(callsWith(key).getToolCall({ callId }));
    await until(async () => (await refused()) === "PRINCIPAL_NOT_OWNER");
    expect(await reasonOf(callsWith(key).submitToolResult(answer(callId)))).toBe("PRINCIPAL_NOT_OWNER");
    expect(await reasonOf(mallory.createCallKey({ callId }))).toBe("PRINCIPAL_NOT_OWNER");
    expect(await reasonOf(callsWith(keys.olga).createCallKey({ callId })), "an operator is nobody special").toBe(
      "PRINCIPAL_NOT_OWNER",
    );
    expect((await alice.getToolCall({ callId })).call?.state).toBe(ToolCallState.PENDING);
    await spacesOf(keys.alice).setSpaceGrants({ spaceId: "hall" });
  });

  it("for calls that wait for people, and for no longer than a week", async () => {
    expect(await reasonOf(alice.createCallKey({ callId: "weigh" }))).toBe("CALL_NOT_AWAITED");
    expect(await reasonOf(callsWith(keys.mallory).createCallKey({ callId: "weigh" }))).toBe("PRINCIPAL_NOT_OWNER");
    expect(await reasonOf(alice.createCallKey({ callId: "gone" }))).toBe("CALL_NOT_FOUND");
    const callId = await ask();
    for (const seconds of [604_801n, 0n, -1n])
      expect(await reasonOf(alice.createCallKey({ callId, lifetime: { seconds } }))).toBe("INVALID_REQUEST");
  });
});
