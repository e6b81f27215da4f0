import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { connectError } from "../../../failure/connect.ts";
import { takeUnpacked } from "./request-body.ts";

/** How many times its own size a message may become: text that people and models write becomes five or ten times as big. */
const MOST_TIMES = 100;

/** A message that stays below may be as repetitive as it likes. */
const FREE_BYTES = 256 * 1024;

/** The same compression for messages of strangers, who could pack gigabytes into a few hundred bytes. */
export function againstBombs(compression: Compression): Compression {
  return {
    ...compression,
    async decompress(bytes, readMaxBytes) {
      const mostBytes = Math.max(FREE_BYTES, bytes.length * MOST_TIMES);
      const unpacked = await compression
        .decompress(bytes, Math.min(mostBytes, readMaxBytes))
        .catch((error: unknown) => {
          if (mostBytes >= readMaxBytes || ConnectError.from(error).code !== Code.ResourceExhausted) throw error;
          const text = `the message unpacks to more than ${MOST_TIMES} times its size: send it without compression`;
          throw connectError("resource_exhausted", text, { reason: "MESSAGE_TOO_LARGE", cause: error });
        });
      await takeUnpacked(unpacked);
      return unpacked;
    },
  };
}
