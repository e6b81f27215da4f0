import { create } from "@bufbuild/protobuf";
import { BytesValueSchema } from "@bufbuild/protobuf/wkt";
import {
  type Client,
  Code,
  ConnectError,
  createClient,
  createRouterTransport,
  type Interceptor,
  type ServiceImpl,
} from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { asPrincipal } from "../../test/harness/callers.ts";
import { failureFromConnectError } from "../failure/connect.ts";
import { Failure } from "../failure/failure.ts";
import { openTelemetry, type Telemetry } from "../telemetry/telemetry.ts";
import { openCollector } from "../telemetry/testing/collector.ts";
import { currentTrace, runInTrace, traceFromFields } from "../telemetry/trace-context.ts";
import { openProvenCallers } from "./access/testing/proven-callers.ts";
import { callerOf, currentPrincipal, LOCAL_PRINCIPAL, principalOf, withPrincipal } from "./identity.ts";
import { clientInterceptors, serverInterceptors } from "./interceptors.ts";
import { EchoService } from "./nats/testing/echo-service.ts";
import { contractValidation } from "./validation.ts";

const TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const bytes = (text: string) => create(BytesValueSchema, { value: new TextEncoder().encode(text) });
const textOf = (message: { value: Uint8Array }) => new TextDecoder().decode(message.value);

function createLog() {
  const lines: { details: object; message: string }[] = [];
  const logger = { error: (details: object, message: string) => void lines.push({ details, message }) };
  return { lines, logger: logger as Parameters<typeof serverInterceptors>[0]["logger"] };
}

const callers = openProvenCallers();

/** A client of a server in the same process, both with the interceptors of production. */
function openEcho(
  implementation: Partial<ServiceImpl<typeof EchoService>>,
  options: { telemetry?: Telemetry; logger?: ReturnType<typeof createLog>["logger"]; client?: Interceptor[] } = {},
): Client<typeof EchoService> {
  const { telemetry, logger = createLog().logger } = options;
  const transport = createRouterTransport((router) => router.service(EchoService, implementation), {
    router: { interceptors: serverInterceptors({ logger, verify: callers.verify, ...(telemetry && { telemetry }) }) },
    transport: { interceptors: [...(options.client ?? clientInterceptors({ telemetry })), callers.sender()] },
  });
  return createClient(EchoService, transport);
}

describe("failures", () => {
  test("of a unary call and in the middle of a stream reach the caller with code, reason and metadata", async () => {
    const failure = new Failure("not_found", "no such tool", { reason: "TOOL_NOT_FOUND", metadata: { tool: "x" } });
    const client = openEcho({
      unary() {
        throw failure;
      },
      async *serverStream(request) {
        yield request;
        throw failure;
      },
    });
    const expected = { code: "not_found", message: "no such tool", reason: "TOOL_NOT_FOUND", metadata: { tool: "x" } };
    const unary = await client.unary(bytes("")).catch(failureFromConnectError);
    expect(unary).toMatchObject(expected);
    const stream = client.serverStream(bytes("first"))[Symbol.asyncIterator]();
    expect(textOf((await stream.next()).value)).toBe("first");
    expect(await stream.next().catch(failureFromConnectError)).toMatchObject(expected);
  });

  test("that nobody foresaw say nothing to the caller and everything to the log", async () => {
    const { lines, logger } = createLog();
    const cause = new TypeError("x is not a function");
    const client = openEcho(
      {
        unary() {
          throw cause;
        },
      },
      { logger },
    );
    const error = await client.unary(bytes("")).catch(ConnectError.from);
    expect(error).toMatchObject({ code: Code.Internal, rawMessage: "internal error" });
    expect(lines).toEqual([
      {
        details: { err: cause, method: "toolbus.echo.v1.EchoService/Unary" },
        message: "toolbus.echo.v1.EchoService/Unary failed: internal error",
      },
    ]);
  });
});

