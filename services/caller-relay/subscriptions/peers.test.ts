import { create } from "@bufbuild/protobuf";
import { beforeAll, expect, test } from "vitest";
import { CallerToolRequestSchema } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { instanceService } from "#runtime/bus/ownership/ownership.ts";
import { submissionFrom } from "#runtime/results/submission.ts";
import { bytesFromCredit, bytesFromFrame, FrameKind } from "#runtime/rpc/nats/frame/frame.ts";
import { serveOnNats } from "#runtime/rpc/nats/server/server.ts";
import { openTestBus, type TestBus } from "../../../test/harness/bus.ts";
import { createPeers } from "./peers.ts";

/* The other instance takes a part of each large message, and not the rest. */

const service = instanceService("caller-relay", "there");
const stream = { instance: "there", attachmentId: "a", streamId: "", graceMs: 0 };
const large = JSON.stringify("x".repeat(1_000_000));
let bus: TestBus;

beforeAll(async () => {
  bus = await openTestBus();
  return () => bus[Symbol.asyncDispose]();
});

async function takeAPart(path: string): Promise<Disposable> {
  const taking = bus.connection.subscribe(`toolbus.rpc.${service}.${path}`, {
    callback: (_, message) => {
      const credit = bytesFromCredit({ messages: 1, bytes: 16_384 });
      message.respond(bytesFromFrame(FrameKind.credit, 0, 0, credit), { reply: "_INBOX.nowhere" });
    },
  });
  await bus.connection.flush();
  return { [Symbol.dispose]: () => taking.unsubscribe() };
}

test.each([true, false])(
  "CTR-7 a stream whose large request is cut on its way is asked for before it is taken to have ended: %s",
  async (attached) => {
    using _taking = await takeAPart(`${ToolProviderService.typeName}.ExecuteTool`);
    const routes: Parameters<typeof serveOnNats>[1]["routes"] = (router) =>
      router.service(CallerService, { getDeclaration: () => ({ attached }) });
    await using _ = await serveOnNats(bus, { service, routes, drainTimeoutMs: 1 });
    const request = create(CallerToolRequestSchema, { requestId: "r", sessionId: "s", argumentsJson: large });
    const by = { signal: new AbortController().signal, mode: "first" } as const;
    const carriage = createPeers(bus, "caller-relay", "here").carry(stream, request, by);
    if (attached) await expect(carriage).rejects.toMatchObject({ code: "unavailable" });
    else expect(await carriage).toEqual({ kind: "absent" });
  },
);

test("CTR-4 a large answer that is cut on its way to the holder is not told as one of an unknown call", async () => {
  using _taking = await takeAPart(`${CallerService.typeName}.Respond`);
  const submission = submissionFrom({ outcome: { case: "resultJson", value: large }, submissionId: "" }, "r");
  const forwarded = createPeers(bus, "caller-relay", "here").forward("there", "s", "r", submission);
  await expect(forwarded).rejects.toMatchObject({ code: "unavailable" });
});
