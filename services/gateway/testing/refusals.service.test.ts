// Whatever is refused carries a reason of the contract, and that before a handler gets the request, too: by every protocol.

import { create, type DescMethod, toBinary } from "@bufbuild/protobuf";
import { Code, type ConnectError } from "@connectrpc/connect";
import { headers as natsHeaders } from "@nats-io/nats-core";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { connectError } from "#runtime/failure/connect.ts";
import { detailOf, nameFromReason } from "#runtime/failure/error-detail.ts";
import { IDENTITY_HEADER } from "#runtime/rpc/access/callers.ts";
import { issuerOf } from "#runtime/rpc/access/tokens/issuer.ts";
import { serveOnBus } from "#runtime/rpc/bus/server.ts";
import { subjectOfMethod } from "#runtime/rpc/nats/channel/subjects.ts";
import { errorFromFrame } from "#runtime/rpc/nats/frame/error-frame.ts";
import { parseFrame } from "#runtime/rpc/nats/frame/frame.ts";
import { openTelemetry } from "#runtime/telemetry/telemetry.ts";
import { openTestBus, type TestBus } from "../../../test/harness/bus.ts";
import { readConfig } from "../config.ts";
import { openService } from "../service.ts";
import { faults } from "./faults.ts";
import { errorOf, framed, type HttpVersion, type ProbeRequest, type Protocol, protocols, send } from "./http-probe.ts";

const key = "a-key-of-some-length";
const stack = new AsyncDisposableStack();
/** What the gateway writes as its own errors. */
const logged: string[] = [];
let url = "";
let bus: TestBus;
let calls = 0;

beforeAll(async () => {
  bus = stack.use(await openTestBus());
  stack.use(
    await serveOnBus(bus, {
      service: "tool-router",
      logger: pino({ level: "silent" }),
      routes: (router) => {
        router.service(AgentService, {
          listAgents() {
            calls += 1;
            return {};
          },
          getAgent({ name }) {
            const metadata = { name: name.repeat(bus.connection.info?.max_payload ?? 0) };
            throw connectError("not_found", `there is no agent ${name}`, { reason: "AGENT_NOT_FOUND", metadata });
          },
          async *watchAgents() {
            calls += 1;
            yield {};
          },
        });
      },
    }),
  );
  const { url: natsUrl, credentials } = bus.server;
  const config = readConfig({
    NATS_URL: natsUrl,
    TOOLBUS_BUS_CREDENTIALS: credentials,
    TOOLBUS_HTTP_PORT: "0",
    TOOLBUS_API_KEYS: `alice:${key}`,
    TOOLBUS_MAX_REQUEST_BYTES: "65536",
  });
  const telemetry = stack.use(await openTelemetry({ service: "gateway" }));
  const logger = pino({ level: "error" }, { write: (line: string) => logged.push(line) });
  const context = { name: "gateway", instance: "g1", logger, telemetry, signal: new AbortController().signal };
  url = String(stack.use(await openService(config, context)).announcement?.url);
});
afterAll(() => stack.disposeAsync());

function reasonOf(error: ConnectError | undefined): string | undefined {
  const detail = error && detailOf(error);
  return detail && nameFromReason(detail.reason);
}

function requestOf(protocol: Protocol, fault: Partial<ProbeRequest> = {}): ProbeRequest {
  const { binary, method } = protocol;
  const headers = { "content-type": binary, "x-api-key": key, ...fault.headers };
  return { method: "POST", path: `/${AgentService.typeName}/${method}`, body: framed(protocol, ""), ...fault, headers };
}

const versions: HttpVersion[] = ["1.1", "2"];
const doors = versions.flatMap((version) =>
  Object.entries(protocols).map(([name, protocol]) => [name, version, protocol] as const),
);

