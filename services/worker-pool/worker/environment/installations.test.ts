import { expect, test } from "vitest";
import type { OfferedFile } from "../../files/tool-file.ts";
import { Installations } from "./installations.ts";

const file: OfferedFile = {
  kind: "offered",
  file: "tool.py",
  path: "/tools/tool.py",
  digest: "d",
  environment: "e",
  functions: [],
};

test("WORK-8 a fault of the machine during an install is told as a failed install, and the install is tried again", async () => {
  let attempts = 0;
  const install = async () => {
    attempts += 1;
    if (attempts === 1) throw new Error("ENOENT: no such file or directory");
    return "/environment/bin/python";
  };
  await using installations = new Installations(install, { backoffMs: 50, maxBackoffMs: 50 });
  const first = await installations.python(file).catch((error: unknown) => error);
  expect(first).toMatchObject({
    code: "failed_precondition",
    reason: "WORKER_INSTALL_FAILED",
    message: "the dependencies could not be installed: ENOENT: no such file or directory",
    metadata: { retry_in_ms: expect.stringMatching(/^\d+$/) },
  });
  await expect.poll(() => installations.python(file).catch(() => "")).toBe("/environment/bin/python");
  expect(attempts).toBe(2);
});

test("an install that is given up because the pool stops is no failed install", async () => {
  const install = (_file: OfferedFile, _onLine: unknown, signal: AbortSignal) =>
    new Promise<string>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const installations = new Installations(install, { backoffMs: 50, maxBackoffMs: 50 });
  const asked = installations.python(file).catch((error: unknown) => error);
  await installations[Symbol.asyncDispose]();
  expect(await asked).toMatchObject({ name: "AbortError" });
});
