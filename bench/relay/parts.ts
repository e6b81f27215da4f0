import { create, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { AgentService, ListAgentsResponseSchema } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { RAW_SUBJECT } from "../call/setting.ts";
import type { BenchSuite } from "../measuring/bench-suite.ts";
import { measureLatencies } from "../measuring/latencies.ts";
import { openPeer } from "../measuring/peer.ts";

/*
 * What the steps take that no call can do without, each by itself on this machine and one after the other, with none of the suite's
 * code between them. The way of a call is
 *
 *   3.5 requests over NATS     from who calls to the router, from there to the relay, from the gateway with the answer, and one way
 *                              from the relay to the gateway
 *   3 appends to a stream      the router's record before and after, and the answer's
 *   2 reads of a last message  the session; the declaration and the streams, at once
 *   1.5 requests over HTTP/2   the answer of the program, and one way to it
 */
const STEPS = { request: 3.5, append: 3, read: 2, http: 1.5 } as const;

const STREAM = "BENCH_PARTS";
const SUBJECT = "bench.parts";
const PAYLOAD = new Uint8Array(350);

/** Gives what a call would take of its steps alone, in milliseconds. */
export async function openParts(
  stack: AsyncDisposableStack,
  { bus, login }: BenchSuite,
): Promise<(durationMs: number) => Promise<number>> {
  const agents = Buffer.from(toBinary(ListAgentsResponseSchema, create(ListAgentsResponseSchema))).toString("base64");
  const { hello } = await openPeer(stack, new URL("../call/baseline.ts", import.meta.url), {
    argument: { login, agents },
  });
  const client = createClient(AgentService, createConnectTransport({ baseUrl: String(hello.url), httpVersion: "2" }));
  const config = { name: STREAM, subjects: [SUBJECT], max_msgs_per_subject: 1, num_replicas: 1 };
  await ask(bus, `$JS.API.STREAM.CREATE.${STREAM}`, config);
  const steps: Record<keyof typeof STEPS, () => Promise<unknown>> = {
    request: () => bus.connection.request(RAW_SUBJECT, PAYLOAD),
    append: () => bus.connection.request(SUBJECT, PAYLOAD),
    read: () => ask(bus, `$JS.API.STREAM.MSG.GET.${STREAM}`, { last_by_subj: SUBJECT }),
    http: () => client.listAgents({}),
  };
  return async (durationMs) => {
    let sumMs = 0;
    for (const [name, count] of Object.entries(STEPS) as [keyof typeof STEPS, number][])
      sumMs += count * (await measureLatencies(steps[name], { inFlight: 1, durationMs: durationMs / 4 })).p50Ms;
    return sumMs;
  };
}

async function ask({ connection }: Bus, subject: string, question: object): Promise<void> {
  const answer: { error?: unknown } = (await connection.request(subject, JSON.stringify(question))).json();
  if (answer.error) throw new Error(`${subject}: ${JSON.stringify(answer.error)}`);
}
