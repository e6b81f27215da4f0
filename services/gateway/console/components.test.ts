import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createComponents } from "./components.ts";
import { createConsolePaths } from "./console-files.ts";

const WORDS = "not for browsers";
const confirm = "export default () => {};\n";
const server = createServer();
let [directory, folder, url, port] = ["", "", "", 0];
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "components-"));
  folder = join(directory, "ui");
  await mkdir(join(folder, "@files"), { recursive: true });
  await mkdir(join(folder, "folder.js"));
  await mkdir(join(directory, "ui-beside"));
  const files = {
    "ui/confirm.js": confirm,
    "ui/@files/read_file.js": "export default () => {};\n",
    "ui/parts.mjs": "export const one = 1;\n",
    "ui/look.css": ".it { color: red }\n",
    "ui/notes.txt": WORDS,
    "ui/page.html": "<p>",
    "ui/.hidden.js": WORDS,
    "ui/large.js": randomBytes(2 ** 20 + 1),
    "secret.js": WORDS,
    "ui-beside/secret.js": WORDS,
  };
  for (const [path, text] of Object.entries(files)) await writeFile(join(directory, path), text);
  await symlink(join(directory, "secret.js"), join(folder, "leads-out.js"));
  await symlink(directory, join(folder, "up"));
  await symlink(join(folder, "notes.txt"), join(folder, "named-otherwise.js"));
  await symlink("confirm.js", join(folder, "same.js"));
  const takes = createConsolePaths({ files: new Map(), components: createComponents(folder) });
  server.on("request", (request, response) => {
    if (takes(request, response, request)) return;
    response.statusCode = 404;
    response.end("not taken");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  port = typeof address === "object" ? (address?.port ?? 0) : 0;
  url = `http://127.0.0.1:${port}`;
});
afterAll(async () => {
  server.close();
  await rm(directory, { recursive: true });
});

/** What is asked for as it is written: `fetch` would tidy the path up. */
async function askRaw(path: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
  let answer = "";
  for await (const chunk of socket) answer += chunk;
  return answer;
}

describe("components of a project (ORCH-12)", () => {
  it.each([
    ["confirm.js", "text/javascript; charset=utf-8"],
    ["@files/read_file.js", "text/javascript; charset=utf-8"],
    ["parts.mjs", "text/javascript; charset=utf-8"],
    ["look.css", "text/css; charset=utf-8"],
    ["same.js", "text/javascript; charset=utf-8"],
  ])("ORCH-12 %s is served as what it is, under the page's policy", async (path, type) => {
    const response = await fetch(`${url}/console/ui/${path}`);
    expect([response.status, response.headers.get("content-type")]).toEqual([200, type]);
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    expect(response.headers.get("content-security-policy")).toContain("script-src 'self';");
    await response.text();
  });

  it("ORCH-12 an edit shows at the next look, and what is the same is not sent again", async () => {
    const path = `${url}/console/ui/edited.js`;
    await writeFile(join(folder, "edited.js"), "export const a = 1;");
    const first = await fetch(path);
    expect(first.headers.get("cache-control")).toBe("no-cache");
    expect(await first.text()).toBe("export const a = 1;");
    const etag = first.headers.get("etag") ?? "";
    const again = await fetch(path, { headers: { "if-none-match": etag } });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    await writeFile(join(folder, "edited.js"), "export const a = 2;");
    await utimes(join(folder, "edited.js"), 1, 1);
    const changed = await fetch(path, { headers: { "if-none-match": etag } });
    expect([changed.status, await changed.text()]).toEqual([200, "export const a = 2;"]);
    const head = await fetch(path, { method: "HEAD", headers: { "accept-encoding": "identity" } });
    expect([head.headers.get("content-length"), await head.text()]).toEqual(["19", ""]);
  });

  it.each([
    "../secret.js",
    "%2e%2e/secret.js",
    "..%2fsecret.js",
    "@files/../../secret.js",
    "../ui-beside/secret.js",
    "..\\secret.js",
    "./confirm.js",
    "/etc/hostname.js",
    "//confirm.js",
    "",
    ".hidden.js",
    "leads-out.js",
    "up/secret.js",
    "notes.txt",
    "page.html",
    "named-otherwise.js",
    "folder.js",
    "confirm.js/",
    "confirm.js%00.css",
    "missing.js",
    `${"a/".repeat(600)}a.js`,
  ])("SEC-3 %s is none of them", async (path) => {
    const answer = await askRaw(`/console/ui/${path}`);
    expect(answer).toMatch(/^HTTP\/1.1 (404|400)/);
    expect(answer).not.toContain(WORDS);
  });

  it("SEC-5 one that is larger than it may be is refused, and says so", async () => {
    const response = await fetch(`${url}/console/ui/large.js`);
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ message: expect.stringContaining("large.js is over the limit") });
  });

  it.each([
    ["confirm", { module: "/console/ui/confirm.js" }],
    ["@files/read_file", { module: "/console/ui/@files/read_file.js" }],
    ["other", {}],
    ["", {}],
    ["../secret", {}],
    [".hidden", {}],
    ["leads-out", {}],
    ["a tool with blanks", {}],
  ])("ORCH-12 of the tool %j it is told whether there is one", async (tool, told) => {
    const response = await fetch(`${url}/console/ui.json?${new URLSearchParams({ tool })}`);
    expect([response.status, await response.json()]).toEqual([200, told]);
  });

  it("ORCH-12 SEC-3 a project without such a folder has none, and whoever makes one later needs another start", async () => {
    const none = join(directory, "none");
    const takes = createConsolePaths({ files: new Map(), components: createComponents(none) });
    const other = createServer((request, response) => void takes(request, response, request));
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const address = other.address();
    const there = typeof address === "object" ? `http://127.0.0.1:${address?.port}` : "";
    expect(await (await fetch(`${there}/console/ui.json?tool=confirm`)).json()).toEqual({});
    await mkdir(none);
    await writeFile(join(none, "confirm.js"), confirm);
    expect(await (await fetch(`${there}/console/ui.json?tool=confirm`)).json()).toEqual({});
    expect((await fetch(`${there}/console/ui/confirm.js`)).status).toBe(404);
    other.close();
  });
});
