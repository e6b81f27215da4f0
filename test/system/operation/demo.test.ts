import { execFile } from "node:child_process";
import { describe, expect, it } from "vitest";
import { projectRoot } from "../../architecture/source-files.ts";

interface Ending {
  exitCode: number | string | undefined;
  output: string;
}

/** Plays the demo in a process of its own, as `npm run demo` does. */
function playDemo(...args: string[]): Promise<Ending> {
  return new Promise((resolve) => {
    const options = { cwd: projectRoot, env: { ...process.env, NO_COLOR: "1" } };
    execFile(process.execPath, ["examples/demo/main.ts", ...args], options, (error, stdout, stderr) => {
      resolve({ exitCode: error === null ? 0 : (error.code ?? undefined), output: stdout + stderr });
    });
  });
}

const titles = {
  mcp: "an MCP server",
  worker: "a Python function",
  url: "a URL",
  caller: "the caller",
  person: "a person",
};

describe("the demo", () => {
  it("KIND-1 sends a value through all five kinds and finds it in each recorded result", async () => {
    const { exitCode, output } = await playDemo();
    expect(output).toContain("all five answered");
    for (const title of Object.values(titles)) expect(output).toContain(`✓ ${title}`);
    expect(exitCode).toBe(0);
  });

  it.each([["mcp url"], ["worker caller person"]])("without %s it fails and says which", async (kinds) => {
    const missing = kinds.split(" ");
    const { exitCode, output } = await playDemo("--without", ...missing);
    for (const [kind, title] of Object.entries(titles))
      expect(output).toContain(`${missing.includes(kind) ? "✗" : "✓"} ${title}`);
    expect(exitCode).toBe(1);
  });
});
