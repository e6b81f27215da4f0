import { createHash } from "node:crypto";
import { Writable } from "node:stream";
import type { DescService } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { copyResult } from "./call-result.ts";

const whole = Buffer.from(JSON.stringify("é".repeat(5_000)));

/** A suite whose streams break after some bytes. */
function connectionTo(options: { breaksAfter?: number; sha256?: Uint8Array }) {
  const { breaksAfter = whole.length, sha256 = createHash("sha256").update(whole).digest() } = options;
  const offsets: number[] = [];
  const transport = createRouterTransport((router) => {
    router.service(ToolCallService, {
      async *readResult({ offset }) {
        offsets.push(Number(offset));
        yield { part: { case: "result", value: { size: BigInt(whole.length), sha256 } } };
        const end = Math.min(whole.length, Number(offset) + breaksAfter);
        for (let at = Number(offset); at < end; at += 1_000) {
          const data = whole.subarray(at, Math.min(at + 1_000, end));
          yield { part: { case: "chunk", value: { offset: BigInt(at), data } } };
        }
        if (end < whole.length) throw new ConnectError("gone", Code.Unavailable);
      },
    });
  });
  return {
    offsets,
    connection: { url: "", client: <S extends DescService>(service: S) => createClient(service, transport) },
  };
}

function openTarget() {
  const written: Uint8Array[] = [];
  const target = new Writable({
    highWaterMark: 100, // so that it has to be waited for
    write(data: Uint8Array, _encoding, done) {
      written.push(data);
      setImmediate(done);
    },
  });
  return { target, text: () => Buffer.concat(written).toString() };
}

test("LOOP-8 a stream that breaks is taken up at the byte where it broke, and the whole is written once", async () => {
  const { connection, offsets } = connectionTo({ breaksAfter: 4_500 });
  const { target, text } = openTarget();
  const progress: number[] = [];
  await copyResult(connection, "c", { target, onProgress: (bytes) => progress.push(bytes) });
  target.end();
  expect(text()).toBe(whole.toString());
  expect(offsets).toEqual([0, 4_500, 9_000]);
  expect(progress.at(-1)).toBe(whole.length);
});

test("LOOP-8 a result that is not what its digest says is told as damaged", async () => {
  const { connection } = connectionTo({ sha256: new Uint8Array(32) });
  await expect(copyResult(connection, "c", openTarget())).rejects.toThrow("came damaged");
});
