import { mkdir, mkdtemp, rm, symlink, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { OfferedTool } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import { until } from "#runtime/time/until.ts";
import { HEAD, openTestWorkers, uvCache } from "../testing/workers.ts";
import { openDirectoryWatch } from "./directory-watch.ts";

const FUNCTION = "def f(): return 1\n";

/** Without the built-ins, which are of no file. */
const ofFiles = (tools: readonly OfferedTool[] = []) => tools.filter(({ source }) => source !== "");

describe("files", () => {
  test("WORK-1 a malformed and a plain file are refused with file and reason, and hide no other", async () => {
    await using workers = await openTestWorkers({
      "good.py": HEAD + FUNCTION,
      "windows.py": (HEAD + FUNCTION).replaceAll("\n", "\r\n"),
      "malformed.py": `# /// script\n# dependencies = [\n# ///\n${FUNCTION}`,
      "plain.py": FUNCTION,
      "_private.py": FUNCTION,
      "two words.py": HEAD + FUNCTION,
    });
    const { tools, sources } = await workers.provider.getProvidedTools({});
    expect(ofFiles(tools).map(({ source, tool }) => `${source}/${tool?.name}`)).toEqual(["good/f", "windows/f"]);
    const reasons = new Map(sources.map(({ source, available, reason }) => [source, available ? "" : reason]));
    expect([...reasons.keys()]).toEqual(["good", "malformed", "plain", "two words", "windows"]);
    expect(reasons.get("malformed")).toContain("malformed PEP 723 metadata");
    expect(reasons.get("plain")).toContain("# /// script\n# dependencies = []\n# ///");

    const listed = await workers.service.listWorkers({});
    expect(listed.workers).toEqual([]);
    expect(listed.refusedFiles.map(({ file, faults }) => [file, ...faults])).toEqual([
      ["malformed.py", expect.stringContaining("malformed PEP 723 metadata")],
      ["plain.py", expect.stringContaining("# dependencies = []")],
      ["two words.py", expect.stringContaining("rename it")],
    ]);
    expect((await workers.call("windows.f")).result).toBe(1);
    await expect(workers.call("plain.f")).rejects.toThrow(/plain.py is refused: .*these three lines/);
  });

  test("WORK-1 a worker has an environment of its own, in which no package of the machine is found", async () => {
    const machine = await mkdtemp(join(tmpdir(), "toolbus-machine-"));
    await writeFile(join(machine, "only_here.py"), "");
    const text = `${HEAD}
import importlib.util, site, sys
def found():
    return [importlib.util.find_spec("only_here") is not None, sys.prefix != sys.base_prefix, site.ENABLE_USER_SITE]
`;
    await using workers = await openTestWorkers({ "tool.py": text }, { PYTHONPATH: machine });
    expect((await workers.call("tool.found")).result).toEqual([false, true, false]);
    await rm(machine, { recursive: true });
  });

  test("WORK-2 a tool carries the schema of its signature, and reading a file does not run it", async () => {
    await using workers = await openTestWorkers({
      "tool.py": `${HEAD}
import nothing_of_that_name
def f(a: int, b: str = "x"):
    """Does it.

    Args:
        a: How many.
    """
`,
    });
    const { tools } = await workers.provider.getProvidedTools({});
    expect(tools[0]?.tool?.description).toBe("Does it.");
    expect(JSON.parse(tools[0]?.tool?.inputSchemaJson ?? "")).toEqual({
      type: "object",
      properties: { a: { type: "integer", description: "How many." }, b: { type: "string", default: "x" } },
      required: ["a"],
      additionalProperties: false,
    });
  });

  test("LOOP-14 a file says of its functions what a second execution may do", async () => {
    const text = '# /// script\n# [tool.toolbus.effects]\n# f = "pure"\n# ///\ndef f(): ...\ndef g(): ...\n';
    await using workers = await openTestWorkers({ "tool.py": text });
    const { tools } = await workers.provider.getProvidedTools({});
    expect(ofFiles(tools).map(({ tool }) => tool?.effect)).toEqual([Effect.PURE, Effect.UNSPECIFIED]); // as pins hold it
  });

  test("WORK-1 a file is read again when it changes: calls in flight end on the old version, the next takes the other", async () => {
    const version = (number: number) => `${HEAD}
import time
def f(seconds: float):
    time.sleep(seconds)
    return ${number}
`;
    await using workers = await openTestWorkers({ "tool.py": version(1) });
    const watching = new AbortController();
    const changes = workers.provider.watchProvidedTools({}, { signal: watching.signal })[Symbol.asyncIterator]();
    expect(ofFiles((await changes.next()).value?.tools)).toHaveLength(1);
    const started = workers.call("tool.f", { seconds: 1.5 });
    await until(async () => (await workers.service.listWorkers({})).workers[0]?.callsInFlight === 1);

    await workers.write("tool.py", version(2));
    expect(ofFiles((await changes.next()).value?.tools)).toHaveLength(1);
    expect((await workers.call("tool.f", { seconds: 0 })).result).toBe(2);
    expect((await started).result).toBe(1);

    await workers.write("other.py", HEAD + FUNCTION);
    expect(ofFiles((await changes.next()).value?.tools)).toHaveLength(2);
    await workers.write("other.py", FUNCTION);
    expect((await changes.next()).value?.sources[0]).toMatchObject({ source: "other", available: false });
    await unlink(join(workers.directory, "other.py"));
    expect((await changes.next()).value?.sources).toHaveLength(1);
    watching.abort();
  });

  test("WORK-1 a change of what a file may import is a change of it, too", async () => {
    await using workers = await openTestWorkers({ "tool.py": `${HEAD}from parts.inner import N\ndef f(): return N\n` });
    await mkdir(join(workers.directory, "parts"));
    for (const [file, number] of [
      ["parts/inner.py", 1],
      ["parts/inner.py", 2],
    ] as const) {
      await workers.write(file, `N = ${number}\n`);
      await until(async () => (await workers.call("tool.f").catch(() => undefined))?.result === number);
    }
  });

  test("WORK-1 a link to a folder elsewhere is not followed, however much that folder holds", async () => {
    const [directory = "", elsewhere = ""] = await Promise.all(
      ["watched", "elsewhere"].map((name) => mkdtemp(join(tmpdir(), `toolbus-${name}-`))),
    );
    await symlink(elsewhere, join(directory, "data"));
    const changed: string[] = [];
    const onChange = (paths: readonly string[]) => void changed.push(...paths);
    const logger = { warn: (_: unknown, text = "") => expect.fail(text) };
    await using _watch = await openDirectoryWatch({ directory, isWatched: () => true, logger, onChange });
    await writeFile(join(elsewhere, "other.py"), "");
    await writeFile(join(directory, "one.py"), "");
    await until(() => changed.includes("one.py"));
    expect(changed).toEqual(["one.py"]);
    for (const path of [directory, elsewhere]) await rm(path, { recursive: true });
  });

  test("a source names a file of the directory, and nothing outside of it", async () => {
    await using workers = await openTestWorkers({ "tool.py": HEAD + FUNCTION });
    await symlink("/etc/hostname", join(workers.directory, "outside.py"));
    await until(async () => (await workers.provider.getProvidedTools({})).sources.length === 2);
    const sources = [
      { name: "mine", config: { file: "tool.py" } },
      { name: "tool" },
      { name: "outside" },
      { name: "absent" },
      { name: "up", config: { file: "../tool.py" } },
      { name: "odd", config: { fil: "tool.py" } },
      { name: "poor", config: { file: "tool.py", secrets: ["KEY"] } },
    ];
    const offered = await workers.provider.getProvidedTools({ sources });
    expect(offered.tools.map(({ source }) => source)).toEqual(["mine", "tool"]);
    expect(offered.sources.map(({ reason }) => reason)).toEqual([
      "",
      "",
      "outside.py is refused: it is a link that leads out of the directory",
      "there is no file absent.py in the directory of workers or hosted modules",
      'source "up": file must be the name of a Python file in the directory of workers or of a module in that of hosted modules, not "../tool.py"',
      'source "odd": unknown field "fil"; known are file, secrets, config',
      'source "poor" names secrets that are not set: give the worker pool TOOLBUS_SECRET_KEY',
    ]);
    expect((await workers.call("tool.f", {}, { source: "mine", config: { file: "tool.py" } })).result).toBe(1);
    await expect(workers.call("up.f", {}, { config: { file: "../tool.py" } })).rejects.toThrow(/file must be/);
  });
});

describe("the Python parts pass their own tests", () => {
  const suites = {
    inspector: ["../inspector", "../inspector/tests"],
    sdk: ["../../../sdk/python", "../../../sdk/python/tests"],
  };
  test.each(Object.entries(suites))(
    "WORK-2 WORK-5 WORK-11 %s",
    async (_, paths) => {
      const [path, tests] = paths.map((relative) => fileURLToPath(new URL(relative, import.meta.url))) as [
        string,
        string,
      ];
      await using child = await openChildProcess({
        command: process.env.TOOLBUS_UV ?? "uv",
        args: [
          "run",
          "-q",
          "--no-project",
          "--python",
          ">=3.11",
          "python",
          "-B",
          "-m",
          "unittest",
          "discover",
          "-s",
          tests,
        ],
        env: { ...process.env, PYTHONPATH: path, UV_CACHE_DIR: uvCache },
      });
      const exit = await child.exited;
      expect(exit.stderrTail).toMatch(/Ran \d{2,} tests.*OK$/s);
      expect(exit.code).toBe(0);
    },
    60_000,
  );
});
