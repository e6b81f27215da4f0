import { chmod, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FileTree, OUTSIDE, openFileTree } from "../testing/file-tree.ts";

let tree: FileTree;
let inside: string;
const call: FileTree["call"] = (...given) => tree.call(...given);

beforeAll(async () => {
  tree = await openFileTree();
  inside = tree.inside;
});
afterAll(() => tree[Symbol.asyncDispose]());

describe("fs_read", () => {
  test("reads parts of a file of any size, and says where to go on", async () => {
    expect((await call("fs_read", { path: "huge.bin", limit: 5 })).value).toEqual({
      path: join(inside, "huge.bin"),
      size: 1e12,
      offset: 0,
      bytes: 5,
      encoding: "utf8",
      content: "begin",
      nextOffset: 5,
    });
    const end = (await call("fs_read", { path: "huge.bin", offset: 1e12 - 2, encoding: "base64" })).value;
    expect(end).toMatchObject({ content: "AAA=", bytes: 2 });
    expect(end).not.toHaveProperty("nextOffset");
    expect((await call("fs_read", { path: "plain.txt", offset: 99 })).value).toMatchObject({ content: "", bytes: 0 });
    expect((await call("fs_read", { path: "huge.bin", limit: 2 ** 40 })).value).toMatch(/limit/);
  });

  test("never cuts a character in two, and says when bytes are no text", async () => {
    const first = (await call("fs_read", { path: "wide.txt", limit: 5 })).value;
    expect(first).toMatchObject({ content: "aé", nextOffset: 3 });
    expect((await call("fs_read", { path: "wide.txt", offset: 3 })).value).toMatchObject({ content: "😀b" });
    expect((await call("fs_read", { path: "wide.txt", offset: 2 })).value).toMatch(/inside of a character/);
    expect((await call("fs_read", { path: "no-text.bin" })).value).toMatch(/no UTF-8 text.*base64/);
    expect((await call("fs_read", { path: "no-text.bin", encoding: "base64" })).value).toMatchObject({
      content: "Yf/+Yg==",
    });
  });
});

describe("fs_write", () => {
  const text = (name: string) => readFile(join(inside, name), "utf8");

  test("replaces, appends and creates, and leaves nothing beside the file", async () => {
    const path = "notes/today/one.txt";
    expect((await call("fs_write", { path, content: "1" })).value).toMatch(/createDirectories/);
    const made = await call("fs_write", { path, content: "1", createDirectories: true });
    expect(made.value).toEqual({ path: join(inside, path), bytes: 1, created: true });
    expect((await call("fs_write", { path, content: "2", mode: "create" })).value).toMatch(/exists already/);
    expect((await call("fs_write", { path, content: "2", mode: "append" })).value).toMatchObject({ created: false });
    expect(await text(path)).toBe("12");
    await call("fs_write", { path, content: "/wA=", encoding: "base64" });
    expect([...(await readFile(join(inside, path)))]).toEqual([255, 0]);
    expect((await call("fs_write", { path, content: "no base64!", encoding: "base64" })).value).toMatch(/no base64/);
    expect(await readdir(join(inside, "notes/today"))).toEqual(["one.txt"]);
  });

  test("keeps a file's permissions, or gives those that are asked for", async () => {
    const permissions = async (name: string) => ((await stat(join(inside, name))).mode & 0o7777).toString(8);
    await writeFile(join(inside, "tool.sh"), "1");
    await chmod(join(inside, "tool.sh"), 0o750);
    await call("fs_write", { path: "tool.sh", content: "2" });
    expect(await permissions("tool.sh")).toBe("750");
    await call("fs_write", { path: "tool.sh", content: "3", permissions: "640" });
    expect(await permissions("tool.sh")).toBe("640");
    expect((await call("fs_write", { path: "tool.sh", content: "4", permissions: "4755" })).isError).toBe(true);
  });

  test("writes where a link leads, and the link stays", async () => {
    await call("fs_write", { path: "good-link", content: "deep" });
    expect(await text("sub/deep.txt")).toBe("deep");
    expect(
      (await call("fs_write", { path: "bad-directory/new/x.txt", content: "x", createDirectories: true })).value,
    ).toMatch(OUTSIDE);
  });

  test("a reader beside it sees the old content or the new one, never a part", async () => {
    const contents = ["a", "b"].map((letter) => letter.repeat(300_000));
    await writeFile(join(inside, "swap.txt"), contents[0] ?? "");
    let isWriting = true;
    const seen = new Set<string>();
    const reading = (async () => {
      while (isWriting) seen.add(await text("swap.txt"));
    })();
    for (let count = 0; count < 30; count += 1)
      await call("fs_write", { path: "swap.txt", content: contents[count % 2] ?? "" });
    isWriting = false;
    await reading;
    expect([...seen].filter((content) => !contents.includes(content))).toEqual([]);
  });
});
