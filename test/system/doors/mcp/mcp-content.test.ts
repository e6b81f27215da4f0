// What MCP clients get beside tools: resources, prompts, completion, and results that are too large for a model.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openNewClient, openOldClient } from "../fixtures/clients.ts";
import { type Door, keys, openDoor } from "../fixtures/door.ts";

let door: Door;
let here: { url: string; key: string };

beforeAll(async () => {
  door = await openDoor();
  here = { url: door.suite.url, key: keys.alice };
}, 120_000);
afterAll(() => door[Symbol.asyncDispose]());

type Opened = Awaited<ReturnType<typeof openOldClient>> | Awaited<ReturnType<typeof openNewClient>>;
const eras: [string, () => Promise<Opened>][] = [
  ["2025-11-25", () => openOldClient(here)],
  ["2026-07-28", () => openNewClient(here)],
];

describe.each(eras)("DOOR-1 a client of %s", (_, open) => {
  it("lists and reads the resources of the agent's servers, under their own addresses", async () => {
    await using one = await open();
    const { resources } = await one.client.listResources();
    const uri = resources.find((resource) => resource.uri.endsWith("features.md"))?.uri ?? "";
    const { contents } = await one.client.readResource({ uri });
    expect(contents).toMatchObject([{ uri, text: expect.stringContaining("Everything Server") }]);
    const { resourceTemplates } = await one.client.listResourceTemplates();
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toContain(
      "demo://resource/dynamic/text/{resourceId}",
    );
    const blob = await one.client.readResource({ uri: "demo://resource/dynamic/blob/1" });
    expect(blob.contents).toMatchObject([{ blob: expect.any(String) }]);
    await expect(one.client.readResource({ uri: "file:///etc/passwd" })).rejects.toThrow(/not found/i);
  });

  it("lists prompts, has them filled in, and completes their arguments", async () => {
    await using one = await open();
    const { prompts } = await one.client.listPrompts();
    const prompt = prompts.find(({ name }) => name === "all__args-prompt");
    expect(prompt?.arguments?.map(({ name, required }) => [name, required])).toContainEqual(["city", true]);
    const { messages } = await one.client.getPrompt({ name: "all__args-prompt", arguments: { city: "Oslo" } });
    expect(messages).toMatchObject([{ role: "user", content: { text: expect.stringContaining("Oslo") } }]);
    const complete = (name: string, value: string) =>
      one.client.complete({ ref: { type: "ref/prompt", name: "all__completable-prompt" }, argument: { name, value } });
    expect((await complete("department", "Eng")).completion.values).toEqual(["Engineering"]);
    const ref = { type: "ref/resource", uri: "demo://resource/dynamic/text/{resourceId}" } as const;
    const { completion } = await one.client.complete({ ref, argument: { name: "resourceId", value: "7" } });
    expect(completion.values).toEqual(["7"]);
    await expect(one.client.getPrompt({ name: "none" })).rejects.toThrow(/there is no prompt "none"/);
  });

  it.each([100_000, 400_000])(
    "gets the beginning of a text of %i characters, and reads the whole by its link",
    async (size) => {
      await using one = await open();
      const { content } = await one.client.callTool({ name: "work__work", arguments: { name: "ab", size } });
      const [text, link] = content as { type: string; text?: string; uri?: string }[];
      expect(link).toMatchObject({ type: "resource_link", uri: expect.stringMatching(/^toolbus:/) });
      expect(text?.text).toContain(link!.uri);
      expect(text!.text!.length).toBeLessThan(67_000);
      const { contents } = await one.client.readResource({ uri: link!.uri! });
      const [whole] = contents as { text: string }[];
      expect((JSON.parse(whole!.text) as string).length).toBeGreaterThan(size - 4);
      await using stranger = await openOldClient({ ...here, key: keys.mallory });
      await expect(stranger.client.readResource({ uri: link!.uri! })).rejects.toThrow();
    },
  );
});

it("DOOR-1 no server is asked for an address that it does not list", async () => {
  await using narrow = await openOldClient({ ...here, path: "/mcp/narrow" });
  expect((await narrow.client.listResources()).resources).toEqual([]);
  await expect(narrow.client.readResource({ uri: "demo://resource/dynamic/text/1" })).rejects.toThrow(/not found/i);
});
