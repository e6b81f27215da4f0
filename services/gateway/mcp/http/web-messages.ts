import { refuse } from "#runtime/failure/failure.ts";
import { headerOf, urlOf } from "#runtime/rpc/http/connect/exchange.ts";
import { Reply } from "#runtime/rpc/http/connect/reply.ts";
import type { HttpRequest, HttpResponse } from "#runtime/rpc/http/messages.ts";

/** The head of a request as the SDK's transports take it, which read no body: it is given to them parsed. */
export function webRequestOf(request: HttpRequest, signal: AbortSignal): Request {
  const url = URL.parse(urlOf(request));
  if (url === null || url.username !== "" || url.password !== "")
    refuse("invalid_argument", "the header Host names no host", { reason: "INVALID_REQUEST" });
  const headers = headerOf(request);
  headers.set("accept", acceptedTypes(headers.get("accept") ?? "*/*").join());
  return new Request(url, { method: request.method ?? "GET", headers, signal });
}

/** The types that are answered here, as far as the client takes them: the SDK (2.4.0) looks for their names, and knows no ranges. */
function acceptedTypes(accept: string): string[] {
  const isTaken = new Map(
    accept.split(",").map((one) => {
      const [range = "", ...parameters] = one.toLowerCase().split(";");
      return [range.trim(), !parameters.some((parameter) => /^\s*q=0(\.0*)?\s*$/.test(parameter))];
    }),
  );
  const types = { "application/*": "application/json", "text/*": "text/event-stream" };
  return Object.entries(types).flatMap(([range, type]) =>
    (isTaken.get(type) ?? isTaken.get(range) ?? isTaken.get("*/*")) ? [type] : [],
  );
}

/** Belongs to the connection, which HTTP/2 does not let anybody name. */
const ofConnection = new Set(["connection", "keep-alive", "transfer-encoding"]);

const NOTHING = new Uint8Array();

interface Exchange {
  readonly signal: AbortSignal;
  /** The client is written the head, and what stands in the body already; with `false`, it never will be. */
  readonly onBegun: (isBegun: boolean) => void;
  /** The message for a client whose stream ends before its answer, though it has not left. */
  readonly lastWord: () => Promise<string | undefined>;
}

/** Resolves when all is written, or the signal has aborted, which the body is told. */
export async function answerWeb(
  response: HttpResponse,
  answer: Response,
  { signal, onBegun, lastWord }: Exchange,
): Promise<void> {
  const { status, headers, body } = answer;
  const fields = Object.fromEntries([...headers].filter(([name]) => !ofConnection.has(name)));
  const reply = new Reply(response, () => {
    onBegun(true);
    return { status, fields };
  });
  try {
    if (isEventStream(answer)) await sendEach(reply, body, { signal, lastWord });
    else reply.end(await answer.bytes());
  } catch {
    response.destroy(); // the client has left
  } finally {
    onBegun(false);
  }
}

/** The head goes by itself: the stream may have nothing to say for long. */
async function sendEach(
  reply: Reply,
  body: ReadableStream<Uint8Array> | null,
  { signal, lastWord }: Pick<Exchange, "signal" | "lastWord">,
): Promise<void> {
  const reader = body?.getReader();
  let hasEnded = false;
  let isCut = false;
  const onEnded = () => {
    hasEnded = true;
  };
  reader?.closed.then(onEnded, onEnded);
  const cut = () => {
    isCut = !hasEnded; // a slow client may still be sent the end
    reader?.cancel().catch(() => {}); // it has nobody to tell
  };
  signal.addEventListener("abort", cut, { once: true });
  if (signal.aborted) cut();
  reply.begin();
  let canComeBack = false;
  for (let piece = await reader?.read(); piece?.value; piece = await reader?.read()) {
    canComeBack ||= /^id: /m.test(Buffer.from(piece.value.subarray(0, 64)).toString());
    await reply.send(piece.value);
  }
  const last = isCut && !canComeBack ? await lastWord() : undefined;
  reply.end(last === undefined ? NOTHING : Buffer.from(`event: message\ndata: ${last}\n\n`));
}

export function isEventStream({ headers }: Response): boolean {
  return headers.get("content-type")?.startsWith("text/event-stream") ?? false;
}
