import {
  create,
  type DescFile,
  type DescMessage,
  fromBinary,
  type JsonReadOptions,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Piscina } from "piscina";
import { getOrInsertComputed } from "../../../collections/get-or-insert-computed.ts";
import type { Taker } from "../../../collections/turns/own-turn.ts";
import { RoundRobinQueue } from "../../../collections/turns/round-robin-queue.ts";
import { moduleBeside } from "../../../config/places.ts";
import { connectError } from "../../../failure/connect.ts";
import { createThreadPool } from "../../../lifecycle/node/thread-pool.ts";
import { requireFewValues, turnToParse } from "../../handling/messages/many-values.ts";

/*
 * To read 60 MB of JSON takes a second, in which its process does nothing else, and the broker takes it for dead after two. So large JSON
 * is made to bytes on a thread of its own, one message at a time, for which senders have their turns; to parse the bytes takes a tenth
 * of that.
 */

export interface Transcoding {
  /** A FileDescriptorSet. */
  readonly files: Uint8Array;
  readonly typeName: string;
  readonly json: Uint8Array;
  readonly options: Partial<JsonReadOptions>;
}

export const LARGE_JSON_BYTES = 1024 * 1024;

const HEAP_MB = 768;

const turns = new RoundRobinQueue(1);
let pool: Piscina<Transcoding, Uint8Array> | undefined;

function thread(): Piscina<Transcoding, Uint8Array> {
  const module = moduleBeside(import.meta, "transcoder-thread");
  pool ??= createThreadPool({ module, maxThreads: 1, heapMb: HEAP_MB });
  return pool;
}

/** Throws `invalid_argument` for what is no such message, `resource_exhausted` for one that takes more memory than there is. */
export async function messageFromLargeJson<D extends DescMessage>(
  desc: D,
  json: Uint8Array,
  { options, taker }: { options: Partial<JsonReadOptions>; taker: Taker },
): Promise<MessageShape<D>> {
  const { typeName } = desc;
  const { sender, signal } = taker;
  requireFewValues(json, { desc, isBinary: false });
  try {
    const files = getOrInsertComputed(known, desc.file, bytesOfFiles);
    const transcoding = { files, typeName, json, options };
    const bytes = await turns.run(sender, () => thread().run(transcoding, { signal: signal ?? null }), signal);
    await turnToParse(bytes, { desc, isBinary: true, ...taker });
    return fromBinary(desc, bytes);
  } catch (error) {
    signal?.throwIfAborted();
    if (Object(error).code !== "ERR_WORKER_OUT_OF_MEMORY") throw ConnectError.from(error, Code.InvalidArgument);
    const text = `the message takes more than ${HEAP_MB} MB to read as JSON: send it as protobuf`;
    throw connectError("resource_exhausted", text, { reason: "MESSAGE_TOO_LARGE", cause: error });
  }
}

const known = new WeakMap<DescFile, Uint8Array>();

/** A file and all that it needs, each behind those that it needs. */
function bytesOfFiles(file: DescFile): Uint8Array {
  const files = new Set<DescFile>();
  const add = (one: DescFile) => {
    for (const needed of one.dependencies) add(needed);
    files.add(one);
  };
  add(file);
  const set = create(FileDescriptorSetSchema, { file: [...files].map(({ proto }) => proto) });
  return toBinary(FileDescriptorSetSchema, set);
}