describe.each(doors)("BUS-3 %s over HTTP/%s", (_, version, protocol) => {
  it("serves a request that has no fault", async () => {
    const before = calls;
    const answer = await send(url, version, requestOf(protocol));
    expect([answer.status, errorOf(answer)]).toEqual([200, undefined]);
    expect(calls).toBe(before + 1);
  });

  const own = faults.filter(({ of = () => true }) => of(protocol, version));
  it.each(own)("refuses $fault with its reason", async ({ request, code, reason, says, status }) => {
    const before = calls;
    const answer = await send(url, version, requestOf(protocol, request(protocol)));
    const error = errorOf(answer);
    expect(error).toMatchObject({ code, rawMessage: expect.stringMatching(says) });
    expect(reasonOf(error)).toBe(reason);
    if (status !== undefined && !protocol.isEnveloped) expect(answer.status).toBe(status);
    expect(calls, "no handler behind the gateway has seen it").toBe(before);
  });

  it("names the compressions that there are beside its refusal of another", async () => {
    const answer = await send(url, version, requestOf(protocol, { headers: { [protocol.encoding]: "zstd" } }));
    const accepted = protocol.encoding.replace(/(content-)?encoding$/, "accept-encoding");
    expect(answer.headers.get(accepted)).toBe("gzip,br");
  });
});

it("BUS-3 requests that cannot be read fill no log: they are no failure of the gateway", () => {
  expect(logged).toEqual([]);
});

describe("BUS-2 on the bus", () => {
  it.each([
    [
      "a request that is no message",
      {},
      Uint8Array.of(0xff),
      "REQUEST_MALFORMED",
      /is no toolbus\.agent\.v1\.ListAgentsRequest: ./,
    ],
    [
      "a limit of time that is no number",
      { "Rpc-Timeout": "soon" },
      new Uint8Array(),
      "REQUEST_MALFORMED",
      /Rpc-Timeout.*"soon"/,
    ],
  ] as const)("%s is refused with its reason", async (_, headers, body, reason, says) => {
    const error = await refusalOf(AgentService.method.listAgents, headers, body);
    expect(error).toMatchObject({ rawMessage: expect.stringMatching(says) });
    expect(reasonOf(error)).toBe(reason);
  });

  it("a request that comes too late is refused with its reason", async () => {
    const requestAt = (ms: number) => refusalOf(AgentService.method.deleteAgent, { "Rpc-Sent": `test ${ms}` });
    expect(reasonOf(await requestAt(50_000))).toBe("METHOD_UNIMPLEMENTED");
    const error = await requestAt(45_000);
    expect(error).toMatchObject({ code: Code.DeadlineExceeded, rawMessage: expect.stringContaining("not started") });
    expect(reasonOf(error)).toBe("DEADLINE_EXCEEDED");
  });

  it("a method that its service does not implement is refused with its reason", async () => {
    const error = await refusalOf(AgentService.method.deleteAgent, {});
    expect(error).toMatchObject({ code: Code.Unimplemented, rawMessage: expect.stringContaining("DeleteAgent") });
    expect(reasonOf(error)).toBe("METHOD_UNIMPLEMENTED");
  });

  it("a refusal that is too big for a message keeps its reason", async () => {
    const { getAgent } = AgentService.method;
    const body = toBinary(getAgent.input, create(getAgent.input, { name: "x" }));
    const error = await refusalOf(getAgent, {}, body);
    expect(error).toMatchObject({ code: Code.NotFound, rawMessage: expect.stringContaining("too big to send") });
    expect(reasonOf(error)).toBe("AGENT_NOT_FOUND");
  });
});

async function refusalOf(
  method: DescMethod,
  given: Record<string, string>,
  body = new Uint8Array(),
): Promise<ConnectError> {
  const headers = natsHeaders();
  const caller = { service: "test", isOperator: false };
  headers.set(IDENTITY_HEADER, await issuerOf(bus.login).tokenFor(caller, "tool-router"));
  for (const [name, value] of Object.entries(given)) headers.set(name, value);
  const subject = subjectOfMethod("tool-router", method);
  const answer = await bus.connection.request(subject, body, { headers, timeout: 5_000 });
  return errorFromFrame(parseFrame(answer.data)?.body ?? new Uint8Array(), answer.headers, true);
}
