import { execFileSync } from "node:child_process";
import { chmod, link, mkdir, readdir, readFile, stat, symlink, truncate, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openPoolOnBus, type PoolOnBus } from "../testing/pool-on-bus.ts";

const SECRET = "what nobody may read";

let pool: PoolOnBus;
let inside: string;
let outside: string;
const socket = createServer();

beforeAll(async () => {
  pool = await openPoolOnBus();
  inside = join(pool.directory, "inside");
  outside = join(pool.directory, "outside");
  await mkdir(join(inside, "sub"), { recursive: true });
  await mkdir(outside);
  await mkdir(`${inside}-too`);
  for (const place of [outside, `${inside}-too`]) await writeFile(join(place, "secret.txt"), SECRET);
  await writeFile(join(inside, "plain.txt"), "plain");
  await writeFile(join(inside, "sub", "deep.txt"), "deep");
  await writeFile(join(inside, "no-text.bin"), Buffer.from([0x61, 0xff, 0xfe, 0x62]));
  await writeFile(join(inside, "%2e%2e"), "a name like any other");
  await writeFile(join(inside, "wide.txt"), "aé😀b");
  await writeFile(join(inside, "huge.bin"), "begin");
  await truncate(join(inside, "huge.bin"), 1e12);
  await symlink("sub/deep.txt", join(inside, "good-link"));
  await symlink(join(outside, "secret.txt"), join(inside, "bad-link"));
  await symlink(join(outside, "absent.txt"), join(inside, "nowhere-link"));
  await symlink(outside, join(inside, "bad-directory"));
  await symlink("/proc/self/root", join(inside, "root-link"));
  await symlink("circle", join(inside, "circle"));
  await link(join(outside, "secret.txt"), join(inside, "hard-link.txt"));
  execFileSync("mkfifo", [join(inside, "fifo")]);
  await new Promise<void>((resolve) => socket.listen(join(inside, "socket"), resolve));
});
afterAll(async () => {
  socket.close();
  await pool[Symbol.asyncDispose]();
});

const call = (tool: string, args: object, allowedPaths = [inside]) =>
  pool.call({ tool, args, builtinPolicy: { name: tool, allowedPaths } });

const OUTSIDE = /is not below the allowed directories/;

/** Each way out, and what it is answered. */
const ESCAPES: [string, () => string, RegExp][] = [
  ["an absolute path", () => "/etc/passwd", OUTSIDE],
  ["an absolute path to nothing", () => "/etc/absent", OUTSIDE],
  ["..", () => "../outside/secret.txt", OUTSIDE],
  [".. to nothing", () => "../outside/absent.txt", OUTSIDE],
  [".. behind a directory", () => `${inside}/sub/../../outside/secret.txt`, OUTSIDE],
  [".. behind nothing", () => `${inside}/absent/../../outside/secret.txt`, /there is no/],
  ["many ..", () => `${"../".repeat(60)}etc/passwd`, OUTSIDE],
  ["a neighbour whose name begins alike", () => `${inside}-too/secret.txt`, OUTSIDE],
  ["a link out", () => "bad-link", OUTSIDE],
  ["a link out to nothing", () => "nowhere-link", OUTSIDE],
  ["a link to a directory outside", () => "bad-directory/secret.txt", OUTSIDE],
  ["likewise, to nothing there", () => "bad-directory/absent.txt", OUTSIDE],
  [".. behind a link to a directory", () => "bad-directory/../outside/secret.txt", OUTSIDE],
  ["links in a circle", () => "circle", OUTSIDE],
  ["/proc/self/environ", () => "/proc/self/environ", OUTSIDE],
  ["/proc/self/root", () => "/proc/self/root/etc/passwd", OUTSIDE],
  ["/proc/self/root to the inside's own neighbour", () => `/proc/self/root${outside}/secret.txt`, OUTSIDE],
  ["/proc/self/cwd", () => "/proc/self/cwd/package.json", OUTSIDE],
  ["/proc/self/fd", () => "/proc/self/fd/0", OUTSIDE],
  ["/dev/stdin", () => "/dev/stdin", OUTSIDE],
  ["/dev/fd", () => "/dev/fd/1", OUTSIDE],
  ["a link to /proc/self/root", () => "root-link/etc/passwd", OUTSIDE],
  ["a device", () => "/dev/zero", OUTSIDE],
  ["NUL", () => `plain.txt\0/../../outside/secret.txt`, /NUL/],
  ["NUL at the end", () => "plain.txt\0", /NUL/],
  ["other case", () => inside.toUpperCase(), OUTSIDE],
  ["other case of a name", () => "PLAIN.txt", /there is no/],
  ["a long name", () => "a".repeat(300), /a name in it is too long/],
  ["a long path", () => "a/".repeat(3_000), /path is too long/],
  ["percent", () => "%2e%2e/outside/secret.txt", /a part of the path is a file|not a directory/],
  ["percent twice", () => "%252e%252e%252foutside%252fsecret.txt", /there is no/],
  ["a slash that is none", () => "..∕outside∕secret.txt", /there is no/],
  ["dots that are none", () => "․․/outside/secret.txt", /there is no/],
  ["overlong UTF-8", () => "\u00c0\u00ae\u00c0\u00ae/outside/secret.txt", /there is no/],
  ["backslashes", () => "..\\outside\\secret.txt", /there is no/],
  ["a URL", () => `file://${outside}/secret.txt`, /there is no/],
  ["a home", () => "~/secret.txt", /there is no/],
  ["a variable", () => "$HOME/secret.txt", /there is no/],
  ["a slash behind a file", () => "plain.txt/", /a part of the path is a file/],
  ["a file as a directory", () => "plain.txt/../../outside/secret.txt", /a part of the path is a file/],
  ["a directory", () => "sub", /is a directory/],
  ["the allowed directory", () => ".", /is a directory/],
  ["a FIFO", () => "fifo", /is a FIFO/],
  ["a socket", () => "socket", /is a socket/],
  ["a directory by a slash", () => "sub/", /is a directory/],
];

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
    return [names, texts, await readFile(join(inside, "plain.txt"), "utf8"), await readdir(pool.directory)];
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
    await symlink(inside, join(pool.directory, "alias"));
    const path = join(pool.directory, "alias", "plain.txt");
    expect((await call("fs_read", { path }, [join(pool.directory, "alias")])).value).toMatchObject({
      content: "plain",
    });
    expect((await call("fs_read", { path: "plain.txt" }, [join(pool.directory, "absent")])).value).toMatch(
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
    await expect(pool.call({ tool: "fs_read", args: { path: "plain.txt" } })).rejects.toThrow(
      /under a policy for nothing/,
    );
    const builtinPolicy = { name: "fs_read", allowedPaths: [inside] };
    await expect(pool.call({ tool: "fs_write", args: { path: "x", content: "" }, builtinPolicy })).rejects.toThrow(
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
