import { expect, test } from "vitest";
import { isSameProcessAlive, type ProcessIdentity } from "./process-identity.ts";

test("SEC-1 a file that names no start names no process, whether or not one runs", () => {
  for (const pid of [process.pid, 2 ** 22 + 1]) expect(isSameProcessAlive({ pid } as ProcessIdentity)).toBe(false);
});
