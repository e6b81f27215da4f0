import { Code, ConnectError, createClient, createRouterTransport, type Interceptor } from "@connectrpc/connect";
import { afterEach, expect, test, vi } from "vitest";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { type CallToolRequest, ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { connectError } from "#runtime/failure/connect.ts";
import { until } from "#runtime/time/until.ts";
import type { Connection } from "../connection.ts";
import { resultOfToolCall } from "./tool-call.ts";

const call = { sessionId: "s", name: "tool", argumentsJson: "{}" };
const untroubled = new AbortController().signal;
const silence = "nothing was heard of the call for 3000 ms";

afterEach(() => {
  vi.restoreAllMocks();
});

/** A gateway whose routers are lost in mid-call so many times. */
function openGateway(lost: number, ...interceptors: Interceptor[]) {
  const requests: CallToolRequest[] = [];
  const transport = createRouterTransport(
    ({ service }) => {
      service(ToolService, {
        async *callTool(request) {
          requests.push(request);
          if (requests.length <= lost) throw new ConnectError(silence, Code.Unavailable);
          yield { event: { case: "result", value: { outputJson: '"done"' } } };
        },
      });
    },
    { transport: { interceptors } },
  );
  const connection: Connection = { url: "", client: (service) => createClient(service, transport) };
  return { connection, requests };
}

function listenToStderr(): string[] {
  const told: string[] = [];
  vi.spyOn(process.stderr, "write").mockImplementation((text) => told.push(String(text)) > 0);
  return told;
}

test("a call whose router falls silent is made again under its id, and that is said", async () => {
  const { connection, requests } = openGateway(2);
  const told = listenToStderr();
  expect(await resultOfToolCall(connection, call, untroubled)).toMatchObject({ outputJson: '"done"' });
  expect(new Set(requests.map(({ callId }) => callId)).size).toBe(1);
  expect(requests[0]?.callId).not.toBe("");
  expect(told).toHaveLength(2);
  expect(told[0]).toContain(`${silence}: the call ${requests[0]?.callId} is repeated (1 of 8)`);
});

test("a call that is lost again and again ends with the fault", async () => {
  const { connection, requests } = openGateway(100);
  listenToStderr();
  const id = () => requests[0]?.callId;
  await expect(resultOfToolCall(connection, call, untroubled, 4)).rejects.toSatisfy(({ message }: Error) => {
    expect(message).toContain(`the outcome of the call ${id()} is unknown: ${silence}\n`);
    expect(message).toContain(`calls result ${id()}"`);
    return true;
  });
  expect(requests).toHaveLength(5);
});

/** As the socket says it of a port where nobody listens. */
function refused(): ConnectError {
  const cause = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
  return new ConnectError(cause.message, Code.Unavailable, undefined, undefined, cause);
}

/** Calls of it fail with these, one after another, and then are done. */
function openFailingGateway(...errors: ConnectError[]) {
  const calls = { count: 0 };
  const { connection } = openGateway(0, (next) => (request) => {
    calls.count += 1;
    const error = errors.shift();
    if (error) throw error;
    return next(request);
  });
  return { connection, calls };
}

test("BUS-6 a call that was lost with its gateway is made again once there is another one", async () => {
  listenToStderr();
  const lost = new ConnectError("the connection broke", Code.Unavailable);
  const { connection, calls } = openFailingGateway(lost, refused(), refused());
  expect(await resultOfToolCall(connection, call, untroubled)).toMatchObject({ outputJson: '"done"' });
  expect(calls.count).toBe(4);
});

test("a call that was lost with its gateway, of which there is no other one, may have been carried out", async () => {
  listenToStderr();
  const lost = new ConnectError("the connection broke", Code.Unavailable);
  const { connection, calls } = openFailingGateway(lost, refused(), refused());
  const result = resultOfToolCall(connection, call, untroubled, 2);
  await expect(result).rejects.toThrow(/the outcome of the call \S+ is unknown: connect ECONNREFUSED$/m);
  expect(calls.count).toBe(3);
});

test("a call that reached no gateway is not repeated", async () => {
  const error = refused();
  const { connection, calls } = openFailingGateway(error);
  await expect(resultOfToolCall(connection, call, untroubled)).rejects.toBe(error);
  expect(calls.count).toBe(1);
});

test("TOOL-9 a call that is interrupted is canceled, and its result says so", async () => {
  const told = listenToStderr();
  const interruption = new AbortController();
  const [begun, canceled] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  const transport = createRouterTransport(({ service }) => {
    service(ToolService, {
      async *callTool({ callId }) {
        begun.resolve(callId);
        await canceled.promise;
        yield { event: { case: "result", value: { isError: true, outputJson: '"the call was canceled"' } } };
      },
    });
    service(ToolCallService, {
      cancelToolCall({ callId }) {
        canceled.resolve(callId);
        return { started: true };
      },
    });
  });
  const connection: Connection = { url: "", client: (service) => createClient(service, transport) };
  const result = resultOfToolCall(connection, call, interruption.signal);
  const callId = await begun.promise;
  interruption.abort();
  expect(await canceled.promise).toBe(callId);
  expect(await result).toMatchObject({ isError: true });
  expect(told).toContain(`the call ${callId} is canceled\n`);
});

const notStarted = () => connectError("unavailable", "no router is there", { reason: "CALL_NOT_STARTED" });

test("BUS-6 a call that nobody started is repeated as one that is lost, and then told as what it is", async () => {
  listenToStderr();
  const errors = Array.from({ length: 20 }, notStarted);
  const { connection, calls } = openFailingGateway(...errors);
  await expect(resultOfToolCall(connection, call, untroubled, 3)).rejects.toBe(errors[3]);
  expect(calls.count).toBe(4);
});

test("a call that was lost stays unknown if nobody starts its repetitions", async () => {
  listenToStderr();
  const { connection } = openFailingGateway(new ConnectError(silence, Code.Unavailable), notStarted(), notStarted());
  const result = resultOfToolCall(connection, call, untroubled, 2);
  await expect(result).rejects.toThrow(/the outcome of the call \S+ is unknown: no router is there$/m);
});

test("TOOL-9 a lost call that is interrupted is not made again: it is canceled, as soon as somebody can", async () => {
  const told = listenToStderr();
  const interruption = new AbortController();
  const [sent, canceled]: [string[], string[]] = [[], []];
  const gateway = { isThere: true, refusals: 0 };
  const transport = createRouterTransport(
    ({ service }) => {
      service(ToolService, {
        // biome-ignore lint/correctness/useYield: it is lost before it says anything
        async *callTool({ callId }) {
          sent.push(callId);
          gateway.isThere = false;
          throw new ConnectError("the connection broke", Code.Unavailable);
        },
      });
      service(ToolCallService, {
        cancelToolCall({ callId }) {
          canceled.push(callId);
          return { started: true };
        },
      });
    },
    {
      transport: {
        interceptors: [
          (next) => (request) => {
            if (gateway.isThere) return next(request);
            gateway.refusals += 1;
            throw refused();
          },
        ],
      },
    },
  );
  const connection: Connection = { url: "", client: (service) => createClient(service, transport) };
  const result = resultOfToolCall(connection, call, interruption.signal).catch((error: Error) => error);
  await until(() => told.join("").includes("(2 of 8)"));
  const { refusals } = gateway;
  interruption.abort();
  await until(() => gateway.refusals > refusals);
  gateway.isThere = true;
  expect(await result).toMatchObject({ message: expect.stringContaining("the outcome of the call") });
  expect(sent).toHaveLength(1);
  expect(canceled).toEqual(sent);
});

test("TOOL-9 the cancellation of a call is repeated until a gateway takes it", async () => {
  const told = listenToStderr();
  const interruption = new AbortController();
  const [begun, canceled] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const attempts = { count: 0 };
  const transport = createRouterTransport(({ service }) => {
    service(ToolService, {
      async *callTool() {
        begun.resolve();
        await canceled.promise;
        yield { event: { case: "result", value: { isError: true, outputJson: '"the call was canceled"' } } };
      },
    });
    service(ToolCallService, {
      cancelToolCall() {
        attempts.count += 1;
        if (attempts.count === 1) throw new ConnectError(silence, Code.Unavailable);
        canceled.resolve();
        return { started: true };
      },
    });
  });
  const connection: Connection = { url: "", client: (service) => createClient(service, transport) };
  const result = resultOfToolCall(connection, call, interruption.signal);
  await begun.promise;
  interruption.abort();
  expect(await result).toMatchObject({ isError: true });
  expect(attempts.count).toBe(2);
  expect(told.join("")).not.toContain("could not be canceled");
});
