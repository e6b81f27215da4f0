import { BinaryWriter } from "@bufbuild/protobuf/wire";

/** What a writer keeps to itself; not part of its interface, and so looked at before it is used. */
interface Inside {
  buffer: Uint8Array<ArrayBuffer>;
  viewCache: DataView;
  ensureCapacity(size: number): void;
  finish(): Uint8Array<ArrayBuffer>;
}

const SCRATCH_BYTES = 16 * 1_024;
const NOTHING = new Uint8Array(0);
const NO_VIEW = new DataView(NOTHING.buffer);
let spare: Uint8Array<ArrayBuffer> | undefined;
let isDone = false;

/**
 * Lets writers of messages begin on a buffer that stays. The library begins each message with one of 128 bytes, and takes another
 * whenever it is full; that costs two thirds of writing a small message. What a writer gives is a copy, in either case.
 *
 * Made for @bufbuild/protobuf 2.17.0.
 */
export function saveOnWriters(): void {
  if (isDone) return;
  isDone = true;
  const inside = BinaryWriter.prototype as unknown as Inside;
  const sample = new BinaryWriter() as unknown as Inside;
  const isKnown = sample.buffer?.length === 0 && sample.viewCache?.byteLength === 0;
  const { ensureCapacity: grow, finish } = inside;
  if (!isKnown || typeof grow !== "function") return; // another release of the library: it writes as it does
  inside.ensureCapacity = function (size) {
    if (this.buffer.length === 0 && spare !== undefined && size <= SCRATCH_BYTES) {
      this.buffer = spare;
      spare = undefined; // a second writer at the same time begins as the library has it
    } else grow.call(this, size);
  };
  inside.finish = function () {
    const bytes = finish.call(this);
    // that of a writer that failed never comes back
    spare ??= this.buffer.length === SCRATCH_BYTES ? this.buffer : new Uint8Array(SCRATCH_BYTES);
    this.buffer = NOTHING;
    this.viewCache = NO_VIEW; // the writer may be used again, on another buffer
    return bytes;
  };
}
