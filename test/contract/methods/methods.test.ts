import type { DescMethod, DescMethodStreaming, DescMethodUnary, DescService } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { transportOnBus } from "#runtime/rpc/bus/client.ts";
import { internalServices, processOf, publicServices } from "../../../services/processes.ts";
import { openTestSuite } from "../../harness/suite.ts";
import { filledMessage } from "./filled-message.ts";

/** Methods of the contract that no service serves. The list may only shrink: what is taken up leaves it. */
const absent: string[] = [];

/** Rooms that offer tools. */
const providers = ["caller-relay", "mcp-bridge", "orchestrator", "spaces", "worker-pool"];

const stack = new AsyncDisposableStack();
let transportOf: (service: string) => Transport;

beforeAll(async () => {
  const suite = stack.use(await openTestSuite());
  const bus = await suite.openBus();
  transportOf = (service) => transportOnBus(bus, { process: service });
});
afterAll(() => stack.disposeAsync());

const served = [...publicServices, ...internalServices].map((service) => [processOf(service), service] as const);
const offered = providers.map((service) => [service, ToolProviderService] as const);

it("BUS-1 every method of the contract is served, but for a list that may only shrink", async () => {
  const all = [...served, ...offered].flatMap(([name, service]) => methodsOf(name, service));
  const found = await Promise.all(all.map(async (entry) => ({ ...entry, isAbsent: await isUnserved(entry) })));
  expect(
    found
      .filter((entry) => entry.isAbsent)
      .map((entry) => entry.name)
      .sort(),
  ).toEqual(absent);
  expect(found.length).toBeGreaterThan(60);
});

interface Entry {
  service: string;
  name: string;
  method: DescMethod;
}

function methodsOf(served: string, service: DescService): Entry[] {
  return service.methods.map((method) => ({
    service: served,
    name: `${service.typeName}/${method.name} of ${served}`,
    method,
  }));
}

/** Any answer, a refusal too, shows that somebody thought about the request; a service that nobody registered is `unavailable`. */
async function isUnserved({ service, method }: Entry): Promise<boolean> {
  const transport = transportOf(service);
  const message = filledMessage(method.input);
  try {
    if (method.methodKind === "unary")
      await transport.unary(method as DescMethodUnary, undefined, 2_000, undefined, message);
    else {
      const streaming = method as DescMethodStreaming;
      const response = await transport.stream(streaming, undefined, 2_000, undefined, only(message));
      for await (const _ of response.message) break;
    }
    return false;
  } catch (error) {
    return [Code.Unimplemented, Code.Unavailable].includes(ConnectError.from(error).code);
  }
}

async function* only<T>(value: T): AsyncIterable<T> {
  yield value;
}
