// The door of MCP clients, by the official SDK of another language.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { keys, openDoor } from "./fixtures/door.ts";

const script = fileURLToPath(new URL("fixtures/python_client.py", import.meta.url));
const uv = process.env.TOOLBUS_UV ?? "uv";

it("DOOR-1 the Python SDK, of either line, lists and calls an agent's tools", async () => {
  await using door = await openDoor();
  const at = [`${door.suite.url}/mcp/clerk`, keys.alice];
  for (const [version, revision] of [
    ["1.30.0", "2025-11-25"],
    ["2.3.0", "2026-07-28"],
  ]) {
    const asked = ["run", "--quiet", "--no-project", "--with", `mcp==${version}`, "python", script, ...at];
    const { stdout } = await promisify(execFile)(uv, asked);
    expect(JSON.parse(stdout)).toMatchObject({
      revision,
      tools: expect.arrayContaining(["all__echo", "work__work"]),
      text: "Echo: from Python",
      resources: expect.any(Number),
    });
  }
}, 180_000);
