import type { DescMessage, DescMethodServerStreaming, DescService, MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, type Client, createClient, type StreamResponse, type Transport } from "@connectrpc/connect";
import { Iterated } from "../../collections/feeds/iterated.ts";
import { iterableOf } from "../handling/iterable-of.ts";

/**
 * Connect's client, but for its streams of answers: those are read by generators of the language. Connect's build has generators
 * that are objects made by hand, whose shapes V8 links, so that those of old calls keep what later ones hold.
 */
export function clientOver<S extends DescService>(transport: Transport, service: S): Client<S> {
  const client = createClient(service, transport);
  const streams = service.methods.flatMap((method) =>
    isServerStreaming(method) ? [[method.localName, serverStreaming(transport, method)]] : [],
  );
  return { ...client, ...Object.fromEntries(streams) };
}

function isServerStreaming(method: DescService["methods"][number]): method is Streaming {
  return method.methodKind === "server_streaming";
}

type Streaming = DescMethodServerStreaming<DescMessage, DescMessage>;
type Request = MessageInitShape<DescMessage>;

function serverStreaming(transport: Transport, method: Streaming) {
  return (request: Request, options: CallOptions = {}) => {
    const { signal, timeoutMs, headers, contextValues } = options;
    const answered = transport.stream(method, signal, timeoutMs, headers, iterableOf(request), contextValues);
    const answers = answersOf(answered, options);
    // a reader that leaves ends no call, as Connect has it: its signal does
    return new Iterated(() => ({ next: () => answers.next() }));
  };
}

async function* answersOf(
  answered: Promise<StreamResponse<DescMessage, DescMessage>>,
  { onHeader, onTrailer }: CallOptions,
) {
  const { header, message, trailer } = await answered;
  onHeader?.(header);
  yield* message;
  onTrailer?.(trailer);
}
