import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { PartAssembler } from "../../frame/parts.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;
const MIB = 1024 * 1024;

test.each([0, 1])("SEC-5 a message in a million parts of %i bytes holds little more than they have", (size) => {
  const assembler = new PartAssembler();
  const part = () => new Uint8Array(size).fill(7); // of its own, as what comes with a frame is
  collectGarbage();
  const before = process.memoryUsage();
  for (let count = 1; count < MIB; count += 1) assembler.push(part(), true);
  collectGarbage();
  const after = process.memoryUsage();
  expect(assembler.isWithin).toBe(true);
  expect(after.heapUsed + after.external - before.heapUsed - before.external).toBeLessThan(16 * MIB);
  const whole = assembler.push(part(), false);
  expect(Buffer.compare(whole ?? Buffer.alloc(1), Buffer.alloc(size * MIB, 7))).toBe(0);
  expect(assembler.isWithin).toBe(false);
});
