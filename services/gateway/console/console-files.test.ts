import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createConsolePaths, readConsoleFiles } from "./console-files.ts";

const server = createServer();
let url = "";
beforeAll(async () => {
  const takes = createConsolePaths({ files: await readConsoleFiles() });
  server.on("request", (request, response) => {
    if (takes(request, response, request)) return;
    response.statusCode = 404;
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  url = typeof address === "object" ? `http://127.0.0.1:${address?.port}` : "";
});
afterAll(() => server.close());

const plain = { "accept-encoding": "identity" };

describe("the console's files (ORCH-12)", () => {
  it("the page comes with a policy that lets nothing of others in, and is shown in no other page", async () => {
    const response = await fetch(`${url}/?from=a-link`, { headers: plain });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const policy = response.headers.get("content-security-policy") ?? "";
    expect(policy).toMatch(/default-src 'none'.*script-src 'self';.*frame-ancestors 'none'/);
    expect(policy).not.toMatch(/unsafe|\*|http/);
    const page = await response.text();
    expect(page, "no code in the page").not.toMatch(/<script(?![^>]* src=)|<style| on\w+=/);
  });

  it("talks to where people log in, if they do, and says no more of it than a login needs", async () => {
    const response = await fetch(`${url}/console/login.json`);
    expect(await response.json()).toEqual({});
    const asked = { clientId: "console", scope: "openid", issuer: "https://login.example/", audience: "toolbus" };
    const origins = ["https://login.example", "https://tokens.example"];
    const takes = createConsolePaths({ files: await readConsoleFiles(), login: { ...asked, origins } });
    const other = createServer((request, answer) => void takes(request, answer, request));
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const address = other.address();
    const there = typeof address === "object" ? `http://127.0.0.1:${address?.port}` : "";
    const page = await fetch(there);
    expect(page.headers.get("content-security-policy")).toContain(`connect-src 'self' ${origins.join(" ")};`);
    await page.text();
    expect(await (await fetch(`${there}/console/login.json`)).json()).toEqual(asked);
    other.close();
  });

  it("is packed for whoever takes it, and not sent again while it is the same", async () => {
    const name = "console/index.js";
    const whole = Buffer.from(await (await fetch(`${url}/${name}`, { headers: plain })).arrayBuffer());
    const packed = await fetch(`${url}/${name}`);
    expect(packed.headers.get("content-encoding")).toBe("gzip");
    expect(Number(packed.headers.get("content-length"))).toBeLessThan(whole.length);
    expect(Buffer.from(await packed.arrayBuffer()).equals(whole)).toBe(true);
    const etag = packed.headers.get("etag") ?? "";
    const again = await fetch(`${url}/${name}`, { headers: { "if-none-match": etag } });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    const head = await fetch(`${url}/${name}`, { method: "HEAD", headers: plain });
    expect([head.headers.get("content-length"), await head.text()]).toEqual([`${whole.length}`, ""]);
  });

  it.each(["/console", "/console/", "/console/../package.json", "/console/%2e%2e/README.md", "/index.html", "/x"])(
    "%s is none of them",
    async (path) => {
      const response = await fetch(url + path);
      expect(response.status).toBe(404);
      await response.text();
    },
  );

  it("is not posted to", async () => {
    expect((await fetch(url, { method: "POST", body: "x" })).status).toBe(404);
  });
});
