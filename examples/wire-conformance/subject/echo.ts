// The service under test, toolbus.echo.v1.EchoService: what it does is asked for by the metadata of each call.

import { patterned } from "./protocol.ts";

export type Shape = "unary" | "serverStream" | "clientStream" | "bidi";
export type Bytes = Uint8Array<ArrayBuffer>;

export interface EchoContext {
  readonly metadata: Headers;
  readonly header: Headers;
  readonly trailer: Headers;
  readonly signal: AbortSignal;
  /** Publishes a note to a subject. */
  notify(subject: string, text: string): void;
}

/** The failure that the call's metadata asked for; its detail is a BytesValue. */
export class EchoFailure extends Error {
  readonly code: string;
  readonly detail: Bytes;

  constructor(code: string, detail: Bytes) {
    super("as asked");
    this.code = code;
    this.detail = detail;
  }
}

const smallDetail = Uint8Array.of(7, 8);

export async function* echo(
  shape: Shape,
  requests: AsyncIterable<Bytes>,
  context: EchoContext,
): AsyncGenerator<Bytes, void> {
  const { metadata, signal } = context;
  const notes = metadata.get("x-notes");
  const note = (text: string) => notes && context.notify(notes, text);
  const onAbort = () => note("aborted");
  note("started");
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    copyMetadata(context);
    if (metadata.has("x-hang")) await ended(signal);
    await delayed(Number(metadata.get("x-delay") ?? 0), signal);
    const code = metadata.get("x-error");
    if (code === null || shape === "serverStream" || shape === "bidi") yield* answers(shape, requests, metadata);
    if (code !== null) throw new EchoFailure(code, detailFor(metadata));
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

async function* answers(shape: Shape, requests: AsyncIterable<Bytes>, metadata: Headers): AsyncGenerator<Bytes, void> {
  const size = metadata.get("x-size");
  const answer = (request: Bytes) => (size === null ? request : patterned(Number(size)));
  if (shape === "clientStream") {
    yield answer(new Uint8Array(Buffer.concat(await Array.fromAsync(requests))));
    return;
  }
  const count = shape === "serverStream" ? Number(metadata.get("x-count") ?? 2) : 1;
  for await (const request of requests) {
    for (let sent = 0; sent < count; sent += 1) yield answer(request);
  }
}

function copyMetadata({ metadata, header, trailer }: EchoContext): void {
  for (const [key, value] of metadata) {
    if (key.startsWith("x-header")) header.append(key, value);
    if (key.startsWith("x-trailer")) trailer.append(key, value);
  }
}

function detailFor(metadata: Headers): Bytes {
  const size = metadata.get("x-error-size");
  return size === null ? smallDetail : patterned(Number(size));
}

function ended(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
  });
}

async function delayed(ms: number, signal: AbortSignal): Promise<void> {
  if (ms === 0) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  await promise.finally(() => clearTimeout(timer));
}