describe("validation", () => {
  function openRuns(validate: boolean) {
    const transport = createRouterTransport((router) => router.service(RunService, { getRun: () => ({}) }), {
      router: {
        interceptors: serverInterceptors({
          logger: createLog().logger,
          verify: callers.verify,
          ...(validate && { validation: contractValidation }),
        }),
      },
      transport: { interceptors: [callers.sender()] },
    });
    return createClient(RunService, transport);
  }

  test("refuses a bad request as invalid_argument that names the field, at the doors", async () => {
    const error = await openRuns(true).getRun({ runId: "no spaces, please" }).catch(ConnectError.from);
    expect(error).toMatchObject({ code: Code.InvalidArgument });
    expect((error as ConnectError).rawMessage).toContain("run_id");
    expect(failureFromConnectError(error)).toMatchObject({
      reason: "INVALID_REQUEST",
      fieldViolations: [{ field: "run_id", ruleId: "string.pattern" }],
    });
    await openRuns(true).getRun({ runId: "fine" });
  });

  test("is left out between services", async () => {
    await openRuns(false).getRun({ runId: "no spaces, please" });
  });
});

describe("the principal", () => {
  test("is local when a service asks by itself, and survives any name", async () => {
    const echo = openEcho({ unary: (_request, context) => bytes(principalOf(callerOf(context))) });
    expect(textOf(await echo.unary(bytes("")))).toBe(LOCAL_PRINCIPAL);
    for (const name of ["ann@example.org", "jörg müller", "100%", "a%20b"])
      expect(textOf(await withPrincipal(name, () => echo.unary(bytes(""))))).toBe(name);
  });

  test("of a call goes on with the calls that its handler makes, in streams too, and nowhere else", async () => {
    const inner = openEcho({ unary: (_request, context) => bytes(principalOf(callerOf(context))) });
    const outer = openEcho({
      unary: () => inner.unary(bytes("")),
      async *serverStream() {
        yield inner.unary(bytes(""));
        yield inner.unary(bytes(""));
      },
    });
    expect(textOf(await withPrincipal("ann", () => outer.unary(bytes(""))))).toBe("ann");
    expect(textOf(await outer.unary(bytes("")))).toBe(LOCAL_PRINCIPAL);
    const texts = (await Array.fromAsync(outer.serverStream(bytes(""), asPrincipal("bob")))).map(textOf);
    expect(texts).toEqual(["bob", "bob"]);
    expect(currentPrincipal()).toBeUndefined();
  });
});

