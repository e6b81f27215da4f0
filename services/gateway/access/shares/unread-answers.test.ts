import { once } from "node:events";
import { type ClientHttp2Stream, connect, createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { UnreadAnswers } from "./unread-answers.ts";

const MIB = 2 ** 20;

/** Asks for so many answers over one connection of HTTP/2; gives how each ended, and what came of it. */
async function ask(unread: UnreadAnswers, answers: { bytes: number; count: number }, read: Reading) {
  await using stack = new AsyncDisposableStack();
  const server = createServer((_request, response) => {
    response.once("close", unread.track("alice", response));
    response.end(Buffer.alloc(answers.bytes));
  });
  stack.defer(() => void server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  stack.defer(() => session.destroy());
  return await Promise.all(
    Array.from({ length: answers.count }, async () => {
      const request = session.request({ ":path": "/" });
      request.end();
      const failed = new Promise<unknown>((resolve) => request.once("error", resolve));
      return { ended: await Promise.race([read(request), failed]) };
    }),
  );
}

type Reading = (request: ClientHttp2Stream) => Promise<unknown>;

async function slowly(request: ClientHttp2Stream): Promise<number> {
  let bytes = 0;
  for await (const part of request) {
    bytes += part.length;
    await pause(90);
  }
  return bytes;
}

const afterSeconds: Reading = async (request) => {
  await pause(4_000);
  return slowly(request);
};

test("SEC-6 who reads steadily is not cut, and has the answers whole", { timeout: 60_000 }, async () => {
  const ended = await ask(new UnreadAnswers(6 * MIB), { bytes: 4 * MIB, count: 2 }, slowly);
  expect(ended).toEqual([{ ended: 4 * MIB }, { ended: 4 * MIB }]);
});

test("SEC-6 answers that nobody reads for seconds are cut, which their client sees as a failure", async () => {
  const ended = await ask(new UnreadAnswers(6 * MIB), { bytes: 4 * MIB, count: 2 }, afterSeconds);
  const cut = { ended: expect.objectContaining({ message: expect.stringContaining("ENHANCE_YOUR_CALM") }) };
  expect(ended).toContainEqual(cut);
});

test("SEC-6 beyond twice the bound answers are cut at once", async () => {
  const ended = await ask(new UnreadAnswers(3 * MIB), { bytes: 4 * MIB, count: 2 }, afterSeconds);
  expect(ended).toContainEqual({ ended: expect.objectContaining({ code: "ERR_HTTP2_STREAM_ERROR" }) });
});
