import { Reply } from "#runtime/rpc/http/connect/reply.ts";
import { type HttpResponse, sinkOf } from "#runtime/rpc/http/messages.ts";

/** How often a stream without events shows that it lives, which also finds a peer that is gone. */
const ALIVE_MS = 15_000;

const FIELDS = { "content-type": "text/event-stream", "cache-control": "no-cache" };

/** Resolves when all is written, or the client has left, which ends `texts`. A text is asked for when there is room for it. */
export async function answerStream(response: HttpResponse, texts: AsyncIterable<string>): Promise<void> {
  const reply = new Reply(response, () => ({ status: 200, fields: FIELDS }));
  reply.begin(); // a stream may have nothing to say for long
  const alive = setInterval(() => sinkOf(response).write(": alive\n\n"), ALIVE_MS);
  try {
    for await (const text of texts) await reply.send(Buffer.from(text));
    reply.end(new Uint8Array());
  } catch {
    response.destroy(); // the client has left
  } finally {
    clearInterval(alive);
  }
}
