import { readdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Builtin } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { escapesFrom } from "../testing/escapes.ts";
import { type FileTree, OUTSIDE, openFileTree, SECRET } from "../testing/file-tree.ts";

/** The tree is there when the first of them is walked. */
const ESCAPES = escapesFrom(() => tree);

let tree: FileTree;
let inside: string;
let outside: string;
const call: FileTree["call"] = (...given) => tree.call(...given);

beforeAll(async () => {
  tree = await openFileTree();
  ({ inside, outside } = tree);
});
afterAll(() => tree[Symbol.asyncDispose]());

describe("ORCH-9 fs_read and fs_write below the allowed directories only", () => {
  test.each(ESCAPES)("%s is refused to a reader", async (_, path, words) => {
    const { value, isError } = await call("fs_read", { path: path() });
    expect(isError).toBe(true);
    expect(value).toMatch(words);
    expect(value).not.toContain(SECRET);
  });

  test("no way out lets a writer change or make anything outside, and no answer tells what is there", async () => {
    const before = await snapshot();
    for (const [name, path] of ESCAPES) {
      for (const mode of ["replace", "append", "create"]) {
        if (["percent", "percent twice"].includes(name)) continue; // names like any other: made inside
        const { isError } = await call("fs_write", { path: `${path()}`, content: "x", mode, createDirectories: false });
        if (isError) continue;
        expect(ESCAPES.find(([one]) => one === name)?.[2].source).toBe("there is no"); // a name like any other, made inside
      }
    }
    expect(await snapshot()).toEqual(before);
  });

  async function snapshot() {
    const places = [outside, `${inside}-too`];
    const names = await Promise.all(places.map((place) => readdir(place)));
    const texts = await Promise.all(places.map((place) => readFile(join(place, "secret.txt"), "utf8")));
    return [names, texts, await readFile(join(inside, "plain.txt"), "utf8"), await readdir(tree.pool.directory)];
  }

  test("what is inside is read: by a relative path, an absolute one, `..` and a link that stays", async () => {
    for (const path of [
      "sub/deep.txt",
      `${inside}/sub/deep.txt`,
      "sub/../sub/./deep.txt",
      "good-link",
      "bad-directory/../inside/sub/deep.txt",
    ])
      expect((await call("fs_read", { path })).value).toMatchObject({
        content: "deep",
        path: `${inside}/sub/deep.txt`,
      });
    expect((await call("fs_read", { path: "%2e%2e" })).value).toMatchObject({ content: "a name like any other" });
  });

  test("an allowed directory may be a link; one that does not exist, none at all, or a relative one allows nothing", async () => {
    await symlink(inside, join(tree.pool.directory, "alias"));
    const path = join(tree.pool.directory, "alias", "plain.txt");
    expect((await call("fs_read", { path }, [join(tree.pool.directory, "alias")])).value).toMatchObject({
      content: "plain",
    });
    expect((await call("fs_read", { path: "plain.txt" }, [join(tree.pool.directory, "absent")])).value).toMatch(
      /does not exist/,
    );
    expect((await call("fs_read", { path: "/etc/passwd" }, [])).value).toMatch(/allows no directory/);
    expect((await call("fs_read", { path: "/etc/passwd" }, ["etc"])).value).toMatch(/is not absolute/);
  });

  test("files of processes are inside of nothing, even when everything is allowed", async () => {
    expect((await call("fs_read", { path: "/etc/hostname" }, ["/"])).isError).toBe(false);
    for (const path of ["/proc/self/environ", "/proc/1/environ", "/proc/cpuinfo", "/proc/self/mem"])
      expect((await call("fs_read", { path }, ["/"])).value).toMatch(OUTSIDE);
    expect((await call("fs_read", { path: "/dev/zero" }, ["/"])).value).toMatch(/is a device/);
    expect((await call("fs_write", { path: "/dev/null", content: "x" }, ["/"])).value).toMatch(/is a device/);
  });

  test("without a policy, or under another's, nothing is started", async () => {
    await expect(tree.pool.call({ tool: "fs_read", args: { path: "plain.txt" } })).rejects.toThrow(
      /under a policy for nothing/,
    );
    const builtinPolicy = { builtin: Builtin.FS_READ, allowedPaths: [inside] };
    await expect(tree.pool.call({ tool: "fs_write", args: { path: "x", content: "" }, builtinPolicy })).rejects.toThrow(
      /under a policy for fs_read/,
    );
    expect((await call("fs_read", { path: "/etc/passwd", allowedPaths: ["/"] })).value).toMatch(/allowedPaths/);
  });

  test("a hard link is a file of its directory: it is read, replaced without touching its other name, and not appended to", async () => {
    expect((await call("fs_read", { path: "hard-link.txt" })).value).toMatchObject({ content: SECRET });
    expect((await call("fs_write", { path: "hard-link.txt", content: "x", mode: "append" })).value).toMatch(
      /several names/,
    );
    expect((await call("fs_write", { path: "hard-link.txt", content: "replaced" })).isError).toBe(false);
    expect(await readFile(join(outside, "secret.txt"), "utf8")).toBe(SECRET);
  });
});