describe("the trace", () => {
  const seen: Partial<ServiceImpl<typeof EchoService>> = {
    unary: (_request, context) => bytes(context.requestHeader.get("traceparent") ?? "none"),
  };

  test("is passed on without a collector, through streams too, and is not begun", async () => {
    const inner = openEcho(seen);
    const outer = openEcho({
      unary: () => inner.unary(bytes("")),
      async *serverStream() {
        yield inner.unary(bytes(""));
        yield bytes(currentTrace()?.traceparent ?? "none");
      },
    });
    const headers = { traceparent: TRACEPARENT };
    expect(textOf(await outer.unary(bytes(""), { headers }))).toBe(TRACEPARENT);
    expect((await Array.fromAsync(outer.serverStream(bytes(""), { headers }))).map(textOf)).toEqual([
      TRACEPARENT,
      TRACEPARENT,
    ]);
    expect(textOf(await outer.unary(bytes("")))).toBe("none");
    expect(textOf(await outer.unary(bytes(""), { headers: { traceparent: "rubbish" } }))).toBe("none");
  });

  test.each([
    ["letters that no header holds", "\u4f60=1"],
    ["a line break", "a=1\nb=2"],
    ["more than has to be passed on", "a=".padEnd(600, "1")],
  ])("that anybody has filled is passed on without a state of %s", async (_what, tracestate) => {
    const { unary } = openEcho({
      unary: (_request, { requestHeader }) =>
        bytes(`${requestHeader.get("traceparent")} ${requestHeader.get("tracestate")}`),
    });
    const trace = traceFromFields({ traceparent: TRACEPARENT, tracestate }) ?? { traceparent: "" };
    expect(textOf(await runInTrace(trace, () => unary(bytes(""))))).toBe(`${TRACEPARENT} null`);
  });

  test("with a collector is a chain of spans from the door to the last server, failures marked", async () => {
    await using collector = await openCollector();
    {
      await using door = await openTelemetry({ service: "gateway", otlpEndpoint: collector.url });
      await using room = await openTelemetry({ service: "tool-router", otlpEndpoint: collector.url });
      const inner = openEcho(
        {
          async *serverStream() {
            yield bytes("x");
            throw new Failure("unavailable", "gone", { reason: "SERVICE_UNAVAILABLE" });
          },
        },
        { telemetry: room, client: clientInterceptors({ telemetry: door }) },
      );
      const outer = openEcho(
        {
          async unary(request) {
            await Array.fromAsync(inner.serverStream(request)).catch(() => {});
            return request;
          },
        },
        { telemetry: door, client: [] },
      );
      await outer.unary(bytes(""), { headers: { traceparent: TRACEPARENT } });
    }
    const byKey = new Map(collector.spans.map((span) => [`${span.service} ${span.kind}`, span]));
    expect([...byKey.keys()].sort()).toEqual(["gateway 2", "gateway 3", "tool-router 2"]);
    const [server, client, last] = ["gateway 2", "gateway 3", "tool-router 2"].map((key) => byKey.get(key)!);
    expect(server!.parentSpanId).toBe("b7ad6b7169203331");
    expect(client!.parentSpanId).toBe(server!.spanId);
    expect(last!.parentSpanId).toBe(client!.spanId);
    expect(new Set(collector.spans.map((span) => span.traceId))).toEqual(new Set(["0af7651916cd43dd8448eb211c80319c"]));
    expect(last!.status).toMatchObject({ code: 2, message: "[unavailable] gone" });
    expect(server!.status.code ?? 0).toBe(0);
  });

  test("a collector that is away neither fails a call nor holds up the end", async () => {
    const telemetry = await openTelemetry({ service: "x", otlpEndpoint: "http://127.0.0.1:1" });
    expect(textOf(await openEcho(seen, { telemetry }).unary(bytes("")))).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    await telemetry[Symbol.asyncDispose]();
  });
});

describe("metrics", () => {
  test("count calls by service, method and code, and tell what is in flight", async () => {
    await using telemetry = await openTelemetry({ service: "gateway", instance: "i1", hasMetrics: true });
    const client = openEcho(
      {
        unary() {
          throw new Failure("not_found", "x", { reason: "RUN_NOT_FOUND" });
        },
        async *serverStream(request) {
          yield request;
          yield request;
        },
      },
      { telemetry },
    );
    await client.unary(bytes("")).catch(() => {});
    await Array.fromAsync(client.serverStream(bytes("")));
    const open = client.serverStream(bytes(""))[Symbol.asyncIterator]();
    await open.next();
    const text = await telemetry.metricsText();
    const labels = 'service="toolbus.echo.v1.EchoService",method=';
    expect(text).toContain(`rpc_server_duration_seconds_count{${labels}"Unary",code="not_found"} 1`);
    expect(text).toContain(`rpc_server_duration_seconds_count{${labels}"ServerStream",code="ok"} 1`);
    expect(text).toContain(`rpc_server_in_flight{${labels}"ServerStream"} 1`);
    expect(text).toContain('service_name="gateway"');
    await Array.fromAsync({ [Symbol.asyncIterator]: () => open });
    expect(await telemetry.metricsText()).toContain(`rpc_server_in_flight{${labels}"ServerStream"} 0`);
  });

  test("are empty where nobody asks for them", async () => {
    await using telemetry = await openTelemetry({ service: "x" });
    expect(telemetry.rpcMetrics).toBeUndefined();
    expect(await telemetry.metricsText()).toBe("");
  });
});
