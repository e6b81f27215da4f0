import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { expect, onTestFinished, test, vi } from "vitest";
import { addInitCommand } from "./init.ts";

test("PROD-2 a project that cannot be made there is refused at once", async () => {
  const program = new Command();
  addInitCommand(program);
  for (const folder of ["/proc", "/proc/there/is-none"])
    await expect(program.parseAsync(["init", folder], { from: "user" })).rejects.toThrow("ENOENT");
});

test.each([
  ["plain", "plain"],
  ["my tools; reboot", "'my tools; reboot'"],
  ["it's", String.raw`'it'\''s'`],
])("PROD-2 what to do in a new project %j is one command to paste", async (name, word) => {
  const parent = await mkdtemp(join(tmpdir(), "toolbus-init-"));
  onTestFinished(() => rm(parent, { recursive: true, force: true }));
  onTestFinished(() => void vi.restoreAllMocks());
  vi.spyOn(process, "cwd").mockReturnValue(parent);
  let printed = "";
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    printed += text;
    return true;
  });
  const program = new Command();
  addInitCommand(program);
  await program.parseAsync(["init", name], { from: "user" });
  expect(printed).toContain(`\nStart it: cd ${word} && `);
});
