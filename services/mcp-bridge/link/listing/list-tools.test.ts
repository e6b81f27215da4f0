import type { Client } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { serverFrom } from "../../testing/connection.ts";
import { listTools } from "./list-tools.ts";

const server = serverFrom({ name: "odd", url: "http://odd.example/mcp" });

/** Lists what a server answers, page by page. */
async function listed(...pages: unknown[][]) {
  let asked = 0;
  const request = async () => {
    const tools = pages[asked++];
    return { tools, ...(asked < pages.length && { nextCursor: `${asked}` }) };
  };
  const client = { getServerCapabilities: () => ({ tools: {} }), getProtocolEra: () => "legacy", request };
  const list = await listTools(client as unknown as Client, { signal: new AbortController().signal, server });
  return { ...list, asked };
}

const toolsNamed = (count: number, more: object = {}, from = 0) =>
  Array.from({ length: count }, (_, index) => ({ name: `t${from + index}`, inputSchema: { type: "object", ...more } }));

test("SEC-5 of a list of very many tools the first are taken, and no more pages are read", async () => {
  const { tools, warnings, asked } = await listed(toolsNamed(6_000), toolsNamed(6_000, {}, 6_000), toolsNamed(1));
  expect(tools).toHaveLength(10_000);
  expect(tools.at(-1)?.name).toBe("t9999");
  expect(warnings).toEqual(["the list is too long: 10000 tools or 64 MiB are read"]);
  expect(asked).toBe(2);
});

test("SEC-5 what is no tool counts too, and is not warned of without end", async () => {
  const { tools, warnings } = await listed([...Array.from({ length: 1_000_000 }, () => 7), ...toolsNamed(1)]);
  expect(tools).toEqual([]);
  expect(warnings.length).toBeLessThan(200);
});

test("ORCH-7 a tool that is nested too deeply to be written hides no other", async () => {
  const deep = JSON.parse("[".repeat(100_000) + "]".repeat(100_000));
  const { tools, warnings } = await listed([...toolsNamed(1, { enum: deep }), ...toolsNamed(1, {}, 1)]);
  expect(tools.map(({ name }) => name)).toEqual(["t1"]);
  expect(warnings).toEqual(['the tool "t0" is not offered: it is nested too deeply']);
});

test("SEC-5 names and cursors are kept in bounds, however long they are", async () => {
  const name = "n".repeat(1_000_000);
  const { warnings } = await listed([{ name }]);
  expect(warnings.join().length).toBeLessThan(1_000);
  let asked = 0;
  const request = async () => ({ tools: [], nextCursor: `${asked++}${"c".repeat(1_000_000)}` });
  const client = { getServerCapabilities: () => ({ tools: {} }), getProtocolEra: () => "legacy", request };
  const list = await listTools(client as unknown as Client, { signal: new AbortController().signal, server });
  expect(list.warnings).toEqual(["a cursor is longer than 65536: the list ends there"]);
  expect(asked).toBe(1);
});

test("SEC-5 of a list of very large tools the first are taken", async () => {
  const description = "x".repeat(1_000_000);
  const { tools, warnings } = await listed(toolsNamed(40, { description }), toolsNamed(40, { description }, 40));
  expect(tools).toHaveLength(68);
  expect(warnings).toEqual(["the list is too long: 10000 tools or 64 MiB are read"]);
});
