export type Captured = ReturnType<typeof createCaptured>;

/** The begin and the end of what a command wrote, in bounded memory. */
export function createCaptured(maxBytes: number) {
  const half = Math.floor(maxBytes / 2);
  let head = Buffer.alloc(0);
  let tail = Buffer.alloc(0);
  let bytes = 0;
  const leftOut = () => bytes - head.length - tail.length;

  return {
    get bytes() {
      return bytes;
    },
    get isCut() {
      return leftOut() > 0;
    },
    add(chunk: Buffer): void {
      bytes += chunk.length;
      const room = half - head.length;
      if (room > 0) head = Buffer.concat([head, chunk.subarray(0, room)]);
      const rest = room > 0 ? chunk.subarray(room) : chunk;
      if (rest.length > 0) tail = Buffer.concat([tail, rest.subarray(-half)]).subarray(-half);
    },
    /** As text; bytes that are no UTF-8 are replaced. Says where and how much is left out. */
    text(): string {
      if (leftOut() === 0) return Buffer.concat([head, tail]).toString("utf8");
      return `${head.toString("utf8")}\n[… ${leftOut()} bytes are left out …]\n${tail.toString("utf8")}`;
    },
  };
}
